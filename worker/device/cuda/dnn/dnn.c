/* How a plan of cuDNN's graph interface runs, and devices that are only described. */
#include "worker/device/cuda/dnn/dnn.h"

#include "worker/device/cuda/dnn/dnn_graph.h"
#include "worker/device/cuda/host/report.h"

#include <stdio.h>
#include <string.h>

#define OPERANDS_MAX 6

void dnn_plan_destroy(struct dnn_plan *plan)
{
    if (plan->plan != NULL) {
        cudnnBackendDestroyDescriptor(plan->plan);
    }
    *plan = (struct dnn_plan){0};
}

/* Names and places of a pass's operands, without those that there are none of; returns how many. */
static int64_t name_operands(const struct dnn_operands *operands, int64_t ret_uids[OPERANDS_MAX],
                             void *ret_pointers[OPERANDS_MAX])
{
    const struct {
        enum dnn_uid uid;
        void *pointer;
    } rows[OPERANDS_MAX] = {
        {DNN_UID_X, operands->x},       {DNN_UID_W, operands->w},
        {DNN_UID_Y, operands->y},       {DNN_UID_BIAS, operands->bias},
        {DNN_UID_SUMS, operands->sums}, {DNN_UID_SQUARE_SUMS, operands->square_sums},
    };
    int64_t count = 0;
    for (uint32_t i = 0; i < OPERANDS_MAX; i++) {
        if (rows[i].pointer != NULL) {
            ret_uids[count] = rows[i].uid;
            ret_pointers[count++] = rows[i].pointer;
        }
    }
    return count;
}

/* The operands as the library takes them. It does not take others once a pack is finalized. */
static cudnnBackendDescriptor_t add_pack(struct dnn_pieces *pieces,
                                         const struct dnn_operands *operands)
{
    int64_t uids[OPERANDS_MAX];
    void *pointers[OPERANDS_MAX];
    const int64_t count = name_operands(operands, uids, pointers);
    cudnnBackendDescriptor_t pack = dnn_begin(pieces, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    dnn_set(pieces, pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, uids);
    dnn_set(pieces, pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count,
            pointers);
    dnn_set(pieces, pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1,
            &operands->workspace);
    dnn_end(pieces, pack);
    return pack;
}

enum status dnn_plan_run(const struct dnn_target *target, const struct dnn_plan *plan,
                         const struct dnn_operands *operands)
{
    struct dnn_pieces pieces = {.status = CUDNN_STATUS_SUCCESS};
    cudnnBackendDescriptor_t pack = add_pack(&pieces, operands);
    cudnnStatus_t status = pieces.status;
    if (status == CUDNN_STATUS_SUCCESS) {
        status = cudnnBackendExecute(target->handle, plan->plan, pack);
    }
    dnn_destroy_pieces(&pieces);
    if (status != CUDNN_STATUS_SUCCESS) {
        report_error("cuDNN cannot run a convolution: %s", cudnnGetErrorString(status));
        return STATUS_DEVICE;
    }
    return STATUS_OK;
}

enum status dnn_describe_device(const char *json, cudnnBackendDescriptor_t *ret_described)
{
    cudnnBackendDescriptor_t described = NULL;
    cudnnStatus_t status =
        cudnnBackendCreateDescriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &described);
    if (status == CUDNN_STATUS_SUCCESS) {
        status = cudnnBackendSetAttribute(described, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
                                          CUDNN_TYPE_CHAR, (int64_t)strlen(json), json);
    }
    if (status == CUDNN_STATUS_SUCCESS) {
        status = cudnnBackendFinalize(described);
    }
    if (status != CUDNN_STATUS_SUCCESS) {
        dnn_forget_device(described);
        report_error("cuDNN does not take the description of a device: %s",
                     cudnnGetErrorString(status));
        return STATUS_UNSUPPORTED;
    }
    *ret_described = described;
    return STATUS_OK;
}

void dnn_forget_device(cudnnBackendDescriptor_t described)
{
    if (described != NULL) {
        cudnnBackendDestroyDescriptor(described);
    }
}
