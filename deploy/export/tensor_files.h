/* Files of tensors: NPZ (of NumPy) and safetensors (of Hugging Face). */
#ifndef DEPLOY_EXPORT_TENSOR_FILES_H
#define DEPLOY_EXPORT_TENSOR_FILES_H

#include "common/base/status.h"
#include "deploy/export/tensors.h"

#include <stdint.h>

enum tensor_format { TENSOR_FORMAT_NPZ, TENSOR_FORMAT_SAFETENSORS };

/* What is written: tensors, and what the file says of itself, where its format has a place for
 * that. All borrowed. */
struct tensor_file {
    const struct tensors *tensors;
    enum tensor_format format;
    const char *model; // "lenet5"
    uint64_t step;
};

/* Writes the file beside its place, and moves it there, so that it is whole or not there. Logs. */
enum status tensor_file_save(const struct tensor_file *file, const char *path);

#endif
