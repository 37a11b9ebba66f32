"""Which process of the job this is, and what the job hears of its training."""

from __future__ import annotations

import ctypes
import math
import socket
import sys
from typing import Any

from ringside import _job, _library
from ringside._library import RingsideError, UnsupportedError

_NAME_BYTES = 128
_SCALE = 1_000_000  # stands in for the number of test images where the script gives none


class _Places:
    """Which processes are on which host, as all have told each other."""

    def __init__(self, names: list[bytes], rank: int):
        hosts = list(dict.fromkeys(names))  # in the order of their first ranks
        sizes = [names.count(host) for host in hosts]
        self.local_rank = names[:rank].count(names[rank])
        self.local_size = names.count(names[rank])
        with_such = [
            i for i, host in enumerate(hosts) if names.count(host) > self.local_rank
        ]  # hosts that have a process of this local rank
        self.cross_rank = with_such.index(hosts.index(names[rank]))
        self.cross_size = len(with_such)
        self.is_homogeneous = len(set(sizes)) == 1


_places: _Places | None = None


def _name_of_host() -> bytes:
    """The same in all processes of a host, and in no other: containers share a boot."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            boot = file.read().strip()
    except OSError:
        boot = ""
    return f"{boot} {socket.gethostname()}".encode()[:_NAME_BYTES]


def init(comm: Any = None, process_sets: Any = None) -> None:
    """Joins the job that the environment names. A second call does nothing."""
    if comm is not None or process_sets is not None:
        raise UnsupportedError(
            "init(comm, process_sets): all processes of the job take part in everything; call "
            "init() alone"
        )
    if _job.is_in_job():
        return
    _job.join()
    find_places()


def find_places() -> None:
    """All processes tell each other on which hosts they are."""
    global _places
    job = _job.current()
    size = job.description.size
    own = _name_of_host().ljust(_NAME_BYTES, b"\0")
    names = ctypes.create_string_buffer(size * _NAME_BYTES)
    job.call("all_gather_among", None, own, _NAME_BYTES, names)
    texts = [names.raw[i * _NAME_BYTES : (i + 1) * _NAME_BYTES] for i in range(size)]
    _places = _Places(texts, job.description.rank)


def shutdown() -> None:
    """Leaves the job, and waits until all have. The model keeps its parameters.

    In an `except` or `finally` that runs for an exception, it fails the job with that instead.
    """
    error = sys.exc_info()[1]
    if not _job.is_in_job():
        return
    if error is not None and _job.has_failed(error):
        _job.current().fail(_job.describe_error(error))
    else:
        _job.current().leave()


def is_initialized() -> bool:
    return _job.is_in_job()


def rank() -> int:
    return int(_job.current().description.rank)


def size() -> int:
    return int(_job.current().description.size)


def mode() -> str:
    """The job's mode: "ring", "ps-async" ..."""
    return _job.current().mode


def _where() -> _Places:
    _job.current()
    if _places is None:
        raise RingsideError("init() has not ended")
    return _places


def local_rank() -> int:
    return _where().local_rank


def local_size() -> int:
    return _where().local_size


def cross_rank() -> int:
    return _where().cross_rank


def cross_size() -> int:
    return _where().cross_size


def is_homogeneous() -> bool:
    return _where().is_homogeneous


def join(device: int = -1) -> int:
    raise UnsupportedError(
        "join(): in ring and ps-sync all processes make the same number of steps: cut the data "
        "with drop_last=True, or use --mode ps-async, where each makes as many as it has"
    )


def staleness() -> float:
    """Updates between the parameters of the last gradient and its own update; 0 in ring."""
    counters = _library.Counters()
    _job.current().call("counters", ctypes.byref(counters))
    return float(counters.staleness)


def _number(name: str, value: Any) -> float:
    number = float(value)  # a tensor of one value, too
    if not math.isfinite(number):
        raise RingsideError(f"report(): {name} is {number}")
    return number


def report(
    *,
    loss: Any = None,
    images: int | None = None,
    accuracy: Any = None,
    test_loss: Any = None,
    test_images: int | None = None,
) -> None:
    """Tells the job how training goes, for its progress, metrics and report.

    `loss` is the mean of this process's part of the last step, over `images` (without them, as
    many as the job's --batch says). `accuracy`, 0 to 1, and `test_loss` are of a test after it,
    over `test_images` of this process; without them all processes count alike. Each test is an
    entry of `epochs` in the summary, whether all processes report it or some.
    """
    job = _job.current()
    told = _library.Report()
    if loss is not None or images is not None:
        told.images = job.description.batch if images is None else images
        told.loss = _number("loss", loss) if loss is not None else 0.0
    if accuracy is not None:
        share = _number("accuracy", accuracy)
        if not 0 <= share <= 1:
            raise RingsideError(f"report(): accuracy is {share:g}, and must be 0 to 1")
        told.test_images = _SCALE if test_images is None else test_images
        told.test_correct = round(share * told.test_images)
        told.test_loss = _number("test_loss", test_loss) if test_loss is not None else math.nan
    elif test_loss is not None or test_images is not None:
        raise RingsideError("report(): test_loss and test_images come with accuracy")
    try:
        job.call("report", ctypes.byref(told))
    except RingsideError as error:
        if error.status != _library.MISUSE:
            raise
        raise RingsideError("report() comes after the first backward()", error.status) from None


def _never() -> bool:
    return False


# What Horovod was built with. Here there is one way, for which a script needs to check nothing.
mpi_built = mpi_enabled = gloo_built = gloo_enabled = _never
cuda_built = rocm_built = ddl_built = ccl_built = mpi_threads_supported = _never


def nccl_built() -> int:
    return 0
