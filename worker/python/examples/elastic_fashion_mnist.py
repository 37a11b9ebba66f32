"""Trains on when a process is lost, or comes back: Horovod's elastic run, on Fashion-MNIST.

    ringside run -n 3 --mode ring --on-loss commit --min-workers 2 --restarts 3 --
        python3 elastic_fashion_mnist.py --data DIR

DIR has the IDX files, plain or .gz; without --data it is $RINGSIDE_DATA/fashion-mnist. To see it
lose a process, add `--fault rank=1,step=40,kill`. In other modes it is the same: servers
begin anew with the parameters, and the state of their optimizer, of the last commit.

    ringside run -n 3 --mode ps-sync --on-loss commit -- python3 elastic_fashion_mnist.py

Under Horovod, with its import in the place of ours:

    horovodrun -np 3 --min-np 2 --host-discovery-script ./hosts.sh python3 elastic_fashion_mnist.py
"""

from __future__ import annotations

import argparse

import images
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import ringside.torch as hvd  # under Horovod: import horovod.torch as hvd


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Trains on when a process is lost, or comes.")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=64, help="of each process")
    parser.add_argument("--lr", type=float, default=0.01, help="learning rate, for each process")
    parser.add_argument("--commit-every", type=int, default=10, metavar="STEPS")
    parser.add_argument("--limit", type=int, default=0, help="images of each set; 0: all")
    parser.add_argument("--data", metavar="DIR", help="of Fashion-MNIST's files")
    return parser.parse_args()


@torch.no_grad()
def test(model: nn.Module, dataset: TensorDataset) -> float:
    """The accuracy of all processes, of which this one tests its own images."""
    own = images.share(dataset, hvd.rank(), hvd.size())
    correct = 0
    for pixels, labels in DataLoader(own, batch_size=500):
        correct += int((model(images.to_floats(pixels)).argmax(1) == labels).sum())
    if hasattr(hvd, "report") and len(own) > 0:  # Horovod has none
        hvd.report(accuracy=correct / len(own), test_images=len(own))
    sums = hvd.allreduce(torch.tensor([correct, len(own)]), name="test", op=hvd.Sum)
    return float(sums[0] / sums[1])


# What is called again, in the same processes, when others are lost or come.
@hvd.elastic.run
def train(state, training, testing, options):  # type: ignore[no-untyped-def]
    print(f"process {hvd.rank()} of {hvd.size()} begins in epoch {state.epoch + 1}", flush=True)
    while state.epoch < options.epochs:
        # The part of the epoch that nobody has trained with yet, dealt to those who are there.
        loader = DataLoader(training, batch_size=options.batch_size, sampler=state.sampler)
        for batch, (pixels, labels) in enumerate(loader):
            state.optimizer.zero_grad()
            loss = F.cross_entropy(state.model(images.to_floats(pixels)), labels)
            loss.backward()
            state.optimizer.step()
            if hasattr(hvd, "report"):
                hvd.report(loss=loss.item(), images=len(labels))
            state.sampler.record_batch(batch, options.batch_size)
            if (batch + 1) % options.commit_every == 0:
                state.commit()  # where all go back to after a loss
        accuracy = test(state.model, testing)
        state.epoch += 1
        state.sampler.set_epoch(state.epoch)
        state.commit()
        if hvd.rank() == 0:
            print(f"epoch {state.epoch}: accuracy {accuracy:.4f}", flush=True)


def main() -> None:
    options = parse()
    hvd.init()
    torch.manual_seed(42)
    training = images.fashion_mnist(options.data, is_training=True, limit=options.limit)
    testing = images.fashion_mnist(options.data, is_training=False, limit=options.limit)
    model = nn.Sequential(nn.Flatten(), nn.Linear(28 * 28, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=options.lr * hvd.size(), momentum=0.9)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    sampler = hvd.elastic.ElasticSampler(training)
    state = hvd.elastic.TorchState(model=model, optimizer=optimizer, sampler=sampler, epoch=0)

    def fit_rate() -> None:
        """The batch of all has grown, or become smaller."""
        for group in optimizer.param_groups:
            group["lr"] = options.lr * hvd.size()

    state.register_reset_callbacks([fit_rate])
    train(state, training, testing, options)


if __name__ == "__main__":
    main()
