"""The backend `ringside` of torch.distributed: a script of DistributedDataParallel in a job.

    import ringside.torch.distributed
    torch.distributed.init_process_group("ringside")

In a job of the launcher rank, size and the meeting place are the job's. With MASTER_ADDR and its
like, as torchrun sets them, they are torch's, and have to be the same as the job's.

Collectives go through the job's coordinator, with tensors of the same shape and type in all
processes. A call with async_op=True has its result at once. Gradients of DistributedDataParallel
travel by the ring with `exchange_hook`.
"""

from __future__ import annotations

import importlib
import inspect
import os
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import _create_work_from_future

from ringside import _job
from ringside._library import RingsideError, UnsupportedError
from ringside.torch import collectives, process
from ringside.torch.collectives import ReduceOp
from ringside.torch.exchange_hook import Exchanged, exchange_hook

__all__ = ["Exchanged", "exchange_hook"]

_OPERATIONS = (
    ("SUM", ReduceOp.Sum),
    ("AVG", ReduceOp.Average),
    ("MIN", ReduceOp.Min),
    ("MAX", ReduceOp.Max),
    ("PRODUCT", ReduceOp.Product),
)
_DTYPES = (
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.int32,
    torch.int64,
    torch.uint8,
    torch.bool,
)
_VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")  # what env:// needs


def _operation(op: Any, tensor: torch.Tensor) -> ReduceOp:
    for name, operation in _OPERATIONS:
        if op == getattr(dist.ReduceOp, name):
            if operation is ReduceOp.Average and not tensor.is_floating_point():
                raise UnsupportedError(
                    f"ReduceOp.AVG of {tensor.dtype}: a mean is of floats; use ReduceOp.SUM"
                )
            return operation
    raise UnsupportedError(
        "the backend ringside has the operations SUM, AVG, MIN, MAX and PRODUCT, and no other"
    )


def _check(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.is_sparse:
        raise UnsupportedError("a sparse tensor: make it dense by to_dense()")
    if tensor.dtype not in _DTYPES:
        known = ", ".join(str(dtype).removeprefix("torch.") for dtype in _DTYPES)
        raise UnsupportedError(f"a tensor of {tensor.dtype}: the backend ringside has {known}")
    return tensor


def _only(tensors: Any, call: str) -> Any:
    """The tensor, or list of tensors, of a call; several are for several GPUs of a process."""
    if len(tensors) != 1:
        raise UnsupportedError(f"{call} of {len(tensors)} tensors at once: give one")
    return tensors[0]


def _fill(tensor: torch.Tensor, values: torch.Tensor) -> None:
    with torch.no_grad():
        tensor.copy_(values.reshape(tensor.shape))


def _gather(tensor: torch.Tensor) -> list[torch.Tensor]:
    """The tensors of all processes, whose shapes and types have to be alike."""
    value = tensor.detach().cpu().contiguous()
    shapes = collectives.allgather_object((str(value.dtype), list(value.shape)))
    for rank, other in enumerate(shapes):
        if other != shapes[0]:
            raise RingsideError(
                f"all_gather: process 0 has {shapes[0][0]} {shapes[0][1]} and process {rank} has "
                f"{other[0]} {other[1]}: all have tensors of one shape and type; pad them"
            )
    return collectives._gather(value, "all_gather") if value.numel() > 0 else [value] * len(shapes)


def _done(result: Any) -> Any:
    """What torch calls Work, of a call that has its result."""
    future: torch.futures.Future[Any] = torch.futures.Future()
    future.set_result(result)
    return _create_work_from_future(future)


class ProcessGroup(dist.ProcessGroup):  # type: ignore[misc]
    """All processes of the job, with the calls that torch.distributed makes of a backend."""

    def getBackendName(self) -> str:
        return "ringside"

    def allreduce(self, tensors: list[torch.Tensor], opts: Any = None) -> Any:
        tensor = _check(_only(tensors, "all_reduce"))
        op = _operation(opts.reduceOp if opts is not None else dist.ReduceOp.SUM, tensor)
        _fill(tensor, collectives._reduce(tensor, op, 1.0, 1.0))
        return _done(tensors)

    def broadcast(self, tensors: list[torch.Tensor], opts: Any) -> Any:
        tensor = _check(_only(tensors, "broadcast"))
        _fill(tensor, collectives.broadcast(tensor, opts.rootRank))
        return _done(tensors)

    def allgather(
        self, outputs: list[list[torch.Tensor]], inputs: list[torch.Tensor], opts: Any = None
    ) -> Any:
        places, own = _only(outputs, "all_gather"), _check(_only(inputs, "all_gather"))
        if len(places) != self.size():
            raise ValueError(f"all_gather: {len(places)} tensors for {self.size()} processes")
        for place in places:
            if place.shape != own.shape or place.dtype != own.dtype:
                raise ValueError(
                    f"all_gather: {place.dtype} {list(place.shape)} for tensors of {own.dtype} "
                    f"{list(own.shape)}: all have one shape and type; pad them"
                )
        for place, value in zip(places, _gather(own)):
            _fill(place, value)
        return _done(outputs)

    def _allgather_base(self, output: torch.Tensor, own: torch.Tensor, opts: Any = None) -> Any:
        _check(own)
        if output.numel() != own.numel() * self.size() or output.dtype != own.dtype:
            raise ValueError(
                f"all_gather_into_tensor: {output.dtype} {list(output.shape)} has no room for "
                f"{self.size()} times {own.dtype} {list(own.shape)}"
            )
        _fill(output, torch.stack(_gather(own)))
        return _done([output])

    def reduce_scatter(
        self, outputs: list[torch.Tensor], inputs: list[list[torch.Tensor]], opts: Any = None
    ) -> Any:
        output, parts = _only(outputs, "reduce_scatter"), _only(inputs, "reduce_scatter")
        if len(parts) != self.size() or any(
            part.shape != output.shape or part.dtype != output.dtype for part in parts
        ):
            raise ValueError(
                f"reduce_scatter: {self.size()} tensors like the result, {output.dtype} "
                f"{list(output.shape)}, are needed"
            )
        self._scatter(output, torch.stack(parts), opts)
        return _done(outputs)

    def _reduce_scatter_base(
        self, output: torch.Tensor, own: torch.Tensor, opts: Any = None
    ) -> Any:
        if own.numel() != output.numel() * self.size() or output.dtype != own.dtype:
            raise ValueError(
                f"reduce_scatter_tensor: {own.dtype} {list(own.shape)} is not {self.size()} times "
                f"{output.dtype} {list(output.shape)}"
            )
        self._scatter(output, own.reshape(self.size(), *output.shape), opts)
        return _done([output])

    def _scatter(self, output: torch.Tensor, parts: torch.Tensor, opts: Any) -> None:
        op = _operation(opts.reduceOp if opts is not None else dist.ReduceOp.SUM, _check(parts))
        _fill(output, collectives._reduce(parts, op, 1.0, 1.0)[self.rank()])

    def barrier(self, opts: Any = None) -> Any:
        collectives.barrier()
        return _done([])

    def send(self, tensors: list[torch.Tensor], peer: int, tag: int) -> Any:
        return self._pass_on("send", tensors, self.rank(), peer, tag)

    def recv(self, tensors: list[torch.Tensor], peer: int, tag: int) -> Any:
        return self._pass_on("recv", tensors, peer, peer, tag)

    def _pass_on(
        self, call: str, tensors: list[torch.Tensor], root: int, peer: int, tag: int
    ) -> Any:
        """Between two processes a message is a broadcast that both make."""
        if self.size() != 2:
            raise UnsupportedError(
                f"{call} in a job of {self.size()} processes: only in a job of two can one pass a "
                "message to another; use broadcast, or all_gather, which all processes call"
            )
        if peer != 1 - self.rank():
            raise ValueError(
                f"{call}: process {self.rank()} can pass a message to {1 - self.rank()} only, "
                f"and not to {peer}"
                if call == "send"
                else f"{call}: process {self.rank()} has messages from {1 - self.rank()} only, "
                f"and not from {peer}"
            )
        tensor = _check(_only(tensors, call))
        value = tensor.detach().cpu().contiguous().clone()
        collectives._spread(value, root, f"message {tag}")
        if call == "recv":
            _fill(tensor, value)
        return _done(tensors)


class _Meeting(dist.Store):  # type: ignore[misc]
    """What torch calls a store, for processes that are in a job already.

    torch.distributed counts in it how many processes have come, which is what `add` of all
    processes at once does. Nothing else is kept.
    """

    def __init__(self) -> None:
        super().__init__()
        self._counts: dict[str, int] = {}

    def add(self, key: str, amount: int) -> int:
        own = torch.tensor([amount], dtype=torch.int64)
        total = collectives._reduce(own, ReduceOp.Sum, 1.0, 1.0)
        self._counts[key] = self._counts.get(key, 0) + int(total)
        return self._counts[key]

    def set_timeout(self, timeout: Any) -> None:
        """A job ends by itself if its processes wait for ever."""

    def _refuse(self, *_: Any) -> Any:
        raise UnsupportedError(
            "a job of Ringside keeps no values for torch.distributed: for other backends than "
            "ringside set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT"
        )

    set = get = wait = check = compare_set = delete_key = num_keys = _refuse


_meetings: list[_Meeting] = []  # torch holds only the half of one that is not Python


def _create(store: Any, rank: int, size: int, timeout: Any) -> ProcessGroup:
    """The group of all processes, by torch.distributed, which has chosen rank and size."""
    process.init()
    if size != process.size():
        raise UnsupportedError(
            f"a group of {size} processes in a job of {process.size()}: all processes of a job "
            "take part in everything"
        )
    if rank != process.rank():
        raise RingsideError(
            f"torch.distributed says that this process has rank {rank}, and the job says "
            f"{process.rank()}: leave rank and RANK to the launcher"
        )
    return ProcessGroup(rank, size)


def _add_meeting() -> None:
    """env://, the default of init_process_group, is the job where no variables say otherwise."""
    handlers = importlib.import_module("torch.distributed.rendezvous")._rendezvous_handlers
    others = handlers["env"]

    def meet(url: str, **keywords: Any) -> Iterator[tuple[Any, int, int]]:
        is_named = all(os.environ.get(name) for name in _VARIABLES)
        if is_named or not (_job.is_in_job() or os.environ.get("RINGSIDE_SERVER")):
            yield from others(url, **keywords)
            return
        process.init()
        _meetings.append(_Meeting())
        said = dict(parse_qsl(urlsplit(url).query))  # what the script gives, or -1
        rank, size = (int(said.get(name, -1)) for name in ("rank", "world_size"))
        yield (
            _meetings[-1],
            rank if rank >= 0 else process.rank(),
            size if size >= 0 else process.size(),
        )

    handlers["env"] = meet


def _register() -> None:
    register = dist.Backend.register_backend
    if "devices" in inspect.signature(register).parameters:  # torch 2.x
        register("ringside", _create, devices=["cpu", "cuda"])
    else:
        register("ringside", _create)


_register()
_add_meeting()
