"""Trains a small network on Fashion-MNIST: what makes a script of PyTorch one of many processes.

    ringside run -n 2 --mode ring -- python3 fashion_mnist.py --data DIR

DIR has the IDX files, plain or .gz; without --data it is $RINGSIDE_DATA/fashion-mnist. In ps-sync,
ps-ssp:S and ps-async servers make the updates, with the optimizer of the script:

    ringside run -n 2 --mode ps-async --optimizer momentum --momentum 0.9 --lr 0.02 --
        python3 fashion_mnist.py --data DIR

With --lr RATE, both have it. Under Horovod, with its import in the place of ours:

    horovodrun -np 2 python3 fashion_mnist.py --data DIR
"""

from __future__ import annotations

import argparse

import images
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

import ringside.torch as hvd  # under Horovod: import horovod.torch as hvd


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Trains a small network on Fashion-MNIST.")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=64, help="of each process")
    parser.add_argument("--lr", type=float, default=0.02, help="learning rate")
    parser.add_argument("--limit", type=int, default=0, help="images of each set; 0: all")
    parser.add_argument("--data", metavar="DIR", help="of Fashion-MNIST's files")
    return parser.parse_args()


def make_model() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * 7 * 7, 64),
        nn.ReLU(),
        nn.Linear(64, 10),
    )


def train(model: nn.Module, optimizer: torch.optim.Optimizer, loader: DataLoader) -> float:
    """An epoch. Returns the mean loss of this process's images."""
    model.train()
    loss_sum, count = 0.0, 0
    for pixels, labels in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images.to_floats(pixels)), labels)
        loss.backward()
        optimizer.step()
        loss_sum += loss.item() * len(labels)
        count += len(labels)
        if hasattr(hvd, "report"):  # Horovod has none
            hvd.report(loss=loss.item(), images=len(labels))
    return loss_sum / count


@torch.no_grad()
def test(model: nn.Module, dataset: TensorDataset) -> float:
    """The accuracy on the images of all processes, of which this one tests its own."""
    model.eval()
    loss_sum, correct = 0.0, 0
    for pixels, labels in DataLoader(dataset, batch_size=500):
        output = model(images.to_floats(pixels))
        loss_sum += F.cross_entropy(output, labels, reduction="sum").item()
        correct += int((output.argmax(1) == labels).sum())
    count = len(dataset)
    if hasattr(hvd, "report") and count > 0:
        hvd.report(accuracy=correct / count, test_images=count, test_loss=loss_sum / count)
    sums = hvd.allreduce(torch.tensor([correct, count]), name="test", op=hvd.Sum)
    return float(sums[0] / sums[1])


def main() -> None:
    options = parse()
    hvd.init()
    torch.manual_seed(42)

    training = images.fashion_mnist(options.data, is_training=True, limit=options.limit)
    testing = images.fashion_mnist(options.data, is_training=False, limit=options.limit)
    testing = images.share(testing, hvd.rank(), hvd.size())
    # Each process trains with its part of the images, another one in each epoch.
    sampler = DistributedSampler(training, num_replicas=hvd.size(), rank=hvd.rank())
    loader = DataLoader(training, batch_size=options.batch_size, sampler=sampler)

    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=options.lr, momentum=0.9)
    # All processes begin with what the first one has ...
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    # ... and each step takes the gradients of all.
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())

    for epoch in range(options.epochs):
        sampler.set_epoch(epoch)
        loss = train(model, optimizer, loader)
        loss = hvd.allreduce(torch.tensor(loss), name="loss").item()  # the mean of all processes
        accuracy = test(model, testing)
        if hvd.rank() == 0:
            print(f"epoch {epoch + 1}: loss {loss:.4f}, accuracy {accuracy:.4f}")


if __name__ == "__main__":
    main()
