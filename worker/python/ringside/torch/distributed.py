"""The backend `ringside` of torch.distributed: a script of DistributedDataParallel in a job.

    import ringside.torch.distributed
    torch.distributed.init_process_group("ringside")

In a job of the launcher rank, size and the meeting place are the job's. With MASTER_ADDR and its
like, as torchrun sets them, they are torch's, and have to be the same as the job's.

Tensors have the same shape and type in all processes of a call. A call with async_op=True has its
result at once, but irecv, which receives when it is waited for. Gradients of
DistributedDataParallel travel by the ring with `exchange_hook`.
"""

from __future__ import annotations

import importlib
import inspect
import os
from collections.abc import Iterator
from typing import Any, ClassVar
from urllib.parse import parse_qsl, urlsplit

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import Work, _create_work_from_future

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


def _done(result: Any) -> Any:
    """What torch calls Work, of a call that has its result."""
    future: torch.futures.Future[Any] = torch.futures.Future()
    future.set_result(result)
    return _create_work_from_future(future)


class _Receipt(Work):  # type: ignore[misc]
    """A message that comes when it is waited for, behind those of its sender that come before."""

    _pending: ClassVar[dict[int, list[_Receipt]]] = {}  # by their senders, in the order of calls

    def __init__(self, tensor: torch.Tensor, source: int, label: str):
        super().__init__()
        self._tensor, self._source, self._label = tensor, source, label
        self._pending.setdefault(source, []).append(self)

    def _receive(self) -> None:
        value = self._tensor.detach().cpu().contiguous()
        _job.current().call(
            "receive", collectives._address(value), collectives._size_of(value), self._source,
            self._label.encode(),
        )  # fmt: skip
        if value.data_ptr() != self._tensor.data_ptr():
            _fill(self._tensor, value)

    def wait(self, timeout: Any = None) -> bool:
        queue = self._pending[self._source]
        while self in queue:
            queue.pop(0)._receive()
        return True

    def is_completed(self) -> bool:
        return self.wait()

    def result(self) -> list[torch.Tensor]:
        self.wait()
        return [self._tensor]


class ProcessGroup(dist.ProcessGroup):  # type: ignore[misc]
    """Processes of the job, with the calls that torch.distributed makes of a backend."""

    def __init__(self, rank: int, ranks: list[int]):
        super().__init__(rank, len(ranks))
        self._ranks = ranks  # in the job, of each of the group

    def getBackendName(self) -> str:
        return "ringside"

    def _reduce(self, tensor: torch.Tensor, opts: Any, in_place: bool) -> torch.Tensor:
        op = _operation(opts.reduceOp if opts is not None else dist.ReduceOp.SUM, _check(tensor))
        return collectives._reduce(tensor, op, ranks=self._ranks, in_place=in_place)

    def _gather(self, tensor: torch.Tensor) -> list[torch.Tensor]:
        value = tensor.detach().cpu().contiguous()
        return collectives._gather(value, "all_gather", self._ranks)

    def allreduce(self, tensors: list[torch.Tensor], opts: Any = None) -> Any:
        self._reduce(_only(tensors, "all_reduce"), opts, in_place=True)
        return _done(tensors)

    def broadcast(self, tensors: list[torch.Tensor], opts: Any) -> Any:
        tensor = _check(_only(tensors, "broadcast"))
        value = tensor.detach().cpu().contiguous()
        collectives._spread(value, self._ranks[opts.rootRank], self._ranks)
        if value.data_ptr() != tensor.data_ptr():
            _fill(tensor, value)
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
        for place, value in zip(places, self._gather(own)):
            _fill(place, value)
        return _done(outputs)

    def _allgather_base(self, output: torch.Tensor, own: torch.Tensor, opts: Any = None) -> Any:
        _check(own)
        if output.numel() != own.numel() * self.size() or output.dtype != own.dtype:
            raise ValueError(
                f"all_gather_into_tensor: {output.dtype} {list(output.shape)} has no room for "
                f"{self.size()} times {own.dtype} {list(own.shape)}"
            )
        _fill(output, torch.stack(self._gather(own)))
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
        _fill(output, self._reduce(torch.stack(parts), opts, in_place=True)[self.rank()])
        return _done(outputs)

    def _reduce_scatter_base(
        self, output: torch.Tensor, own: torch.Tensor, opts: Any = None
    ) -> Any:
        if own.numel() != output.numel() * self.size() or output.dtype != own.dtype:
            raise ValueError(
                f"reduce_scatter_tensor: {own.dtype} {list(own.shape)} is not {self.size()} times "
                f"{output.dtype} {list(output.shape)}"
            )
        parts = own.reshape(self.size(), *output.shape)
        _fill(output, self._reduce(parts, opts, in_place=False)[self.rank()])
        return _done([output])

    # As later versions of torch call them.
    all_gather_single = _allgather_base
    reduce_scatter_single = _reduce_scatter_base

    def barrier(self, opts: Any = None) -> Any:
        collectives._barrier(self._ranks)
        return _done([])

    def _label(self, tensor: torch.Tensor, tag: int) -> str:
        return f"{collectives._label('a message', tensor)} with tag {tag}"

    def send(self, tensors: list[torch.Tensor], peer: int, tag: int) -> Any:
        value = _check(_only(tensors, "send")).detach().cpu().contiguous()
        _job.current().call(
            "send", collectives._address(value), collectives._size_of(value), self._ranks[peer],
            self._label(value, tag).encode(),
        )  # fmt: skip
        return _done(tensors)

    def recv(self, tensors: list[torch.Tensor], peer: int, tag: int) -> Any:
        tensor = _check(_only(tensors, "recv"))
        return _Receipt(tensor, self._ranks[peer], self._label(tensor, tag))

    def recv_anysource(self, tensors: list[torch.Tensor], tag: int) -> Any:
        raise UnsupportedError("recv of any process: give src, the one that sends")


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
        total = collectives._reduce(own, ReduceOp.Sum)
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


def _create(options: Any, more: Any = None) -> ProcessGroup:
    """A group, by torch.distributed, which has chosen its processes. The first one has all."""
    process.init()
    is_first = not options.global_ranks_in_group
    if is_first and options.group_size != process.size():
        raise UnsupportedError(
            f"a group of {options.group_size} processes in a job of {process.size()}: "
            "init_process_group takes all processes of the job; new_group may take some of them"
        )
    ranks = list(range(process.size()) if is_first else options.global_ranks_in_group)
    rank = ranks[options.group_rank]
    if rank != process.rank():
        raise RingsideError(
            f"torch.distributed says that this process has rank {rank}, and the job says "
            f"{process.rank()}: leave rank and RANK to the launcher"
        )
    return ProcessGroup(options.group_rank, ranks)


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
        register("ringside", _create, extended_api=True, devices=["cpu", "cuda"])
    else:
        register("ringside", _create, extended_api=True)


_register()
_add_meeting()
