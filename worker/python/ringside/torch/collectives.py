"""Collectives on tensors and objects: in memory that the processes share, where they share it.

All processes call the same one at the same place, with tensors of the same shape and type. `name`
is there for Horovod's sake: calls are matched by their order. Sums are taken in the order of ranks,
so all processes get the same bits. An async call has its result at once.
No gradient flows back through a result: what a loss depends on is computed by each process.

What begins with _ takes `ranks`, the processes that take part; None: all of the job.
"""

from __future__ import annotations

import ctypes
import enum
import pickle
from collections.abc import Iterable, Sequence
from typing import Any, Optional

import torch

from ringside import _job
from ringside._library import Among, UnsupportedError
from ringside.torch.compression import Compression, Compressor


class ReduceOp(enum.Enum):
    """What becomes of the values of all processes."""

    Average = 0
    Sum = 1
    Adasum = 2
    Min = 3
    Max = 4
    Product = 5


Average, Sum, Adasum = ReduceOp.Average, ReduceOp.Sum, ReduceOp.Adasum
Min, Max, Product = ReduceOp.Min, ReduceOp.Max, ReduceOp.Product

# As ringside.h numbers them.
_OPERATIONS = {
    ReduceOp.Sum: 0,
    ReduceOp.Average: 1,
    ReduceOp.Min: 2,
    ReduceOp.Max: 3,
    ReduceOp.Product: 4,
}
_TYPES = {
    torch.float32: 0,
    torch.float64: 1,
    torch.int8: 2,
    torch.int16: 3,
    torch.int32: 4,
    torch.int64: 5,
    torch.uint8: 6,
}
_NARROW = (torch.float16, torch.bfloat16)  # summed as float32


class Handle:
    """Of an async call. `synchronize` takes its result: a tensor, or what a grouped one has."""

    def __init__(self, result: Any):
        self.result = result


def choose(op: ReduceOp | None, average: bool | None) -> ReduceOp:
    """The operation that `op`, or Horovod's older `average`, asks for."""
    if op is not None and average is not None:
        raise ValueError("op and average say the same: give one of them")
    chosen = op if op is not None else Sum if average is False else Average
    if chosen is Adasum:
        raise UnsupportedError(
            "Adasum is not offered: use Average, or Sum with a rate divided by N"
        )
    if chosen not in _OPERATIONS:
        raise ValueError(f"{op!r} is no operation: Average, Sum, Min, Max or Product")
    return chosen


def _address(tensor: torch.Tensor) -> ctypes.c_void_p:
    return ctypes.c_void_p(tensor.data_ptr())


def _size_of(tensor: torch.Tensor) -> int:
    return int(tensor.numel() * tensor.element_size())


def _bytes_in(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.reshape(-1).view(torch.uint8)


def _label(call: str, tensor: torch.Tensor) -> str:
    """What all processes have to call alike."""
    return f"{call} of {str(tensor.dtype).removeprefix('torch.')} {list(tensor.shape)}"


Ranks = Optional[Sequence[int]]


def _among(label: str, ranks: Ranks = None) -> Any:
    """Who takes part in a call, which is `label` in sentences about it."""
    among = Among(label=label.encode())
    if ranks is not None:
        among.ranks = (ctypes.c_uint32 * len(ranks))(*ranks)
        among.count = len(ranks)
    return ctypes.byref(among)


def _size(ranks: Ranks) -> int:
    return _job.current().description.size if ranks is None else len(ranks)


def _gather(tensor: torch.Tensor, call: str, ranks: Ranks = None) -> list[torch.Tensor]:
    """The tensors of all by rank; of one shape, contiguous, on the host."""
    every = torch.empty((_size(ranks), *tensor.shape), dtype=tensor.dtype)
    among = _among(_label(call, tensor), ranks)
    _job.current().call(
        "all_gather_among", among, _address(tensor), _size_of(tensor), _address(every)
    )
    return list(every)


def _fold(value: torch.Tensor, op: ReduceOp, ranks: Ranks) -> torch.Tensor:
    """In place, if the library has the type; contiguous, on the host."""
    label = _label(f"{op.name} all-reduce", value)
    if value.dtype is torch.bool:  # as torch adds and multiplies them
        op = {ReduceOp.Sum: Max, ReduceOp.Product: Min}.get(op, op)
        _fold_as(value.view(torch.uint8), label, op, ranks)
        return value
    if value.dtype in _TYPES:
        _fold_as(value, label, op, ranks)
        return value
    if value.is_complex() and op in (Sum, Average):
        _fold_as(torch.view_as_real(value), label, op, ranks)
        return value
    raise UnsupportedError(f"{label}: there is no such operation on values of this type")


def _fold_as(value: torch.Tensor, label: str, op: ReduceOp, ranks: Ranks) -> None:
    _job.current().call(
        "all_reduce_among", _among(label, ranks), _address(value), value.numel(),
        _TYPES[value.dtype], _OPERATIONS[op],
    )  # fmt: skip


def _reduce(
    tensor: torch.Tensor,
    op: ReduceOp,
    before: float = 1.0,
    after: float = 1.0,
    ranks: Ranks = None,
    in_place: bool = False,
) -> torch.Tensor:
    """The reduced tensor: `tensor` itself, changed, if it is to be in place."""
    if not isinstance(tensor, torch.Tensor):
        raise ValueError(f"a {type(tensor).__name__} is no torch tensor: give torch.tensor(...)")
    if tensor.is_sparse:
        raise UnsupportedError("a sparse tensor: make it dense by to_dense()")
    value = tensor.detach()
    is_own = in_place and value.is_contiguous() and value.device.type == "cpu"
    kind = torch.float32 if value.dtype in _NARROW else value.dtype
    if before != 1.0:
        value, is_own = value * before, False
    if not is_own or kind is not value.dtype:
        value = value.to("cpu", kind, copy=True, memory_format=torch.contiguous_format)
    value = _fold(value, op, ranks)
    if after != 1.0:
        value = value * after
    if not in_place:
        return value.to(dtype=tensor.dtype, device=tensor.device)
    if value.data_ptr() != tensor.data_ptr():
        with torch.no_grad():
            tensor.copy_(value)
    return tensor


def allreduce(
    tensor: torch.Tensor,
    average: bool | None = None,
    name: str | None = None,
    compression: type[Compressor] = Compression.none,
    op: ReduceOp | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> torch.Tensor:
    """The mean, or what `op` says, of the tensors of all processes."""
    sent, context = compression.compress(tensor)
    result = _reduce(sent, choose(op, average), prescale_factor, postscale_factor)
    return compression.decompress(result, context)


def allreduce_(
    tensor: torch.Tensor,
    average: bool | None = None,
    name: str | None = None,
    op: ReduceOp | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> torch.Tensor:
    """The same in place."""
    return _reduce(tensor, choose(op, average), prescale_factor, postscale_factor, in_place=True)


def allreduce_async(
    tensor: torch.Tensor,
    average: bool | None = None,
    name: str | None = None,
    op: ReduceOp | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> Handle:
    return Handle(_reduce(tensor, choose(op, average), prescale_factor, postscale_factor))


def allreduce_async_(tensor: torch.Tensor, *args: Any, **keywords: Any) -> Handle:
    return Handle(allreduce_(tensor, *args, **keywords))


def grouped_allreduce(
    tensors: Iterable[torch.Tensor], *args: Any, **keywords: Any
) -> list[torch.Tensor]:
    return [allreduce(tensor, *args, **keywords) for tensor in tensors]


def grouped_allreduce_(
    tensors: Iterable[torch.Tensor], *args: Any, **keywords: Any
) -> list[torch.Tensor]:
    return [allreduce_(tensor, *args, **keywords) for tensor in tensors]


def reducescatter(
    tensor: torch.Tensor, op: ReduceOp | None = None, name: str | None = None
) -> torch.Tensor:
    """This process's part, along the first dimension, of the all-reduced tensor."""
    job = _job.current()
    if tensor.dim() == 0:
        raise ValueError("reducescatter cuts the first dimension, and the tensor has none")
    parts = torch.tensor_split(allreduce(tensor, op=op), job.description.size)
    return parts[job.description.rank].clone()


def _lengths(length: int) -> list[int]:
    own = torch.tensor([length], dtype=torch.int64)
    return [int(value) for value in _gather(own, "lengths")]


def allgather(tensor: torch.Tensor, name: str | None = None) -> torch.Tensor:
    """The tensors of all processes behind each other; their first dimensions may differ."""
    value = tensor.detach().cpu().contiguous()
    value = value.reshape(1) if value.dim() == 0 else value
    lengths = _lengths(value.shape[0])
    longest = max(lengths)
    if longest == 0 or value[0:1].numel() == 0 < value.shape[0]:  # rows of no values
        return torch.zeros((sum(lengths), *value.shape[1:]), dtype=value.dtype).to(tensor.device)
    padded = torch.zeros((longest, *value.shape[1:]), dtype=value.dtype)
    padded[: value.shape[0]] = value
    parts = [part[:length] for part, length in zip(_gather(padded, "all-gather"), lengths)]
    return torch.cat(parts).to(tensor.device)


def allgather_async(tensor: torch.Tensor, name: str | None = None) -> Handle:
    return Handle(allgather(tensor))


def alltoall(
    tensor: torch.Tensor, splits: torch.Tensor | None = None, name: str | None = None
) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
    """Part r of each process's tensor goes to rank r. With splits, also how much came from each."""
    job = _job.current()
    size, rank = job.description.size, job.description.rank
    if splits is None and tensor.shape[0] % size != 0:
        raise ValueError(f"alltoall: {tensor.shape[0]} rows do not go evenly to {size} processes")
    cuts = (
        torch.full((size,), tensor.shape[0] // size, dtype=torch.int64)
        if splits is None
        else splits.detach().cpu().to(torch.int64)
    )
    if cuts.shape != (size,) or int(cuts.sum()) != tensor.shape[0] or bool((cuts < 0).any()):
        raise ValueError(f"alltoall: splits are {size} counts, whose sum is {tensor.shape[0]}")
    all_cuts = _gather(cuts.contiguous(), "all-to-all")
    rows = allgather(tensor)
    parts, begin = [], 0
    for other in all_cuts:
        first = begin + int(other[:rank].sum())
        parts.append(rows[first : first + int(other[rank])])
        begin += int(other.sum())
    result = torch.cat(parts)
    return result if splits is None else (result, torch.stack([other[rank] for other in all_cuts]))


def _spread(value: torch.Tensor, root_rank: int, ranks: Ranks = None) -> None:
    """In place; contiguous, on the host."""
    among = _among(_label(f"broadcast from {root_rank}", value), ranks)
    _job.current().call("broadcast_among", among, _address(value), _size_of(value), root_rank)


def broadcast(tensor: torch.Tensor, root_rank: int, name: str | None = None) -> torch.Tensor:
    """The tensor of the process root_rank, in all."""
    value = tensor.detach().cpu().contiguous().clone()
    _spread(value, root_rank)
    return value.to(tensor.device)


def broadcast_(tensor: torch.Tensor, root_rank: int, name: str | None = None) -> torch.Tensor:
    """The same in place."""
    if tensor.device.type == "cpu" and tensor.is_contiguous() and not tensor.is_sparse:
        _spread(tensor.detach(), root_rank)
        return tensor
    with torch.no_grad():
        return tensor.copy_(broadcast(tensor, root_rank))


def broadcast_async(tensor: torch.Tensor, root_rank: int, name: str | None = None) -> Handle:
    return Handle(broadcast(tensor, root_rank))


def broadcast_async_(tensor: torch.Tensor, root_rank: int, name: str | None = None) -> Handle:
    return Handle(broadcast_(tensor, root_rank))


def synchronize(handle: Handle) -> Any:
    """The result of an async call."""
    return handle.result


def poll(handle: Handle) -> bool:
    """Whether an async call has its result, which it has."""
    return True


def barrier() -> None:
    """Waits until all processes have come here."""
    _barrier()


def _barrier(ranks: Ranks = None) -> None:
    _job.current().call("barrier_among", _among("barrier", ranks))


def _bytes_of(data: bytes) -> torch.Tensor:
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)


def _spread_bytes(data: bytes, root_rank: int) -> bytes:
    job = _job.current()
    length = torch.tensor([len(data)], dtype=torch.int64)
    _spread(length, root_rank)
    is_root = job.description.rank == root_rank
    buffer = _bytes_of(data) if is_root else torch.zeros(int(length), dtype=torch.uint8)
    _spread(buffer, root_rank)
    return data if is_root else bytes(buffer.numpy())


def broadcast_object(obj: Any, root_rank: int = 0, name: str | None = None) -> Any:
    """An object of the process root_rank, in all. It travels by pickle."""
    is_root = _job.current().description.rank == root_rank
    data = _spread_bytes(pickle.dumps(obj) if is_root else b"", root_rank)
    return obj if is_root else pickle.loads(data)


def allgather_object(obj: Any, name: str | None = None) -> list[Any]:
    """The objects of all processes, in the order of ranks. They travel by pickle."""
    data = pickle.dumps(obj)
    lengths = _lengths(len(data))
    padded = _bytes_of(data.ljust(max(lengths), b"\0"))
    parts = _gather(padded, "all-gather of objects")
    return [pickle.loads(bytes(part[:n].numpy())) for part, n in zip(parts, lengths)]


def _tensors_of(params: Any) -> list[torch.Tensor]:
    pairs = params.items() if isinstance(params, dict) else params
    tensors = []
    for name, value in pairs:
        if value is None:
            continue
        if not isinstance(value, torch.Tensor):
            raise ValueError(f"broadcast_parameters: {name} is no tensor")
        if value.is_sparse:
            raise UnsupportedError(f"broadcast_parameters: {name} is sparse")
        tensors.append(value)
    return tensors


def broadcast_parameters(params: Any, root_rank: int = 0) -> None:
    """Copies parameters of root_rank, model.state_dict() or named_parameters(), to all."""
    tensors = _tensors_of(params)
    if not tensors:
        return
    values = [tensor.detach().cpu().contiguous() for tensor in tensors]
    buffer = torch.cat([value.reshape(-1).view(torch.uint8) for value in values])
    _spread(buffer, root_rank)
    begin = 0
    with torch.no_grad():
        for tensor, value in zip(tensors, values):
            part = buffer[begin : begin + _size_of(value)].clone()
            tensor.copy_(part.view(value.dtype).reshape(value.shape))
            begin += _size_of(value)


def broadcast_optimizer_state(optimizer: torch.optim.Optimizer, root_rank: int = 0) -> None:
    """Copies the state of an optimizer of root_rank, its rates and all, to all."""
    if isinstance(optimizer, torch.optim.LBFGS):
        raise UnsupportedError("the state of LBFGS cannot be broadcast")
    state = broadcast_object(optimizer.state_dict(), root_rank)
    if _job.current().description.rank != root_rank:
        optimizer.load_state_dict(state)
