"""Trains a ResNet on CIFAR-10: a rate that follows the number of processes, and its warm-up.

    ringside run -n 4 --mode ring -- python3 cifar10_resnet.py --data DIR

DIR has the binary files data_batch_1.bin ...; without --data it is $RINGSIDE_DATA/cifar10. N
processes train with N times the images in a step, and with N times the rate: it grows from the one
of a single process during the first epochs, and falls along half a cosine afterwards.

In ps-sync, ps-ssp:S and ps-async servers make the updates and have the rate, so the job's options
say the same schedule. The script prints how many steps it makes; --warmup-epochs is a share of
them: here 1 of 10 epochs.

    ringside run -n 4 --mode ps-sync --optimizer momentum --momentum 0.9 --weight-decay 5e-4
        --lr 0.05 --lr-scale linear --lr-schedule cosine --warmup-epochs 0.1 --steps 1960 --
        python3 cifar10_resnet.py --data DIR

Under Horovod, with its import in the place of ours:

    horovodrun -np 4 python3 cifar10_resnet.py --data DIR
"""

from __future__ import annotations

import argparse
import math

import images
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

import ringside.torch as hvd  # under Horovod: import horovod.torch as hvd


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Trains a ResNet on CIFAR-10.")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--warmup-epochs", type=float, default=1.0)
    parser.add_argument("--batch-size", type=int, default=64, help="of each process")
    parser.add_argument("--lr", type=float, default=0.05, help="rate of a single process")
    parser.add_argument("--blocks", type=int, default=3, help="6 layers each, and 2")
    parser.add_argument("--limit", type=int, default=0, help="images of each set; 0: all")
    parser.add_argument("--data", metavar="DIR", help="of CIFAR-10's binary files")
    return parser.parse_args()


class Block(nn.Module):
    """Two convolutions, and a way around them."""

    def __init__(self, before: int, after: int):
        super().__init__()
        stride = after // before
        self.conv1 = nn.Conv2d(before, after, 3, stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(after)
        self.conv2 = nn.Conv2d(after, after, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(after)
        self.around = nn.Sequential()
        if stride > 1:
            self.around.append(nn.Conv2d(before, after, 1, stride, bias=False))
            self.around.append(nn.BatchNorm2d(after))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(y)) + self.around(x))


def make_model(blocks: int) -> nn.Module:
    """Three stages of as many blocks, each with twice the channels of the one before."""
    layers: list[nn.Module] = [nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16)]
    layers.append(nn.ReLU())
    channels = 16
    for width in (16, 32, 64):
        for _ in range(blocks):
            layers.append(Block(channels, width))
            channels = width
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10)]
    return nn.Sequential(*layers)


def factor_at(step: int, warmup_steps: int, total_steps: int) -> float:
    """What the rate of N processes is multiplied by."""
    if step < warmup_steps:
        return (1 + (hvd.size() - 1) * step / warmup_steps) / hvd.size()
    past = (step - warmup_steps) / max(1, total_steps - warmup_steps)
    return (1 + math.cos(math.pi * min(1.0, past))) / 2


def mirror(pixels: torch.Tensor) -> torch.Tensor:
    """Every other image, at random, with left and right exchanged."""
    is_mirrored = torch.rand(len(pixels), 1, 1, 1) < 0.5
    return torch.where(is_mirrored, pixels.flip(3), pixels)


@torch.no_grad()
def average_statistics(model: nn.Module) -> None:
    """Each process normalises its own batches; all test with the mean of what they have seen."""
    for name, buffer in model.named_buffers():
        if buffer.is_floating_point():
            hvd.allreduce_(buffer, name=name)


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
    if hasattr(hvd, "report") and count > 0:  # Horovod has none
        hvd.report(accuracy=correct / count, test_images=count, test_loss=loss_sum / count)
    sums = hvd.allreduce(torch.tensor([correct, count]), name="test", op=hvd.Sum)
    return float(sums[0] / sums[1])


def main() -> None:
    options = parse()
    hvd.init()
    training = images.cifar10(options.data, is_training=True, limit=options.limit)
    testing = images.cifar10(options.data, is_training=False, limit=options.limit)
    testing = images.share(testing, hvd.rank(), hvd.size())
    sampler = DistributedSampler(training, num_replicas=hvd.size(), rank=hvd.rank())
    loader = DataLoader(training, batch_size=options.batch_size, sampler=sampler)
    total_steps = options.epochs * len(loader)
    warmup_steps = round(options.warmup_epochs * len(loader))
    if hvd.rank() == 0:
        print(f"{total_steps} steps, of which {warmup_steps} warm up")

    torch.manual_seed(7)
    model = make_model(options.blocks)
    optimizer = torch.optim.SGD(
        model.parameters(), lr=options.lr * hvd.size(), momentum=0.9, weight_decay=5e-4
    )
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    scheduler = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: factor_at(step, warmup_steps, total_steps)
    )
    torch.manual_seed(100 + hvd.rank())  # each mirrors others of its images

    for epoch in range(options.epochs):
        sampler.set_epoch(epoch)
        model.train()
        loss_sum = 0.0
        for pixels, labels in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(images.to_floats(mirror(pixels))), labels)
            loss.backward()
            optimizer.step()
            scheduler.step()
            loss_sum += loss.item()
            if hasattr(hvd, "report"):
                hvd.report(loss=loss.item(), images=len(labels))
        mean = hvd.allreduce(torch.tensor(loss_sum / len(loader)), name="loss").item()
        average_statistics(model)
        accuracy = test(model, testing)
        if hvd.rank() == 0:
            rate = scheduler.get_last_lr()[0]
            print(f"epoch {epoch + 1}: loss {mean:.4f}, accuracy {accuracy:.4f}, rate {rate:.4f}")


if __name__ == "__main__":
    main()
