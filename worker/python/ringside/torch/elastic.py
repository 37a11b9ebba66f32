"""Goes on when the job loses or gains processes, with the names of horovod.torch.elastic.

    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    state = hvd.elastic.TorchState(model=model, optimizer=optimizer, epoch=0, batch=0)

    @hvd.elastic.run
    def train(state):
        for state.epoch in range(state.epoch, epochs):
            ...
            state.commit()

    train(state)

The launcher has to be told: `ringside run -n 4 --mode ring --on-loss commit -- python3 train.py`.
When a process is lost, those that are left go back to their last commit, of which rank 0 gives its
own to all, and call the function again. When one comes, they do so from the commit at which it is
let in, so nothing is made twice. In modes with servers, these begin anew with what rank 0 has.
"""

from __future__ import annotations

import copy
import functools
import random
from collections.abc import Iterable, Iterator, Sized
from typing import Any, Callable, TypeVar

import torch
from torch.utils.data import Sampler

from ringside import _job
from ringside._library import HorovodInternalError, HostsUpdatedInterrupt, UnsupportedError
from ringside.torch.collectives import (
    allgather_object,
    broadcast_object,
    broadcast_optimizer_state,
    broadcast_parameters,
)
from ringside.torch.process import find_places, rank, size

__all__ = [
    "ElasticSampler",
    "HorovodInternalError",
    "HostsUpdatedInterrupt",
    "ObjectState",
    "State",
    "TorchState",
    "run",
]

_Function = TypeVar("_Function", bound=Callable[..., Any])


def _exchange() -> Any:
    """Of the job's DistributedOptimizer; None without one."""
    optimizer = _job.current().optimizer
    if optimizer is None:
        return None
    if not hasattr(optimizer, "_ringside"):
        raise UnsupportedError(
            "elastic: a model with exchange_hook does not go on after a loss; use "
            "DistributedOptimizer"
        )
    return optimizer._ringside


class State:
    """What training goes on from. A class of one's own has save, restore and sync."""

    def __init__(self) -> None:
        self._reset_callbacks: list[Callable[[], Any]] = []
        self._saved_steps = 0  # of the job, that were made when the state was saved

    def register_reset_callbacks(self, callbacks: Iterable[Callable[[], Any]]) -> None:
        """Functions to call when rank and size have changed, before the state is given to all: to
        fit a learning rate to the size, for example."""
        self._reset_callbacks.extend(callbacks)

    def on_reset(self) -> None:
        """Rank and size have changed."""
        self.reset()
        for callback in self._reset_callbacks:
            callback()

    def commit(self) -> None:
        """Keeps the state to go back to. All processes call it after the same steps, and wait for
        each other. Raises HostsUpdatedInterrupt if processes wait to be let in."""
        job = _job.current()
        steps = job.steps_made()
        try:
            job.commit()
        except HostsUpdatedInterrupt:
            self._save(steps)
            raise
        self._save(steps)  # now that it counts, so that it is of the steps that the job knows

    def check_host_updates(self) -> None:
        """commit() alone lets processes in: what is made after it would be lost to them."""

    def _save(self, steps: int) -> None:
        exchange = _exchange()
        if exchange is not None:
            exchange.take_committed()
        self.save()
        self._saved_steps = steps

    def _sync(self) -> None:
        """Rank 0 gives the state to all, and all go on from the step that it is of."""
        job = _job.current()
        self._saved_steps = int(broadcast_object(self._saved_steps, root_rank=0))
        self.sync()
        job.go_on(self._saved_steps)
        exchange = _exchange()
        if exchange is not None:
            exchange.agree_again()

    def save(self) -> None:
        raise NotImplementedError

    def restore(self) -> None:
        raise NotImplementedError

    def sync(self) -> None:
        raise NotImplementedError

    def reset(self) -> None:
        """For classes of one's own."""


class ObjectState(State):
    """Values that can be pickled, each an attribute: ObjectState(epoch=0, batch=0)."""

    def __init__(self, **values: Any) -> None:
        super().__init__()
        self._saved = dict(values)
        self._give()

    def _give(self) -> None:
        for name, value in self._saved.items():
            setattr(self, name, copy.deepcopy(value))

    def save(self) -> None:
        self._saved = {name: copy.deepcopy(getattr(self, name)) for name in self._saved}

    def restore(self) -> None:
        self._give()

    def sync(self) -> None:
        self._saved = broadcast_object(
            {name: getattr(self, name) for name in self._saved}, root_rank=0
        )
        self._give()


class _Keeper:
    """A copy of what something has, by its state_dict()."""

    def __init__(self, value: Any):
        self.value = value
        self.save()

    def save(self) -> None:
        self._saved = copy.deepcopy(self.value.state_dict())

    def restore(self) -> None:
        self.value.load_state_dict(copy.deepcopy(self._saved))


class _ModelKeeper(_Keeper):
    def restore(self) -> None:
        self.value.load_state_dict(self._saved)  # which copies

    def sync(self) -> None:
        broadcast_parameters(self.value.state_dict(), root_rank=0)
        self.save()


class _OptimizerKeeper(_Keeper):
    def sync(self) -> None:
        broadcast_optimizer_state(self.value, root_rank=0)
        self.save()


class _SamplerKeeper(_Keeper):
    """What each process has trained with since the epoch began counts for all."""

    def sync(self) -> None:
        states = allgather_object(self.value.state_dict())
        epoch = states[0]["epoch"]
        done = [state["processed_indices"] for state in states if state["epoch"] == epoch]
        self.value.load_state_dict({"epoch": epoch, "processed_indices": set().union(*done)})
        self.save()


def _keeper_of(value: Any) -> Any:
    if isinstance(value, torch.nn.Module):
        return _ModelKeeper(value)
    if isinstance(value, torch.optim.Optimizer):
        return _OptimizerKeeper(value)
    if isinstance(value, ElasticSampler):
        return _SamplerKeeper(value)
    return None


class TorchState(ObjectState):
    """A model, an optimizer, and what else changes: samplers of the class ElasticSampler, models,
    optimizers, and values that can be pickled, by name."""

    def __init__(self, model: Any = None, optimizer: Any = None, **values: Any) -> None:
        self._keepers: dict[str, Any] = {}
        for name, value in {"model": model, "optimizer": optimizer, **values}.items():
            keeper = _keeper_of(value)
            if keeper is not None:
                self._keepers[name] = keeper
                object.__setattr__(self, name, value)
        rest = {name: value for name, value in values.items() if name not in self._keepers}
        super().__init__(**rest)

    def __setattr__(self, name: str, value: Any) -> None:
        keepers = self.__dict__.get("_keepers", {})
        if name in keepers:
            keepers[name] = _keeper_of(value)
            if keepers[name] is None:
                raise TypeError(f"{name} is kept as a model, an optimizer or an ElasticSampler")
        object.__setattr__(self, name, value)

    def save(self) -> None:
        for keeper in self._keepers.values():
            keeper.save()
        super().save()

    def restore(self) -> None:
        for keeper in self._keepers.values():
            keeper.restore()
        super().restore()

    def sync(self) -> None:
        for keeper in self._keepers.values():
            keeper.sync()
        super().sync()


class ElasticSampler(Sampler):  # type: ignore[misc]
    """A part of the data for each process, of what nobody has trained with in this epoch.

    After each batch, record_batch tells it what that had. After a change of processes the rest of
    the epoch is dealt anew.
    """

    def __init__(self, dataset: Sized, shuffle: bool = True, seed: int = 0) -> None:
        self.dataset, self.shuffle, self.seed = dataset, shuffle, seed
        self.epoch = 0
        self.processed_indices: set[int] = set()
        self.reset()

    def set_epoch(self, epoch: int) -> None:
        """A new epoch, of the whole data in another order."""
        self.epoch = epoch
        self.processed_indices = set()
        self.reset()

    def record_batch(self, batch_idx: int, batch_size: int) -> None:
        """The batch of this number in the loader, which has batches of this size, is done."""
        self.record_indices(self.get_indices(batch_idx, batch_size))

    def record_indices(self, indices: Iterable[int]) -> None:
        self.processed_indices.update(indices)

    def get_indices(self, batch_idx: int, batch_size: int) -> list[int]:
        begin = batch_idx * batch_size
        return self._indices[begin : begin + batch_size]

    def state_dict(self) -> dict[str, Any]:
        return {"epoch": self.epoch, "processed_indices": self.processed_indices}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.epoch = state["epoch"]
        self.processed_indices = state["processed_indices"]
        self.reset()

    def reset(self) -> None:
        """Deals what is left of the epoch to the processes that there are now."""
        count = len(self.dataset)
        left = [index for index in range(count) if index not in self.processed_indices]
        if self.shuffle:
            random.Random(self.seed + self.epoch).shuffle(left)
        share = -(-len(left) // size())
        total = share * size()
        padded = (left * (total // len(left) + 1))[:total] if left else []
        self._indices = padded[rank() :: size()]

    def __iter__(self) -> Iterator[int]:
        return iter(self._indices)

    def __len__(self) -> int:
        return len(self._indices)


def _rejoin(state: State) -> None:
    """Becomes one of the job's next processes, however often they change meanwhile."""
    job = _job.current()
    while True:
        try:
            job.rejoin()
            find_places()
            break
        except HorovodInternalError:
            continue
    exchange = _exchange()
    if exchange is not None:
        exchange.begin_again()
    state.on_reset()


def run(function: _Function) -> _Function:
    """Makes a function that trains, whose first argument is a State, go on after a loss."""

    @functools.wraps(function)
    def train(state: State, *arguments: Any, **keywords: Any) -> Any:
        while True:
            try:
                state._sync()
                return function(state, *arguments, **keywords)
            except HorovodInternalError:
                exchange = _exchange()
                if exchange is not None:
                    exchange.give_up()
                state.restore()
            except HostsUpdatedInterrupt:
                pass  # all have committed what they have
            _rejoin(state)

    return train  # type: ignore[return-value]
