#!/usr/bin/env python3
"""The same training in PyTorch: forward, backward and momentum SGD over batches in memory.

usage: pytorch_train.py MODEL BATCH THREADS [--layout default|channels_last]
                        [--execution eager|compile|compile-cpp|reduce-overhead|max-autotune]
                        [--optimizer default|foreach|fused] [--deterministic]
                        [--rounds COUNT] [--size PIXELS] [--precision fp32|tf32|bf16]
                        [--device cpu|cuda]

tf32 is for a GPU, as are reduce-overhead (CUDA graphs) and max-autotune; bf16 is autocast, the parameters in float. Batches of a GPU lie in page-locked memory
of the host and go up in every step, as ours do.

Prints a line of JSON for each round of about half a second. The settings of malloc and OpenMP come from
the environment: see bench/train, which finds the best of all of them.
"""
import argparse
import json
import resource
import sys
import time

import torch

sys.dont_write_bytecode = True

import pytorch_models as models  # noqa: E402


EXECUTIONS = ("eager", "compile", "compile-cpp", "reduce-overhead", "max-autotune")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", choices=models.MODELS)
    parser.add_argument("batch", type=int)
    parser.add_argument("threads", type=int)
    parser.add_argument("--layout", default="default", choices=("default", "channels_last"))
    parser.add_argument("--execution", default="eager", choices=EXECUTIONS)
    parser.add_argument("--optimizer", default="default", choices=("default", "foreach", "fused"))
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--size", type=int, default=0, help="of images")
    parser.add_argument("--precision", default="fp32", choices=("fp32", "tf32", "bf16"))
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--deterministic", action="store_true",
                        help="on a GPU: the same bits in every run")
    return parser.parse_args()


def memory_mb(device):
    if device == "cuda":
        return torch.cuda.max_memory_allocated() / 2 ** 20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


class Trainer:
    """Takes the batches in turn."""

    def __init__(self, arguments):
        is_channels_last = arguments.layout == "channels_last"
        self.device, self.is_bf16 = arguments.device, arguments.precision == "bf16"
        self.batches = models.make_batches(arguments.model, arguments.batch, arguments.size,
                                           is_channels_last)
        if self.device == "cuda":
            self.batches = [(x.pin_memory(), y.pin_memory()) for x, y in self.batches]
        model = models.make_model(arguments.model, arguments.size,
                                  is_channels_last).to(self.device)
        self.loss = models.compile_loss(model, arguments.execution)
        self.optimizer = models.make_optimizer(model, arguments.optimizer)
        self.steps = 0

    def step(self):
        x, y = (part.to(self.device, non_blocking=True)
                for part in self.batches[self.steps % len(self.batches)])
        self.steps += 1
        self.optimizer.zero_grad()
        with torch.autocast(self.device, torch.bfloat16, enabled=self.is_bf16):
            loss = self.loss(x, y)
        loss.backward()
        self.optimizer.step()
        return loss

    def wait(self):
        if self.device == "cuda":
            torch.cuda.synchronize()


def main():
    arguments = parse_arguments()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    models.set_precision(arguments.precision, arguments.deterministic)
    trainer = Trainer(arguments)
    for _ in range(20 if arguments.device == "cuda" else 5):
        trainer.step()
    trainer.wait()
    for _ in range(arguments.rounds):
        start, first = time.perf_counter(), trainer.steps
        while time.perf_counter() - start < 0.5:
            # A trainer reads every loss, as ours does.
            trainer.step().item()
        trainer.wait()
        seconds = time.perf_counter() - start
        print(json.dumps({"model": arguments.model, "batch": arguments.batch,
                          "threads": arguments.threads,
                          "images_per_second": (trainer.steps - first) * arguments.batch / seconds,
                          "memory_mb": memory_mb(arguments.device)}), flush=True)


if __name__ == "__main__":
    main()
