#!/usr/bin/python3
"""Writes losses.h: the losses and first gradients of ten steps of each model in PyTorch.

    tests/golden/record_losses.py | clang-format > tests/golden/losses.h

Needs PyTorch 1.13 (Debian: python3-torch). Parameters, pixels, labels and dropout masks come from
the functions of common/random.h, written here once more with numpy, so that the test computes the
very same ones; PyTorch computes in double, so what is recorded has no rounding of its own.
"""

import numpy
import torch
import torch.nn.functional as functional

SEED = 7
BATCH = 8
STEPS = 10
CLASSES = 10
MOMENTUM = 0.9
PIXELS_MAX = 1.7

# enum random_purpose
SHUFFLE, PARAMS, DROPOUT, SHAPES, SYNTHETIC = 1, 2, 3, 4, 5

# Layers as worker/model names them; a weight's shape stands with its layer.
LENET5 = [
    ("conv2d", (6, 1, 5, 5), 2), ("relu",), ("max_pool",),
    ("conv2d", (16, 6, 5, 5), 0), ("relu",), ("max_pool",),
    ("linear", (120, 400)), ("relu",), ("linear", (84, 120)), ("relu",), ("linear", (CLASSES, 84)),
]
CNN = [
    ("conv2d", (32, 3, 3, 3), 1), ("relu",), ("conv2d", (32, 32, 3, 3), 0), ("relu",),
    ("max_pool",), ("dropout", 0.25),
    ("conv2d", (64, 32, 3, 3), 1), ("relu",), ("conv2d", (64, 64, 3, 3), 0), ("relu",),
    ("max_pool",), ("dropout", 0.25),
    ("linear", (512, 2304)), ("relu",), ("dropout", 0.5), ("linear", (CLASSES, 512)),
]


# Name, shape of a sample, layers, learning rate.
MODELS = [
    ("lenet5", (1, 28, 28), LENET5, 0.01),
    ("cnn", (3, 32, 32), CNN, 0.01),
]

MASK_64 = (1 << 64) - 1


def random_mix(x):
    x = (x + 0x9E3779B97F4A7C15) & MASK_64
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK_64
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK_64
    return x ^ (x >> 31)


def random_key(seed, purpose, a, b):
    return random_mix((random_mix((random_mix((random_mix(seed) + purpose) & MASK_64) + a)
                                  & MASK_64) + b) & MASK_64)


def random_elements(key, count):
    """random_element(key, i) for i below count; numpy's uint32 wraps as C's does."""
    x = numpy.uint32(key & 0xFFFFFFFF) + numpy.arange(count, dtype=numpy.uint32) \
        * numpy.uint32(0x9E3779B9)
    x ^= x >> numpy.uint32(16)
    x *= numpy.uint32(0x85EBCA6B)
    x += numpy.uint32(key >> 32)
    x ^= x >> numpy.uint32(13)
    x *= numpy.uint32(0xC2B2AE35)
    return x ^ (x >> numpy.uint32(16))


def uniform(limit, key, count):
    """limit * (2 * u - 1) in float32, as the C code rounds it."""
    unit = (random_elements(key, count) >> numpy.uint32(8)).astype(numpy.float32)
    unit *= numpy.float32(2.0 ** -24)
    return numpy.float32(limit) * (2 * unit - 1)


def first_params(layers):
    params = []
    for layer in layers:
        if layer[0] not in ("conv2d", "linear"):
            continue
        shape = layer[1]
        taps = int(numpy.prod(shape[2:]))
        limit = (6 / (shape[1] * taps + shape[0] * taps)) ** 0.5
        values = uniform(limit, random_key(SEED, PARAMS, len(params), 0), int(numpy.prod(shape)))
        params.append(torch.tensor(values.reshape(shape), dtype=torch.float64))
        params.append(torch.zeros(shape[0], dtype=torch.float64))
    for param in params:
        param.requires_grad_()
    return params


def pixels_and_labels(sample):
    count = BATCH * int(numpy.prod(sample))
    pixels = uniform(PIXELS_MAX, random_key(SEED, SYNTHETIC, 0, 0), count)
    labels = [random_key(SEED, SYNTHETIC, 1, n) % CLASSES for n in range(BATCH)]
    return (torch.tensor(pixels.reshape((BATCH,) + sample), dtype=torch.float64),
            torch.tensor(labels))


def dropout_mask(shape, rate, stream, step):
    """kept / (1 - rate); a sample's key is that of (step, sample)."""
    masks = []
    for n in range(BATCH):
        key = random_mix((random_key(SEED, DROPOUT, step, n) + stream) & MASK_64)
        kept = random_elements(key, int(numpy.prod(shape[1:]))) >= rate * 2.0 ** 32
        masks.append(kept.reshape(shape[1:]) / (1 - rate))
    return torch.tensor(numpy.stack(masks))


def forward(layers, params, x, step):
    params = iter(params)
    stream = 0
    for layer in layers:
        if layer[0] == "conv2d":
            x = functional.conv2d(x, next(params), next(params), padding=layer[2])
        elif layer[0] == "linear":
            x = functional.linear(x.flatten(1), next(params), next(params))
        elif layer[0] == "relu":
            x = functional.relu(x)
        elif layer[0] == "max_pool":
            x = functional.max_pool2d(x, 2)
        else:
            x = x * dropout_mask(tuple(x.shape), layer[1], stream, step)
            stream += 1
    return x


def train(sample, layers, rate):
    params = first_params(layers)
    pixels, labels = pixels_and_labels(sample)
    optimizer = torch.optim.SGD(params, rate, MOMENTUM)
    losses = []
    norms = []
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = functional.cross_entropy(forward(layers, params, pixels, step), labels)
        loss.backward()
        losses.append(loss.item())
        if step == 0:
            norms = [param.grad.norm().item() for param in params]
        optimizer.step()
    return losses, norms


def main():
    print("/* Ten steps of each model in PyTorch, written by record_losses.py with PyTorch "
          f"{torch.__version__}. */")
    print("#ifndef TESTS_GOLDEN_LOSSES_H")
    print("#define TESTS_GOLDEN_LOSSES_H")
    print()
    print('#include "worker/device/device.h"')
    print()
    print(f"#define GOLDEN_SEED {SEED}")
    print(f"#define GOLDEN_BATCH {BATCH}")
    print(f"#define GOLDEN_STEPS {STEPS}")
    print(f"#define GOLDEN_CLASSES {CLASSES}")
    print(f"#define GOLDEN_MOMENTUM {MOMENTUM}f")
    print(f"#define GOLDEN_PIXELS_MAX {PIXELS_MAX}f")
    print("#define GOLDEN_TENSORS_MAX 12")
    print()
    print("struct golden_training {")
    print("    const char *model;")
    print("    struct shape input;")
    print("    float rate;")
    print("    double losses[GOLDEN_STEPS]; // before each step")
    print("    double grad_norms[GOLDEN_TENSORS_MAX]; // of each tensor, in the first step")
    print("};")
    print()
    print("static const struct golden_training golden_trainings[] = {")
    for name, sample, layers, rate in MODELS:
        losses, norms = train(sample, layers, rate)
        print(f'{{.model = "{name}", .input = {{{sample[0]}, {sample[1]}, {sample[2]}}}, '
              f".rate = {rate}f,")
        print(".losses = {" + ", ".join(f"{loss:.9e}" for loss in losses) + "},")
        print(".grad_norms = {" + ", ".join(f"{norm:.9e}" for norm in norms) + "}},")
    print("};")
    print()
    print("#endif")


main()
