"""Keeps checkpoints, goes on from the last one, and averages what all processes measure.

    ringside run -n 2 --mode ring -- python3 resume.py --checkpoint last.pt --data DIR

Rank 0 alone writes and reads the file; the others hear from it, by broadcast_object, at which epoch
they are, and have its parameters and its optimizer's state. The same command once more, with more
--epochs, goes on, and ends with the bits of a run that was never interrupted.

DIR has Fashion-MNIST's IDX files; without --data it is $RINGSIDE_DATA/fashion-mnist. In ps-sync,
ps-ssp:S and ps-async servers make the updates, with the script's optimizer. Their momentum is not
in the file: there it begins at 0 again.

    ringside run -n 2 --mode ps-sync --optimizer momentum --momentum 0.9 --lr 0.01 --
        python3 resume.py --checkpoint last.pt --data DIR

Under Horovod, with its import in the place of ours:

    horovodrun -np 2 python3 resume.py --checkpoint last.pt --data DIR
"""

from __future__ import annotations

import argparse
import os

import images
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

import ringside.torch as hvd  # under Horovod: import horovod.torch as hvd


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Keeps checkpoints, and goes on from the last.")
    parser.add_argument("--epochs", type=int, default=3, help="in all, of all runs")
    parser.add_argument("--batch-size", type=int, default=64, help="of each process")
    parser.add_argument("--lr", type=float, default=0.01, help="learning rate")
    parser.add_argument("--limit", type=int, default=0, help="images of each set; 0: all")
    parser.add_argument("--data", metavar="DIR", help="of Fashion-MNIST's files")
    parser.add_argument("--checkpoint", metavar="FILE", default="checkpoint.pt")
    return parser.parse_args()


class Mean:
    """Of a number that each process measures again and again, over all of them."""

    def __init__(self, name: str):
        self.name = name
        self.sums = torch.zeros(2, dtype=torch.float64)  # of the numbers, and of their weights

    def add(self, value: float, weight: int) -> None:
        self.sums += torch.tensor([value * weight, weight], dtype=torch.float64)

    def own(self) -> float:
        return float(self.sums[0] / self.sums[1])

    def of_all(self) -> float:
        """All processes have to ask at once."""
        sums = hvd.allreduce(self.sums, name=self.name)
        return float(sums[0] / sums[1])


def load(path: str, model: nn.Module, optimizer: torch.optim.Optimizer) -> int:
    """How many epochs are done; 0 without a file. For rank 0."""
    if not os.path.exists(path):
        return 0
    state = torch.load(path, map_location="cpu")
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return int(state["epochs"])


def save(path: str, model: nn.Module, optimizer: torch.optim.Optimizer, epochs: int) -> None:
    """For rank 0. Whoever stops it in between finds the file of the epoch before."""
    state = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "epochs": epochs,
    }
    torch.save(state, path + ".new")
    os.replace(path + ".new", path)


@torch.no_grad()
def test(model: nn.Module, dataset: TensorDataset) -> float:
    """The mean accuracy of all processes, each of which tests its own images."""
    accuracy, loss = Mean("accuracy"), Mean("test loss")
    for pixels, labels in DataLoader(dataset, batch_size=500):
        output = model(images.to_floats(pixels))
        accuracy.add((output.argmax(1) == labels).float().mean().item(), len(labels))
        loss.add(F.cross_entropy(output, labels).item(), len(labels))
    if hasattr(hvd, "report") and len(dataset) > 0:  # Horovod has none
        hvd.report(accuracy=accuracy.own(), test_images=len(dataset), test_loss=loss.own())
    return accuracy.of_all()


def main() -> None:
    options = parse()
    hvd.init()
    torch.manual_seed(5)
    training = images.fashion_mnist(options.data, is_training=True, limit=options.limit)
    testing = images.fashion_mnist(options.data, is_training=False, limit=options.limit)
    testing = images.share(testing, hvd.rank(), hvd.size())
    sampler = DistributedSampler(training, num_replicas=hvd.size(), rank=hvd.rank())
    loader = DataLoader(training, batch_size=options.batch_size, sampler=sampler)

    model = nn.Sequential(nn.Flatten(), nn.Linear(28 * 28, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=options.lr, momentum=0.9)
    done = load(options.checkpoint, model, optimizer) if hvd.rank() == 0 else 0
    done = hvd.broadcast_object(done, root_rank=0, name="epochs")
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    print(f"process {hvd.rank()} of {hvd.size()} begins after {done} epochs")

    for epoch in range(done, options.epochs):
        sampler.set_epoch(epoch)
        mean_loss = Mean("loss")
        for pixels, labels in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(images.to_floats(pixels)), labels)
            loss.backward()
            optimizer.step()
            mean_loss.add(loss.item(), len(labels))
            if hasattr(hvd, "report"):
                hvd.report(loss=loss.item(), images=len(labels))
        train_loss, accuracy = mean_loss.of_all(), test(model, testing)
        if hvd.rank() == 0:
            save(options.checkpoint, model, optimizer, epoch + 1)
            print(f"epoch {epoch + 1}: loss {train_loss:.4f}, accuracy {accuracy:.4f}")


if __name__ == "__main__":
    main()
