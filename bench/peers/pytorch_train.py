#!/usr/bin/env python3
"""The same training in PyTorch: forward, backward and momentum SGD over batches in memory.

usage: pytorch_train.py MODEL BATCH THREADS LAYOUT [ROUNDS [SIZE [PRECISION [DEVICE]]]]

LAYOUT is default, channels_last, or compiled: channels_last through torch.compile. PRECISION is fp32,
tf32 (on a GPU) or bf16: autocast, the parameters in float. DEVICE is cpu or cuda; batches of a GPU lie
in page-locked memory of the host and go up in every step, as ours do.

Prints a line of JSON for each round of about half a second. Run it with Debian's /usr/bin/python3
(package python3-torch). The settings of malloc come from the environment: see bench/train.
"""
import json
import resource
import sys
import time

import torch
from torch import nn
from torch.nn import functional


def cnn():
    return nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(inplace=True),
        nn.Conv2d(32, 32, 3), nn.ReLU(inplace=True),
        nn.MaxPool2d(2), nn.Dropout(0.25),
        nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(inplace=True),
        nn.Conv2d(64, 64, 3), nn.ReLU(inplace=True),
        nn.MaxPool2d(2), nn.Dropout(0.25),
        nn.Flatten(), nn.Linear(2304, 512), nn.ReLU(inplace=True), nn.Dropout(0.5),
        nn.Linear(512, 10))


def lenet5():
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(inplace=True), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5), nn.ReLU(inplace=True), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(400, 120), nn.ReLU(inplace=True),
        nn.Linear(120, 84), nn.ReLU(inplace=True), nn.Linear(84, 10))


class Subsample(nn.Module):
    """Every stride-th row and column, and channels of zeros."""

    def __init__(self, stride, new_channels):
        super().__init__()
        self.stride, self.new_channels = stride, new_channels

    def forward(self, x):
        x = x[:, :, ::self.stride, ::self.stride]
        return functional.pad(x, (0, 0, 0, 0, 0, self.new_channels)) if self.new_channels else x


class Block(nn.Module):
    """Of resnet20: relu behind the sum."""

    def __init__(self, inputs, channels, stride):
        super().__init__()
        self.branch = nn.Sequential(
            nn.Conv2d(inputs, channels, 3, stride, 1, bias=False), nn.BatchNorm2d(channels),
            nn.ReLU(inplace=True),
            nn.Conv2d(channels, channels, 3, 1, 1, bias=False), nn.BatchNorm2d(channels))
        self.shortcut = Subsample(stride, channels - inputs) if stride > 1 else nn.Identity()

    def forward(self, x):
        return functional.relu(self.branch(x) + self.shortcut(x), inplace=True)


def resnet20():
    layers = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(inplace=True)]
    inputs = 16
    for channels in (16, 32, 64):
        for _ in range(3):
            layers.append(Block(inputs, channels, 2 if inputs != channels else 1))
            inputs = channels
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


class BlockV2(nn.Module):
    """Of resnet50v2, as Keras has it: pre-activation, the last block of a stage strides."""

    def __init__(self, inputs, narrow, stride, has_projection):
        super().__init__()
        self.norm = nn.Sequential(nn.BatchNorm2d(inputs, 1.001e-5), nn.ReLU(inplace=True))
        self.projection = nn.Conv2d(inputs, 4 * narrow, 1) if has_projection else None
        self.shortcut = Subsample(stride, 0) if stride > 1 else nn.Identity()
        self.branch = nn.Sequential(
            nn.Conv2d(inputs, narrow, 1, bias=False), nn.BatchNorm2d(narrow, 1.001e-5),
            nn.ReLU(inplace=True),
            nn.Conv2d(narrow, narrow, 3, stride, 1, bias=False), nn.BatchNorm2d(narrow, 1.001e-5),
            nn.ReLU(inplace=True),
            nn.Conv2d(narrow, 4 * narrow, 1))

    def forward(self, x):
        normed = self.norm(x)
        shortcut = self.projection(normed) if self.projection else self.shortcut(x)
        return self.branch(normed) + shortcut


def resnet50v2():
    layers = [nn.Conv2d(3, 64, 7, 2, 3), nn.ZeroPad2d(1), nn.MaxPool2d(3, 2)]
    inputs = 64
    for stage, blocks in enumerate((3, 4, 6, 3)):
        for block in range(blocks):
            stride = 2 if block + 1 == blocks and stage < 3 else 1
            layers.append(BlockV2(inputs, 64 << stage, stride, block == 0))
            inputs = 256 << stage
    return nn.Sequential(*layers, nn.BatchNorm2d(inputs, 1.001e-5), nn.ReLU(inplace=True),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 10))


def make_batches(batch, shape, layout, device):
    batches = [(torch.rand(batch, *shape) * 2 - 1, torch.randint(0, 10, (batch,)))
               for _ in range(4)]
    if layout != "default":
        batches = [(x.contiguous(memory_format=torch.channels_last), y) for x, y in batches]
    return [(x.pin_memory(), y.pin_memory()) for x, y in batches] if device == "cuda" else batches


def make_model(name, layout, device):
    model = {"cnn": cnn, "lenet5": lenet5, "resnet20": resnet20, "resnet50v2": resnet50v2}[name]()
    model = model.to(device)
    if layout != "default":
        model = model.to(memory_format=torch.channels_last)
    model.train()
    return model, torch.compile(model) if layout == "compiled" else model


def set_precision(precision):
    """Of products on a GPU; cuDNN takes the fastest algorithms that it finds."""
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    torch.backends.cudnn.allow_tf32 = precision == "tf32"
    torch.backends.cudnn.benchmark = True


def memory_mb(device):
    if device == "cuda":
        return torch.cuda.max_memory_allocated() / 2 ** 20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main():
    name, batch, threads, layout = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    rounds = int(sys.argv[5]) if len(sys.argv) > 5 else 1
    size = int(sys.argv[6]) if len(sys.argv) > 6 and int(sys.argv[6]) else 32
    precision = sys.argv[7] if len(sys.argv) > 7 else "fp32"
    device = sys.argv[8] if len(sys.argv) > 8 else "cpu"
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    set_precision(precision)
    shape = (1, 28, 28) if name == "lenet5" else (3, size, size)
    batches = make_batches(batch, shape, layout, device)
    model, call = make_model(name, layout, device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def step(index):
        x, y = (part.to(device, non_blocking=True) for part in batches[index % len(batches)])
        optimizer.zero_grad(set_to_none=device == "cuda")
        with torch.autocast(device, torch.bfloat16, enabled=precision == "bf16"):
            loss = functional.cross_entropy(call(x), y)
        loss.backward()
        optimizer.step()
        return loss

    def wait():
        if device == "cuda":
            torch.cuda.synchronize()

    for index in range(20 if device == "cuda" else 5):
        step(index)
    wait()
    for _ in range(rounds):
        start, steps = time.perf_counter(), 0
        while time.perf_counter() - start < 0.5:
            # A trainer reads every loss, as ours does.
            step(steps).item()
            steps += 1
        wait()
        seconds = time.perf_counter() - start
        print(json.dumps({"model": name, "batch": batch, "threads": threads, "layout": layout,
                          "images_per_second": steps * batch / seconds,
                          "memory_mb": memory_mb(device)}), flush=True)


if __name__ == "__main__":
    main()
