"""Trains a PyTorch script in a job of Ringside, with the names that Horovod has.

    import ringside.torch as hvd

in the place of `import horovod.torch as hvd` is the only change that a script needs. It runs by

    ringside run -n 4 --mode ring -- python3 train.py

and in any other mode: ps-sync, ps-ssp:S, ps-async. In `ring` the gradients of all processes are
averaged, and the script's own optimizer makes the update. In the ps modes servers make it, with the
script's optimizer; if the job's options say one, DistributedOptimizer checks that it is the same.
"""

from ringside._library import RingsideError, UnsupportedError
from ringside.torch import elastic
from ringside.torch.collectives import (
    Adasum,
    Average,
    Max,
    Min,
    Product,
    ReduceOp,
    Sum,
    allgather,
    allgather_async,
    allgather_object,
    allreduce,
    allreduce_,
    allreduce_async,
    allreduce_async_,
    alltoall,
    barrier,
    broadcast,
    broadcast_,
    broadcast_async,
    broadcast_async_,
    broadcast_object,
    broadcast_optimizer_state,
    broadcast_parameters,
    grouped_allreduce,
    grouped_allreduce_,
    poll,
    reducescatter,
    synchronize,
)
from ringside.torch.compression import Compression
from ringside.torch.forms import (
    alltoall_async,
    grouped_allgather,
    grouped_allgather_async,
    grouped_allreduce_async,
    grouped_allreduce_async_,
    grouped_reducescatter,
    grouped_reducescatter_async,
    reducescatter_async,
)
from ringside.torch.optimizer import DistributedOptimizer
from ringside.torch.process import (
    ccl_built,
    cross_rank,
    cross_size,
    cuda_built,
    ddl_built,
    gloo_built,
    gloo_enabled,
    init,
    is_homogeneous,
    is_initialized,
    join,
    local_rank,
    local_size,
    mode,
    mpi_built,
    mpi_enabled,
    mpi_threads_supported,
    nccl_built,
    rank,
    report,
    rocm_built,
    shutdown,
    size,
    staleness,
)

__all__ = [
    "Adasum",
    "Average",
    "Compression",
    "DistributedOptimizer",
    "Max",
    "Min",
    "Product",
    "ReduceOp",
    "RingsideError",
    "Sum",
    "UnsupportedError",
    "allgather",
    "allgather_async",
    "allgather_object",
    "allreduce",
    "allreduce_",
    "allreduce_async",
    "allreduce_async_",
    "alltoall",
    "alltoall_async",
    "barrier",
    "broadcast",
    "broadcast_",
    "broadcast_async",
    "broadcast_async_",
    "broadcast_object",
    "broadcast_optimizer_state",
    "broadcast_parameters",
    "ccl_built",
    "cross_rank",
    "cross_size",
    "cuda_built",
    "ddl_built",
    "elastic",
    "gloo_built",
    "gloo_enabled",
    "grouped_allgather",
    "grouped_allgather_async",
    "grouped_allreduce",
    "grouped_allreduce_",
    "grouped_allreduce_async",
    "grouped_allreduce_async_",
    "grouped_reducescatter",
    "grouped_reducescatter_async",
    "init",
    "is_homogeneous",
    "is_initialized",
    "join",
    "local_rank",
    "local_size",
    "mode",
    "mpi_built",
    "mpi_enabled",
    "mpi_threads_supported",
    "nccl_built",
    "poll",
    "rank",
    "reducescatter",
    "reducescatter_async",
    "report",
    "rocm_built",
    "shutdown",
    "size",
    "staleness",
    "synchronize",
]

_NOT_OFFERED = {
    "ProcessSet": "all processes of a job take part in everything",
    "add_process_set": "all processes of a job take part in everything",
    "remove_process_set": "all processes of a job take part in everything",
    "global_process_set": "all processes of a job take part in everything",
    "SyncBatchNorm": "statistics are of each process's own batch; torch.nn.GroupNorm does not "
    "depend on it",
    "sparse_allreduce_async": "make gradients dense: sparse=False of torch.nn.Embedding",
    "start_timeline": "`ringside run --timeline` records all processes, and `ringside timeline` "
    "says what limits the steps",
    "stop_timeline": "`ringside run --timeline-steps 100..120` records these steps",
    "run": "`ringside run -n 4 -- python3 train.py` starts the processes",
}


def __getattr__(name: str) -> object:
    """What Horovod has and this has not is refused by name, with what to do instead."""
    if name in _NOT_OFFERED:
        raise AttributeError(f"ringside.torch has no {name}: {_NOT_OFFERED[name]}")
    raise AttributeError(f"module 'ringside.torch' has no attribute {name!r}")
