#!/usr/bin/env python3
"""A PyTorch script on a GPU, in a job or, with --alone, without one.

usage: train_torch.py [--alone] [--device cuda|cpu] [--batch 128] [--steps 30]

Prints a line of JSON: a digest of the parameters, the rate without the first steps, how many gradients
were sent during backward and how many at the end of a step, and what was warned of. Started by first-hour.
"""
import argparse
import hashlib
import json
import os
import sys
import time
import warnings

sys.dont_write_bytecode = True
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # sums in one order

import torch  # noqa: E402

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench", "peers"))
import pytorch_models as models  # noqa: E402

WARMUP = 10  # steps


def count_sends(exchange):
    """Counts the gradients that travel while backward goes on, and after it."""
    counts = {"during": 0, "after": 0}
    come = exchange._vectors.come_gradients

    def counted(waits):
        for index in come(waits):
            counts["after" if waits else "during"] += 1
            yield index

    exchange._vectors.come_gradients = counted
    return counts


def digest_of(model):
    bits = b"".join(p.detach().cpu().contiguous().numpy().tobytes() for p in model.parameters())
    return hashlib.sha256(bits).hexdigest()[:16]


def train(arguments, hvd):
    torch.manual_seed(1)
    model = models.make_model("resnet20", 0, False).to(arguments.device)
    optimizer, counts = models.make_optimizer(model, "default"), {}
    torch.manual_seed(2 + (hvd.rank() if hvd else 0))
    batches = [(x.to(arguments.device), y.to(arguments.device))
               for x, y in models.make_batches("resnet20", arguments.batch, 0, False)]
    if hvd:
        hvd.broadcast_parameters(model.state_dict(), root_rank=0)
        optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
        counts = count_sends(optimizer._ringside)
    loss_of, began = models.compile_loss(model, "eager"), 0.0
    for index in range(arguments.steps):
        if index == WARMUP:
            began = time.perf_counter()  # the loss was waited for
        optimizer.zero_grad()
        loss = loss_of(*batches[index % len(batches)])
        loss.backward()
        optimizer.step()
        last = loss.item()
    seconds = time.perf_counter() - began
    return {"digest": digest_of(model), "loss": last, "sends": counts,
            "images_per_second": (arguments.steps - WARMUP) * arguments.batch / seconds}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--steps", type=int, default=30)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.benchmark = False
    hvd = None
    if not arguments.alone:
        import ringside.torch as hvd  # pylint: disable=import-outside-toplevel
        hvd.init()
        if arguments.device == "cuda":
            torch.cuda.set_device(hvd.local_rank() % torch.cuda.device_count())
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        result = train(arguments, hvd)
    result["warnings"] = [str(one.message) for one in warned if "ringside" in str(one.message)]
    if hvd:
        hvd.shutdown()
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
