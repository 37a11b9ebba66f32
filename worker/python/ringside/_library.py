"""libringside by ctypes: its structures, its functions, and its errors as exceptions."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from typing import Any

END = 1  # of begin_step: the job has had its steps; of join: it is complete, and needs nobody
MISUSE = 2  # a call out of order
_UNSUPPORTED = 4
_AGAIN = 11  # the job goes on with other processes
_GROWS = 12  # the same, after a commit
ALL = 0xFFFFFFFF  # in the place of a tensor's index

_NAME = "libringside.so.1"


class RingsideError(RuntimeError):
    """A call that failed, or a job that has ended. `status` is the library's, 0 if it has none."""

    def __init__(self, sentence: str, status: int = 0):
        super().__init__(sentence)
        self.status = status


class UnsupportedError(RingsideError):
    """Something that is not offered, at all or in this job's mode. The sentence has a way out."""


class HorovodInternalError(RingsideError):
    """A process was lost, and the job goes on with the others: see ringside.torch.elastic."""


class HostsUpdatedInterrupt(RingsideError):
    """Processes have come, and the job goes on with them from the commit that was made."""


class Options(ctypes.Structure):
    """struct ringside_options"""

    _fields_ = (
        ("size", ctypes.c_size_t),
        ("server", ctypes.c_char_p),
        ("bind", ctypes.c_char_p),
        ("port_range", ctypes.c_char_p),
        ("keys", ctypes.c_char_p),
        ("is_insecure", ctypes.c_bool),
        ("has_rank", ctypes.c_bool),
        ("rank", ctypes.c_uint32),
        ("join_timeout", ctypes.c_double),
        ("log_level", ctypes.c_uint32),
        ("keeps_vectors", ctypes.c_bool),
        ("timeline_dir", ctypes.c_char_p),
    )


class JobDescription(ctypes.Structure):
    """struct ringside_job"""

    _fields_ = (
        ("rank", ctypes.c_uint32),
        ("size", ctypes.c_uint32),
        ("steps", ctypes.c_uint64),
        ("batch", ctypes.c_uint32),
        ("seed", ctypes.c_uint64),
        ("is_unsynchronised", ctypes.c_bool),
        ("may_set_rate", ctypes.c_bool),
        ("servers_update", ctypes.c_bool),
        ("mode", ctypes.c_char_p),
        ("model", ctypes.c_char_p),
        ("optimizer", ctypes.c_char_p),
        ("rate", ctypes.c_double),
        ("has_schedule", ctypes.c_bool),
        ("momentum", ctypes.c_double),
        ("beta1", ctypes.c_double),
        ("beta2", ctypes.c_double),
        ("decay", ctypes.c_double),
        ("epsilon", ctypes.c_double),
        ("weight_decay", ctypes.c_double),
    )


class GroupDescription(ctypes.Structure):
    """struct ringside_group"""

    _fields_ = (
        ("rate", ctypes.c_double),
        ("momentum", ctypes.c_double),
        ("beta1", ctypes.c_double),
        ("beta2", ctypes.c_double),
        ("decay", ctypes.c_double),
        ("epsilon", ctypes.c_double),
        ("weight_decay", ctypes.c_double),
    )


class OptimizerDescription(ctypes.Structure):
    """struct ringside_optimizer"""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("rate", ctypes.c_double),
        ("momentum", ctypes.c_double),
        ("beta1", ctypes.c_double),
        ("beta2", ctypes.c_double),
        ("decay", ctypes.c_double),
        ("epsilon", ctypes.c_double),
        ("weight_decay", ctypes.c_double),
    )


class TensorDescription(ctypes.Structure):
    """struct ringside_tensor"""

    _fields_ = (("name", ctypes.c_char_p), ("count", ctypes.c_uint64))


class Counters(ctypes.Structure):
    """struct ringside_counters"""

    _fields_ = (
        ("steps", ctypes.c_uint64),
        ("bytes_sent", ctypes.c_uint64),
        ("bytes_received", ctypes.c_uint64),
        ("wait_seconds", ctypes.c_double),
        ("wire_seconds", ctypes.c_double),
        ("staleness", ctypes.c_double),
        ("staleness_mean", ctypes.c_double),
    )


class Report(ctypes.Structure):
    """struct ringside_report"""

    _fields_ = (
        ("images", ctypes.c_uint64),
        ("loss", ctypes.c_double),
        ("test_images", ctypes.c_uint64),
        ("test_correct", ctypes.c_uint64),
        ("test_loss", ctypes.c_double),
    )


class Among(ctypes.Structure):
    """struct ringside_among"""

    _fields_ = (
        ("ranks", ctypes.POINTER(ctypes.c_uint32)),
        ("count", ctypes.c_uint32),
        ("label", ctypes.c_char_p),
    )


_POINTER = ctypes.c_void_p
_AMONG = ctypes.POINTER(Among)
_FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "join": (ctypes.c_int, [ctypes.POINTER(Options), ctypes.POINTER(_POINTER)]),
    "job": (ctypes.c_int, [_POINTER, ctypes.POINTER(JobDescription)]),
    "describe": (ctypes.c_int, [_POINTER, ctypes.POINTER(TensorDescription), ctypes.c_uint32]),
    "params": (_POINTER, [_POINTER]),
    "grads": (_POINTER, [_POINTER]),
    "offset": (ctypes.c_uint64, [_POINTER, ctypes.c_uint32]),
    "keep_gradients": (ctypes.c_int, [_POINTER]),
    "start": (ctypes.c_int, [_POINTER]),
    "begin_step": (ctypes.c_int, [_POINTER]),
    "await": (ctypes.c_int, [_POINTER, ctypes.c_uint32]),
    "begin_gradients": (ctypes.c_int, [_POINTER]),
    "ready": (ctypes.c_int, [_POINTER, ctypes.c_uint32]),
    "end_step": (ctypes.c_int, [_POINTER]),
    "set_optimizer": (ctypes.c_int, [_POINTER, ctypes.POINTER(OptimizerDescription)]),
    "set_compression": (ctypes.c_int, [_POINTER, ctypes.c_char_p]),
    "set_groups": (
        ctypes.c_int,
        [
            _POINTER,
            ctypes.POINTER(GroupDescription),
            ctypes.c_uint32,
            ctypes.POINTER(ctypes.c_uint32),
        ],
    ),
    "change_groups": (
        ctypes.c_int,
        [_POINTER, ctypes.POINTER(GroupDescription), ctypes.c_uint32],
    ),
    "set_rate": (ctypes.c_int, [_POINTER, ctypes.c_double]),
    "all_reduce_among": (
        ctypes.c_int,
        [_POINTER, _AMONG, _POINTER, ctypes.c_uint64, ctypes.c_int, ctypes.c_int],
    ),
    "broadcast_among": (
        ctypes.c_int,
        [_POINTER, _AMONG, _POINTER, ctypes.c_uint64, ctypes.c_uint32],
    ),
    "all_gather_among": (ctypes.c_int, [_POINTER, _AMONG, _POINTER, ctypes.c_uint64, _POINTER]),
    "barrier_among": (ctypes.c_int, [_POINTER, _AMONG]),
    "send": (ctypes.c_int, [_POINTER, _POINTER, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_char_p]),
    "receive": (
        ctypes.c_int,
        [_POINTER, _POINTER, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_char_p],
    ),
    "counters": (ctypes.c_int, [_POINTER, ctypes.POINTER(Counters)]),
    "report": (ctypes.c_int, [_POINTER, ctypes.POINTER(Report)]),
    "leave": (ctypes.c_int, [_POINTER]),
    "fail": (None, [_POINTER, ctypes.c_char_p]),
    "error": (ctypes.c_char_p, [_POINTER]),
    "commit": (ctypes.c_int, [_POINTER]),
    "rejoin": (ctypes.c_int, [_POINTER]),
    "go_on": (ctypes.c_int, [_POINTER, ctypes.c_uint64]),
}


def _places() -> Iterator[str]:
    """Where the library may be: as the environment says, in a wheel, as the loader finds it."""
    named = os.environ.get("RINGSIDE_LIBRARY")
    if named:
        yield named
        return
    beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), _NAME)
    if os.path.exists(beside):
        yield beside
    yield _NAME


def _open() -> ctypes.CDLL:
    refusals = []
    for place in _places():
        try:
            return ctypes.CDLL(place)
        except OSError as error:
            refusals.append(str(error))
    raise ImportError(
        f"{_NAME} cannot be loaded ({'; '.join(refusals)}): install Ringside, or set "
        "RINGSIDE_LIBRARY to the file"
    )


_KINDS = {
    _UNSUPPORTED: UnsupportedError,
    _AGAIN: HorovodInternalError,
    _GROWS: HostsUpdatedInterrupt,
}


class Library:
    """The functions of libringside, which raise what fails."""

    def __init__(self) -> None:
        self._library = _open()
        self.functions: dict[str, Any] = {}
        for name, (result, arguments) in _FUNCTIONS.items():
            try:
                function = getattr(self._library, "ringside_" + name)
            except AttributeError:
                raise ImportError(
                    f"{self._library._name} has no ringside_{name}: it is of another version of "
                    "Ringside than this package"
                ) from None
            function.restype = result
            function.argtypes = arguments
            self.functions[name] = function

    def call_raw(self, name: str, *arguments: Any) -> Any:
        """Calls a function, and returns what it returns."""
        return self.functions[name](*arguments)

    def call(self, name: str, *arguments: Any) -> int:
        """Calls one that returns a status, which is 0 or END here."""
        status = int(self.functions[name](*arguments))
        if status > END:
            raise self.error_of(status)
        return status

    def error_of(self, status: int) -> RingsideError:
        """The last call of this thread has returned `status`."""
        sentence = self.call_raw("error", None).decode("utf-8", "replace")
        return _KINDS.get(status, RingsideError)(sentence, status)
