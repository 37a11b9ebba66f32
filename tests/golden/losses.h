/* Ten steps of each model in PyTorch, written by record_losses.py with PyTorch 1.13.0a0. */
#ifndef TESTS_GOLDEN_LOSSES_H
#define TESTS_GOLDEN_LOSSES_H

#include "worker/device/device.h"

#define GOLDEN_SEED        7
#define GOLDEN_BATCH       8
#define GOLDEN_STEPS       10
#define GOLDEN_CLASSES     10
#define GOLDEN_MOMENTUM    0.9f
#define GOLDEN_PIXELS_MAX  1.7f
#define GOLDEN_TENSORS_MAX 12

struct golden_training {
    const char *model;
    struct shape input;
    float rate;
    double losses[GOLDEN_STEPS];           // before each step
    double grad_norms[GOLDEN_TENSORS_MAX]; // of each tensor, in the first step
};

static const struct golden_training golden_trainings[] = {
    {.model = "lenet5",
     .input = {1, 28, 28},
     .rate = 0.01f,
     .losses = {2.855585080e+00, 2.578449234e+00, 2.272025506e+00, 2.089977747e+00, 1.944894059e+00,
                1.783668459e+00, 1.611094328e+00, 1.437216701e+00, 1.302961242e+00,
                1.187682803e+00},
     .grad_norms = {1.108163430e+00, 3.117277695e-01, 3.439722491e+00, 4.792572841e-01,
                    3.283085410e+00, 3.352615855e-01, 1.967699077e+00, 4.484318994e-01,
                    1.963947075e+00, 4.859102318e-01}},
    {.model = "cnn",
     .input = {3, 32, 32},
     .rate = 0.01f,
     .losses = {2.522270814e+00, 2.334961968e+00, 1.926112078e+00, 1.835574633e+00, 1.450886287e+00,
                1.811041418e+00, 1.265690985e+00, 1.584083611e+00, 1.541163296e+00,
                1.536580269e+00},
     .grad_norms = {1.437975735e+00, 2.342642204e-01, 1.934573908e+00, 4.075469716e-01,
                    2.601886461e+00, 4.087547680e-01, 3.301116248e+00, 6.306168702e-01,
                    6.808688856e+00, 5.468923772e-01, 2.905010243e+00, 4.285276281e-01}},
};

#endif
