/* One reference kernel on random tensors, poisoned where it must write.
 *
 * Its gradients are checked against those of sum(y * dy), a function of everything the kernel
 * reads. */
#ifndef TESTS_WORKER_DEVICE_REF_KERNEL_FIXTURE_H
#define TESTS_WORKER_DEVICE_REF_KERNEL_FIXTURE_H

#include "worker/device/ref/kernels.h"

struct ref_kernel_fixture {
    const struct ref_kernel *kernel;
    struct op op;
    struct ref_call call; // its pointers are the buffers below
    struct program_input input;
    struct program_result result;
    size_t x_count, y_count; // of the whole batch
    size_t weight_count, param_count;
    float *x, *y, *dy, *dx, *params, *grads;
    float *other, *dother; // like x
    float *statistics;     // means of 0, variances of 1 at first
    double *saved, *scratch;
    enum status status;
    uint32_t *labels;
    uint64_t *sample_keys;
};

/* `op` needs its kind, shapes, sizes and has_bias; weight, bias and statistics are placed here. x,
 * other and dy are uniform in [-1, 1), training is on, all samples count. */
void ref_kernel_fixture_init(struct ref_kernel_fixture *fixture, const struct ref_kernel *kernel,
                             const struct op *op, uint32_t batch_size, uint64_t seed);
void ref_kernel_fixture_finish(struct ref_kernel_fixture *fixture);

/* Poisons what is written, then runs. */
void ref_kernel_fixture_forward(struct ref_kernel_fixture *fixture);
void ref_kernel_fixture_backward(struct ref_kernel_fixture *fixture);

/* Relative errors of dx and dother, and of the gradients of weight and bias, against central
 * differences of this step. After forward and backward. */
double ref_kernel_fixture_x_error(struct ref_kernel_fixture *fixture, float step);
double ref_kernel_fixture_other_error(struct ref_kernel_fixture *fixture, float step);
double ref_kernel_fixture_params_error(struct ref_kernel_fixture *fixture, float step);

#endif
