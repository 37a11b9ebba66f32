"""Adds up the gradients of several small batches for one step, and clips their mean.

    ringside run -n 2 --mode ring -- python3 accumulate.py --passes 4 --clip 1 --data DIR

DIR has Fashion-MNIST's IDX files; without --data it is $RINGSIDE_DATA/fashion-mnist. A step takes
passes x batch-size images of each process, of which memory never holds more than batch-size, and
gradients travel once. synchronize() waits for the mean of all processes, so that clipping sees it.

Servers take gradients as they come, with nothing to clip between: in ps-sync, ps-ssp:S and ps-async
it needs --clip 0, and the job the script's optimizer:

    ringside run -n 2 --mode ps-sync --optimizer momentum --momentum 0.9 --lr 0.05 --
        python3 accumulate.py --passes 4 --clip 0 --data DIR

Under Horovod, with its import in the place of ours:

    horovodrun -np 2 python3 accumulate.py --passes 4 --clip 1 --data DIR
"""

from __future__ import annotations

import argparse

import images
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

import ringside.torch as hvd  # under Horovod: import horovod.torch as hvd


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Adds up gradients of several batches, and clips.")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=32, help="of each backward pass")
    parser.add_argument("--passes", type=int, default=4, help="backward passes in a step")
    parser.add_argument("--clip", type=float, default=1.0, help="longest gradient; 0: any length")
    parser.add_argument("--lr", type=float, default=0.05, help="learning rate")
    parser.add_argument("--limit", type=int, default=0, help="images; 0: all")
    parser.add_argument("--data", metavar="DIR", help="of Fashion-MNIST's files")
    return parser.parse_args()


def compute_gradients(
    model: nn.Module, pixels: torch.Tensor, labels: torch.Tensor, passes: int
) -> float:
    """The gradient of the mean loss of a step's images, a part of them at a time."""
    total = 0.0
    for part, wanted in zip(pixels.chunk(passes), labels.chunk(passes)):
        loss = F.cross_entropy(model(images.to_floats(part)), wanted) / passes
        loss.backward()  # adds to what the passes before have left
        total += loss.item()
    return total


def update(model: nn.Module, optimizer: torch.optim.Optimizer, clip: float) -> float:
    """Makes the step. Returns how long the mean gradient was, or 0 where nobody looked."""
    if clip == 0:
        optimizer.step()
        return 0.0
    optimizer.synchronize()
    length = torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
    with optimizer.skip_synchronize():
        optimizer.step()
    return float(length)


def main() -> None:
    options = parse()
    hvd.init()
    torch.manual_seed(3)
    training = images.fashion_mnist(options.data, is_training=True, limit=options.limit)
    sampler = DistributedSampler(training, num_replicas=hvd.size(), rank=hvd.rank())
    # A last step with fewer images would have fewer passes.
    per_step = options.passes * options.batch_size
    loader = DataLoader(training, batch_size=per_step, sampler=sampler, drop_last=True)
    if len(loader) == 0:
        raise ValueError(f"{len(sampler)} images of a process are fewer than a step's {per_step}")

    model = nn.Sequential(nn.Flatten(), nn.Linear(28 * 28, 128), nn.ReLU(), nn.Linear(128, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=options.lr, momentum=0.9)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    optimizer = hvd.DistributedOptimizer(
        optimizer,
        named_parameters=model.named_parameters(),
        backward_passes_per_step=options.passes,
    )

    for epoch in range(options.epochs):
        sampler.set_epoch(epoch)
        loss_sum, longest = 0.0, 0.0
        for pixels, labels in loader:
            optimizer.zero_grad()
            loss = compute_gradients(model, pixels, labels, options.passes)
            longest = max(longest, update(model, optimizer, options.clip))
            loss_sum += loss
            if hasattr(hvd, "report"):  # Horovod has none
                hvd.report(loss=loss, images=len(labels))
        mean = hvd.allreduce(torch.tensor(loss_sum / len(loader)), name="loss").item()
        if hvd.rank() == 0:
            length = f", longest gradient {longest:.3f}" if options.clip > 0 else ""
            print(f"epoch {epoch + 1}: loss {mean:.4f}{length}")


if __name__ == "__main__":
    main()
