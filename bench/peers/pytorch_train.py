#!/usr/bin/env python3
"""The same training in PyTorch: forward, backward and momentum SGD over batches in memory.

usage: pytorch_train.py MODEL BATCH THREADS LAYOUT [ROUNDS]      LAYOUT: default or channels_last

Prints a line of JSON for each round of about half a second. Run it with Debian's /usr/bin/python3
(package python3-torch). The settings of malloc come from the environment: see bench/train.
"""
import json
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


def main():
    name, batch, threads, layout = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    rounds = int(sys.argv[5]) if len(sys.argv) > 5 else 1
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    model = {"cnn": cnn, "lenet5": lenet5}[name]()
    shape = (1, 28, 28) if name == "lenet5" else (3, 32, 32)
    batches = [(torch.rand(batch, *shape) * 2 - 1, torch.randint(0, 10, (batch,)))
               for _ in range(4)]
    if layout == "channels_last":
        model = model.to(memory_format=torch.channels_last)
        batches = [(x.contiguous(memory_format=torch.channels_last), y) for x, y in batches]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    model.train()

    def step(index):
        x, y = batches[index % len(batches)]
        optimizer.zero_grad(set_to_none=False)
        functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    for index in range(5):
        step(index)
    for _ in range(rounds):
        start, steps = time.perf_counter(), 0
        while time.perf_counter() - start < 0.5:
            step(steps)
            steps += 1
        seconds = time.perf_counter() - start
        print(json.dumps({"model": name, "batch": batch, "threads": threads, "layout": layout,
                          "images_per_second": steps * batch / seconds}), flush=True)


if __name__ == "__main__":
    main()
