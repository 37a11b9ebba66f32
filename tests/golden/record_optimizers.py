#!/usr/bin/python3
"""Writes optimizers.h: where PyTorch's optimizers take a vector in 20 steps.

    tests/golden/record_optimizers.py | clang-format > tests/golden/optimizers.h

Needs PyTorch 1.13 (Debian: python3-torch). Parameters and gradients are multiples of powers of two,
exact in a float, so that the test computes the very same ones.
"""

import torch

PARAMS = 37
STEPS = 20
MOMENTUM = 0.9
WEIGHT_DECAY = 0.05

# Name here, learning rate, torch's optimizer.
OPTIMIZERS = [
    ("sgd", 0.05, lambda p, r, d: torch.optim.SGD(p, r, weight_decay=d)),
    ("momentum", 0.01, lambda p, r, d: torch.optim.SGD(p, r, MOMENTUM, weight_decay=d)),
    ("nesterov", 0.01,
     lambda p, r, d: torch.optim.SGD(p, r, MOMENTUM, weight_decay=d, nesterov=True)),
    ("adam", 0.01, lambda p, r, d: torch.optim.Adam(p, r, weight_decay=d)),
    ("adamw", 0.01, lambda p, r, d: torch.optim.AdamW(p, r, weight_decay=d)),
    ("adagrad", 0.1, lambda p, r, d: torch.optim.Adagrad(p, r, weight_decay=d)),
    ("adadelta", 1.0, lambda p, r, d: torch.optim.Adadelta(p, r, weight_decay=d)),
    ("rmsprop", 0.01, lambda p, r, d: torch.optim.RMSprop(p, r, weight_decay=d)),
]


def first_param(index):
    return (index * 29 % 64 - 32) / 32


def gradient(step, index):
    return ((index * 7919 + step * 104729 + index * step * 31) % 1024 - 511) / 512


def train(make, rate, weight_decay):
    params = torch.tensor([first_param(i) for i in range(PARAMS)], requires_grad=True)
    optimizer = make([params], rate, weight_decay)
    for step in range(STEPS):
        params.grad = torch.tensor([gradient(step, i) for i in range(PARAMS)])
        optimizer.step()
    return params.tolist()


def main():
    print("/* What PyTorch's optimizers compute, written by record_optimizers.py with PyTorch "
          f"{torch.__version__}. */")
    print("#ifndef TESTS_GOLDEN_OPTIMIZERS_H")
    print("#define TESTS_GOLDEN_OPTIMIZERS_H")
    print()
    print(f"#define GOLDEN_PARAMS       {PARAMS}")
    print(f"#define GOLDEN_STEPS        {STEPS}")
    print(f"#define GOLDEN_MOMENTUM     {MOMENTUM}")
    print()
    print("struct golden_optimizer {")
    print("    const char *name;")
    print("    double rate, weight_decay;")
    print("    float params[GOLDEN_PARAMS]; // after GOLDEN_STEPS steps")
    print("};")
    print()
    print("static const struct golden_optimizer golden_optimizers[] = {")
    for name, rate, make in OPTIMIZERS:
        for weight_decay in (0, WEIGHT_DECAY):
            values = train(make, rate, weight_decay)
            print(f'{{.name = "{name}", .rate = {rate}, .weight_decay = {weight_decay},')
            print(".params = {" + ", ".join(f"{value:.9e}F" for value in values) + "}},")
    print("};")
    print()
    print("#endif")


if __name__ == "__main__":
    main()
