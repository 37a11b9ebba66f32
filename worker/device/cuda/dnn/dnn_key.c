/* Writes keys. */
#include "worker/device/cuda/dnn/dnn_key.h"

#include <stdio.h>
#include <string.h>

#define CHOICE \
    2 // changes with the rules by which engines are chosen: choices by others do not count

void dnn_write_question(const struct dnn_target *target, const struct dnn_conv *conv,
                        enum dnn_pass pass, char ret_question[DNN_QUESTION_BYTES])
{
    static const char *const passes[] = {
        [DNN_FORWARD] = "forward", [DNN_DATA_GRADIENT] = "data", [DNN_WEIGHT_GRADIENT] = "weights"};
    static const char *const precisions[] = {
        [PRECISION_FP32] = "fp32", [PRECISION_TF32] = "tf32", [PRECISION_BF16] = "bf16"};
    snprintf(ret_question, DNN_QUESTION_BYTES,
             "%s of %ux%u, stride %u, padding %u, %ux%ux%u to %ux%ux%u%s%s%s, %s%s", passes[pass],
             conv->window, conv->window, conv->stride, conv->padding, conv->inputs, conv->x_rows,
             conv->x_columns, conv->outputs, conv->y_rows, conv->y_columns,
             conv->has_bias ? ", bias" : "", conv->has_relu ? ", relu" : "",
             conv->has_statistics ? ", statistics" : "", precisions[target->precision],
             target->allows_nondeterministic ? ", nondeterministic" : "");
}

bool dnn_write_key(const struct dnn_target *target, const struct dnn_conv *conv, enum dnn_pass pass,
                   const char *what, char ret_key[DNN_KEY_BYTES])
{
    char question[DNN_QUESTION_BYTES];
    if (target->gpu == NULL) {
        return false;
    }
    dnn_write_question(target, conv, pass, question);
    int used = snprintf(ret_key, DNN_KEY_BYTES, "choice %d, cuDNN %zu, %.200s; %s, batch %u; %s",
                        CHOICE, cudnnGetVersion(), target->gpu, question, conv->batch, what);
    return used > 0 && used < DNN_KEY_BYTES && strchr(ret_key, '\n') == NULL;
}
