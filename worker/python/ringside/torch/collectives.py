"""Collectives on tensors and objects, through the job's coordinator.

They are for first parameters, settings and metrics; gradients travel by DistributedOptimizer. All
processes call the same one at the same place, with tensors of the same shape and type. `name` is
there for Horovod's sake: calls are matched by their order. Sums are taken in the order of ranks, so
all processes get the same bits. An async call has its result at once.
No gradient flows back through a result: what a loss depends on is computed by each process.
"""

from __future__ import annotations

import ctypes
import enum
import pickle
import zlib
from collections.abc import Iterable
from typing import Any, Callable

import torch

from ringside import _job
from ringside._library import RingsideError, UnsupportedError
from ringside.torch import compression as compressions
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

_FOLDS: dict[ReduceOp, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    ReduceOp.Average: torch.add,
    ReduceOp.Sum: torch.add,
    ReduceOp.Min: torch.minimum,
    ReduceOp.Max: torch.maximum,
    ReduceOp.Product: torch.mul,
}
_NARROW = (torch.float16, torch.bfloat16)  # summed as float32


class Handle:
    """Of an async call. `synchronize` takes its result."""

    def __init__(self, result: torch.Tensor):
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
    if chosen not in _FOLDS:
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


def _mark_of(label: str) -> torch.Tensor:
    """It travels with the values, so that calls which do not match are noticed."""
    return _bytes_in(torch.tensor([zlib.crc32(label.encode())], dtype=torch.int64))


def _check_marks(same: bool, label: str) -> None:
    if not same:
        raise RingsideError(
            f"the processes call different collectives: here it is {label}. All call the same "
            "ones, in the same order, with tensors of the same shape and type"
        )


def _gather(tensor: torch.Tensor, call: str) -> list[torch.Tensor]:
    """The tensors of all processes by rank; of one shape, contiguous, on the host."""
    job = _job.current()
    count, label = job.description.size, _label(call, tensor)
    mark = _mark_of(label)
    own = torch.cat([mark, _bytes_in(tensor)])
    every = torch.empty((count, own.numel()), dtype=torch.uint8)
    job.call("all_gather", _address(own), own.numel(), _address(every))
    _check_marks(bool((every[:, : mark.numel()] == mark).all()), label)
    values = every[:, mark.numel() :].contiguous().view(tensor.dtype)
    return list(values.reshape(count, *tensor.shape))


def _fold(tensor: torch.Tensor, op: ReduceOp) -> torch.Tensor:
    values = _gather(tensor, f"{op.name} all-reduce")
    result = values[0].clone()
    for value in values[1:]:
        result = _FOLDS[op](result, value)
    return result


def _add_up(tensor: torch.Tensor, op: ReduceOp) -> torch.Tensor:
    """float32: the coordinator adds in doubles, and rounds once."""
    label = _label(f"{op.name} all-reduce", tensor)
    mark = float(zlib.crc32(label.encode()) % 4096)  # its sum is exact, of 4096 processes
    values = torch.cat([tensor.reshape(-1), torch.tensor([mark])])
    job = _job.current()
    job.call("all_reduce", _address(values), values.numel())
    _check_marks(float(values[-1]) == mark * job.description.size, label)
    return values[:-1].reshape(tensor.shape).clone()


def _reduce(tensor: torch.Tensor, op: ReduceOp, before: float, after: float) -> torch.Tensor:
    if tensor.is_sparse:
        raise UnsupportedError("a sparse tensor: make it dense by to_dense()")
    value = tensor.detach().cpu().contiguous()
    if value.numel() == 0:
        return tensor.detach().clone()
    if value.dtype in _NARROW:
        value = value.float()
    value = value * before if before != 1.0 else value
    is_sum = op in (Sum, Average)
    value = _add_up(value, op) if is_sum and value.dtype == torch.float32 else _fold(value, op)
    if op is Average:
        count = _job.current().description.size
        is_whole = not (value.is_floating_point() or value.is_complex())
        value = torch.div(value, count, rounding_mode="trunc") if is_whole else value / count
    value = value * after if after != 1.0 else value
    return value.to(dtype=tensor.dtype, device=tensor.device)


def allreduce(
    tensor: torch.Tensor,
    average: bool | None = None,
    name: str | None = None,
    compression: Compressor = Compression.none,
    op: ReduceOp | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> torch.Tensor:
    """The mean, or what `op` says, of the tensors of all processes."""
    compressions.check(compression)
    return _reduce(tensor, choose(op, average), prescale_factor, postscale_factor)


def allreduce_(
    tensor: torch.Tensor,
    average: bool | None = None,
    name: str | None = None,
    op: ReduceOp | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> torch.Tensor:
    """The same in place."""
    result = _reduce(tensor, choose(op, average), prescale_factor, postscale_factor)
    with torch.no_grad():
        return tensor.copy_(result)


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


def _spread(value: torch.Tensor, root_rank: int, call: str = "broadcast") -> None:
    """In place; contiguous, on the host."""
    if value.numel() == 0:
        return
    label = _label(f"{call} from {root_rank}", value)
    mark = _mark_of(label)
    buffer = torch.cat([mark, _bytes_in(value)])
    _job.current().call("broadcast", _address(buffer), buffer.numel(), root_rank)
    _check_marks(torch.equal(buffer[: mark.numel()], mark), label)
    _bytes_in(value).copy_(buffer[mark.numel() :])


def broadcast(tensor: torch.Tensor, root_rank: int, name: str | None = None) -> torch.Tensor:
    """The tensor of the process root_rank, in all."""
    value = tensor.detach().cpu().contiguous().clone()
    _spread(value, root_rank)
    return value.to(tensor.device)


def broadcast_(tensor: torch.Tensor, root_rank: int, name: str | None = None) -> torch.Tensor:
    """The same in place."""
    with torch.no_grad():
        return tensor.copy_(broadcast(tensor, root_rank))


def broadcast_async(tensor: torch.Tensor, root_rank: int, name: str | None = None) -> Handle:
    return Handle(broadcast(tensor, root_rank))


def broadcast_async_(tensor: torch.Tensor, root_rank: int, name: str | None = None) -> Handle:
    return Handle(broadcast_(tensor, root_rank))


def synchronize(handle: Handle) -> torch.Tensor:
    """The result of an async call."""
    return handle.result


def poll(handle: Handle) -> bool:
    """Whether an async call has its result, which it has."""
    return True


def barrier() -> None:
    """Waits until all processes have come here."""
    _job.current().call("barrier")


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
