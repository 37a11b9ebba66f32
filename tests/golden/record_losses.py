#!/usr/bin/python3
"""Writes losses.h: the losses and first gradients of ten steps of each model in PyTorch.

    tests/golden/record_losses.py | clang-format > tests/golden/losses.h

Needs PyTorch 1.13 (Debian: python3-torch). Parameters, pixels, labels and dropout masks come from
the functions of common/base/random.h, written here once more with numpy, so that the test computes the
very same ones; PyTorch computes in double, so what is recorded has no rounding of its own.
"""

import numpy
import torch
import torch.nn.functional as functional

SEED = 7
STEPS = 10
CLASSES = 10
MOMENTUM = 0.9
PIXELS_MAX = 1.7

# enum random_purpose
SHUFFLE, PARAMS, DROPOUT, SHAPES, SYNTHETIC = 1, 2, 3, 4, 5


class Layers:
    """Layers as worker/model builds them: a kind, what it needs, and the layer whose result it
    reads (-1: the pixels). A weight's shape stands with its layer."""

    def __init__(self):
        self.list = []

    def add(self, layer_input, kind, **fields):
        self.list.append({"kind": kind, "input": layer_input, **fields})
        return len(self.list) - 1

    def append(self, kind, **fields):
        return self.add(len(self.list) - 1, kind, **fields)

    def conv(self, layer_input, shape, stride=1, padding=None, bias=True):
        padding = shape[2] // 2 if padding is None else padding
        return self.add(layer_input, "conv2d", shape=shape, stride=stride, padding=padding,
                        bias=bias)

    def norm(self, layer_input, channels, epsilon):
        return self.add(layer_input, "batch_norm", channels=channels, epsilon=epsilon)

    def relu(self, layer_input=None):
        return self.append("relu") if layer_input is None else self.add(layer_input, "relu")


def lenet5():
    layers = Layers()
    layers.conv(-1, (6, 1, 5, 5))
    layers.relu()
    x = layers.append("max_pool", window=2, stride=2)
    layers.conv(x, (16, 6, 5, 5), padding=0)
    layers.relu()
    layers.append("max_pool", window=2, stride=2)
    layers.append("linear", shape=(120, 400))
    layers.relu()
    layers.append("linear", shape=(84, 120))
    layers.relu()
    layers.append("linear", shape=(CLASSES, 84))
    return layers


def cnn():
    layers = Layers()
    x, inputs = -1, 3
    for channels in (32, 64):
        layers.conv(x, (channels, inputs, 3, 3))
        layers.conv(layers.relu(), (channels, channels, 3, 3), padding=0)
        layers.relu()
        layers.append("max_pool", window=2, stride=2)
        x, inputs = layers.append("dropout", rate=0.25), channels
    layers.append("linear", shape=(512, 2304))
    layers.relu()
    layers.append("dropout", rate=0.5)
    layers.append("linear", shape=(CLASSES, 512))
    return layers


def resnet20():
    layers = Layers()
    x = layers.relu(layers.norm(layers.conv(-1, (16, 3, 3, 3), bias=False), 16, 1e-5))
    inputs = 16
    for stage in range(3):
        channels = 16 << stage
        for block in range(3):
            stride = 2 if stage > 0 and block == 0 else 1
            y = layers.conv(x, (channels, inputs, 3, 3), stride, bias=False)
            y = layers.relu(layers.norm(y, channels, 1e-5))
            y = layers.conv(y, (channels, channels, 3, 3), bias=False)
            y = layers.norm(y, channels, 1e-5)
            if stride > 1:
                x = layers.add(x, "subsample", stride=stride, channels=channels)
            x = layers.relu(layers.add(y, "add", other=x))
            inputs = channels
    layers.add(x, "global_pool")
    layers.append("linear", shape=(CLASSES, 64))
    return layers


def resnet50v2():
    layers = Layers()
    layers.conv(-1, (64, 3, 7, 7), 2)
    layers.append("pad", padding=1)
    x = layers.append("max_pool", window=3, stride=2)
    inputs = 64

    def norm(layer_input, channels):
        return layers.relu(layers.norm(layer_input, channels, 1.001e-5))

    for stage, blocks in enumerate((3, 4, 6, 3)):
        narrow, wide = 64 << stage, 256 << stage
        for block in range(blocks):
            stride = 2 if block + 1 == blocks and stage < 3 else 1
            normed = norm(x, inputs)
            shortcut = x
            if block == 0:
                shortcut = layers.conv(normed, (wide, inputs, 1, 1))
            elif stride > 1:
                shortcut = layers.add(x, "subsample", stride=stride, channels=wide)
            y = norm(layers.conv(normed, (narrow, inputs, 1, 1), bias=False), narrow)
            y = norm(layers.conv(y, (narrow, narrow, 3, 3), stride, bias=False), narrow)
            y = layers.conv(y, (wide, narrow, 1, 1))
            x = layers.add(y, "add", other=shortcut)
            inputs = wide
    layers.add(norm(x, inputs), "global_pool")
    layers.append("linear", shape=(CLASSES, inputs))
    return layers


# Name, shape of a sample, layers, batch, learning rate. What fifty layers that normalise eight
# samples each make of a rounding error grows tenfold a step; hence the larger batch and the low rate.
MODELS = [
    ("lenet5", (1, 28, 28), lenet5(), 8, 0.01),
    ("cnn", (3, 32, 32), cnn(), 8, 0.01),
    ("resnet20", (3, 32, 32), resnet20(), 8, 0.001),
    ("resnet50v2", (3, 32, 32), resnet50v2(), 16, 3e-8),
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
    for layer in layers.list:
        if layer["kind"] == "batch_norm":
            params.append(torch.ones(layer["channels"], dtype=torch.float64))
            params.append(torch.zeros(layer["channels"], dtype=torch.float64))
        if layer["kind"] not in ("conv2d", "linear"):
            continue
        shape = layer["shape"]
        taps = int(numpy.prod(shape[2:]))
        limit = (6 / (shape[1] * taps + shape[0] * taps)) ** 0.5
        values = uniform(limit, random_key(SEED, PARAMS, len(params), 0), int(numpy.prod(shape)))
        params.append(torch.tensor(values.reshape(shape), dtype=torch.float64))
        if layer.get("bias", True):
            params.append(torch.zeros(shape[0], dtype=torch.float64))
    for param in params:
        param.requires_grad_()
    return params


def pixels_and_labels(sample, batch):
    count = batch * int(numpy.prod(sample))
    pixels = uniform(PIXELS_MAX, random_key(SEED, SYNTHETIC, 0, 0), count)
    labels = [random_key(SEED, SYNTHETIC, 1, n) % CLASSES for n in range(batch)]
    return (torch.tensor(pixels.reshape((batch,) + sample), dtype=torch.float64),
            torch.tensor(labels))


def dropout_mask(shape, rate, stream, step):
    """kept / (1 - rate); a sample's key is that of (step, sample)."""
    masks = []
    for n in range(shape[0]):
        key = random_mix((random_key(SEED, DROPOUT, step, n) + stream) & MASK_64)
        kept = random_elements(key, int(numpy.prod(shape[1:]))) >= rate * 2.0 ** 32
        masks.append(kept.reshape(shape[1:]) / (1 - rate))
    return torch.tensor(numpy.stack(masks))


def subsample(x, layer):
    x = x[:, :, ::layer["stride"], ::layer["stride"]]
    return functional.pad(x, (0, 0, 0, 0, 0, layer["channels"] - x.shape[1]))


def forward(layers, params, pixels, step):
    params = iter(params)
    stream = 0
    results = []
    for layer in layers.list:
        x = pixels if layer["input"] < 0 else results[layer["input"]]
        kind = layer["kind"]
        if kind == "conv2d":
            weight = next(params)
            x = functional.conv2d(x, weight, next(params) if layer["bias"] else None,
                                  stride=layer["stride"], padding=layer["padding"])
        elif kind == "linear":
            x = functional.linear(x.flatten(1), next(params), next(params))
        elif kind == "batch_norm":
            x = functional.batch_norm(x, None, None, next(params), next(params), training=True,
                                      eps=layer["epsilon"])
        elif kind == "relu":
            x = functional.relu(x)
        elif kind == "max_pool":
            x = functional.max_pool2d(x, layer["window"], layer["stride"])
        elif kind == "pad":
            x = functional.pad(x, (layer["padding"],) * 4)
        elif kind == "subsample":
            x = subsample(x, layer)
        elif kind == "global_pool":
            x = x.mean((2, 3))
        elif kind == "add":
            x = x + results[layer["other"]]
        else:
            x = x * dropout_mask(tuple(x.shape), layer["rate"], stream, step)
            stream += 1
        results.append(x)
    return results[-1]


def train(sample, layers, batch, rate):
    params = first_params(layers)
    pixels, labels = pixels_and_labels(sample, batch)
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
    print(f"#define GOLDEN_BATCH_MAX {max(model[3] for model in MODELS)}")
    print(f"#define GOLDEN_STEPS {STEPS}")
    print(f"#define GOLDEN_CLASSES {CLASSES}")
    print(f"#define GOLDEN_MOMENTUM {MOMENTUM}f")
    print(f"#define GOLDEN_PIXELS_MAX {PIXELS_MAX}f")
    print("#define GOLDEN_TENSORS_MAX 192")
    print()
    print("struct golden_training {")
    print("    const char *model;")
    print("    struct shape input;")
    print("    uint32_t batch;")
    print("    float rate;")
    print("    double losses[GOLDEN_STEPS]; // before each step")
    print("    double grad_norms[GOLDEN_TENSORS_MAX]; // of each tensor, in the first step")
    print("};")
    print()
    print("static const struct golden_training golden_trainings[] = {")
    for name, sample, layers, batch, rate in MODELS:
        losses, norms = train(sample, layers, batch, rate)
        print(f'{{.model = "{name}", .input = {{{sample[0]}, {sample[1]}, {sample[2]}}}, '
              f".batch = {batch}, .rate = {rate}f,")
        print(".losses = {" + ", ".join(f"{loss:.9e}" for loss in losses) + "},")
        print(".grad_norms = {" + ", ".join(f"{norm:.9e}" for norm in norms) + "}},")
    print("};")
    print()
    print("#endif")


main()
