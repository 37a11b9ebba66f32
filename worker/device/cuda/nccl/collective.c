/* A communicator of NCCL, and the naps in which it is waited for. */
#include "worker/device/cuda/nccl/collective.h"

#include "worker/device/cuda/host/report.h"

#include <string.h>
#include <time.h>

// The first call of a kind may take seconds, all others microseconds.
#define NAP_JOIN_NS 1000000
#define NAP_CALL_NS 20000

_Static_assert(sizeof(struct nccl_id) == PROGRAM_ID_BYTES, "an id is NCCL's");

static void nap(int ns)
{
    const struct timespec time = {.tv_nsec = ns};
    nanosleep(&time, NULL);
}

/* With the mutex held where there is a communicator. */
static enum status fail(const struct nccl_library *library, struct nccl_comm *comm, int result,
                        const char *what)
{
    const char *more = library->get_last_error(comm);
    report_error("NCCL cannot %s: %s%s%s (NCCL_DEBUG=INFO says more)", what,
                 library->get_error(result), more != NULL && more[0] != '\0' ? ": " : "",
                 more != NULL ? more : "");
    return STATUS_DEVICE;
}

enum status collective_introduce(int gpu, bool is_first,
                                 struct device_introduction *ret_introduction)
{
    const struct nccl_library *library;
    struct cudaDeviceProp properties;
    struct nccl_id id = {{0}};
    enum status status = nccl_load(&library);
    if (status != STATUS_OK) {
        return status;
    }
    cudaError_t error = cudaGetDeviceProperties(&properties, gpu);
    if (error != cudaSuccess) {
        report_error("CUDA cannot say which GPU this is: %s", cudaGetErrorString(error));
        return STATUS_DEVICE;
    }
    int result = is_first ? library->get_id(&id) : NCCL_SUCCESS;
    if (result != NCCL_SUCCESS) {
        return fail(library, NULL, result, "wait for other workers");
    }
    ret_introduction->version = (uint32_t)library->version;
    memcpy(ret_introduction->gpu, &properties.uuid, sizeof(ret_introduction->gpu));
    memcpy(ret_introduction->id, &id, sizeof(id));
    return STATUS_OK;
}

void collective_init(struct collective *collective)
{
    *collective = (struct collective){0};
    pthread_mutex_init(&collective->mutex, NULL);
}

void collective_finish(struct collective *collective)
{
    collective_stop(collective);
    pthread_mutex_destroy(&collective->mutex);
}

void collective_stop(struct collective *collective)
{
    pthread_mutex_lock(&collective->mutex);
    collective->is_stopped = true;
    if (collective->comm != NULL) {
        // What it returns is nobody's concern any more; it may go on in NCCL's own threads.
        (void)collective->library->abort(collective->comm);
        collective->comm = NULL;
    }
    pthread_mutex_unlock(&collective->mutex);
}

/* Waits until the call that gave `result` is done. With the mutex held, which naps let go. */
static enum status await_call(struct collective *collective, int result, int nap_ns,
                              const struct program_joining *joining, const char *what)
{
    while (result == NCCL_IN_PROGRESS) {
        pthread_mutex_unlock(&collective->mutex);
        nap(nap_ns);
        bool is_stopped = joining != NULL && joining->is_stopped(joining->context);
        pthread_mutex_lock(&collective->mutex);
        if (is_stopped || collective->is_stopped) {
            return STATUS_INTERRUPTED;
        }
        int asked = collective->library->get_state(collective->comm, &result);
        result = asked == NCCL_SUCCESS ? result : asked;
    }
    return result == NCCL_SUCCESS ? STATUS_OK
                                  : fail(collective->library, collective->comm, result, what);
}

enum status collective_join(struct collective *collective, const struct program_joining *joining)
{
    struct nccl_id id;
    struct nccl_config config = {
        .size = sizeof(config),
        .magic = NCCL_CONFIG_MAGIC,
        .version = NCCL_VERSION_MIN,
        .blocking = 0,
        .unused = NCCL_CONFIG_UNSET,
    };
    enum status status = nccl_load(&collective->library);
    if (status != STATUS_OK) {
        return status;
    }
    memcpy(&id, joining->id, sizeof(id));
    pthread_mutex_lock(&collective->mutex);
    if (collective->is_stopped) {
        pthread_mutex_unlock(&collective->mutex);
        return STATUS_INTERRUPTED;
    }
    int result = collective->library->init(&collective->comm, (int)joining->world, id,
                                           (int)joining->rank, &config);
    status = await_call(collective, result, NAP_JOIN_NS, joining, "join the GPUs of all workers");
    pthread_mutex_unlock(&collective->mutex);
    return status;
}

enum status collective_mean(struct collective *collective, float *values, size_t count,
                            cudaStream_t stream)
{
    enum status status = STATUS_INTERRUPTED;
    pthread_mutex_lock(&collective->mutex);
    if (!collective->is_stopped) {
        int state = NCCL_SUCCESS;
        // A worker that was lost is found by its silence; what NCCL has noticed is said before.
        int result = collective->library->get_state(collective->comm, &state);
        if (result == NCCL_SUCCESS && state == NCCL_SUCCESS) {
            result = collective->library->all_reduce(values, values, count, NCCL_FLOAT, NCCL_MEAN,
                                                     collective->comm, stream);
        } else if (result == NCCL_SUCCESS) {
            result = state;
        }
        status = await_call(collective, result, NAP_CALL_NS, NULL, "add up gradients");
    }
    pthread_mutex_unlock(&collective->mutex);
    return status;
}
