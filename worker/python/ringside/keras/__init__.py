"""Trains a Keras 3 model in a job of Ringside, with the names that Horovod has.

    import ringside.keras as hvd

in the place of `import horovod.keras as hvd`. Keras has to run on PyTorch (KERAS_BACKEND=torch).
Gradients travel while backward goes on, as in ringside.torch, on top of which this is.
"""

from ringside._library import RingsideError, UnsupportedError
from ringside.keras import callbacks
from ringside.keras.optimizer import DistributedOptimizer
from ringside.torch.collectives import (
    Adasum,
    Average,
    ReduceOp,
    Sum,
    allgather_object,
    barrier,
    broadcast_object,
)
from ringside.torch.compression import Compression
from ringside.torch.process import (
    cross_rank,
    cross_size,
    init,
    is_homogeneous,
    is_initialized,
    local_rank,
    local_size,
    mode,
    rank,
    report,
    shutdown,
    size,
    staleness,
)

__all__ = [
    "Adasum",
    "Average",
    "Compression",
    "DistributedOptimizer",
    "ReduceOp",
    "RingsideError",
    "Sum",
    "UnsupportedError",
    "allgather_object",
    "barrier",
    "broadcast_object",
    "callbacks",
    "cross_rank",
    "cross_size",
    "init",
    "is_homogeneous",
    "is_initialized",
    "local_rank",
    "local_size",
    "mode",
    "rank",
    "report",
    "shutdown",
    "size",
    "staleness",
]


def __getattr__(name: str) -> object:
    """What Horovod has and this has not is refused by name, with what to do instead."""
    if name == "elastic":
        raise AttributeError(
            "ringside.keras has no elastic: fit() cannot be called again in the middle of an epoch "
            "with other processes; ringside.torch.elastic is for a loop of one's own"
        )
    raise AttributeError(f"module 'ringside.keras' has no attribute {name!r}")
