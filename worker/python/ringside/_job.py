"""The job that this process is in: joins it, and leaves it however the process ends.

A script that ends leaves the job, and waits until all have. One that ends with an exception, or
by sys.exit with a text or a code, or by SystemExit with a text, fails the job, which names it, so
that the other processes do not wait for it.
"""

from __future__ import annotations

import atexit
import ctypes
import dis
import gc
import io
import os
import sys
import threading
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Any, Callable, NoReturn

from ringside import _library
from ringside._library import RingsideError, UnsupportedError

_WHY_BYTES = 200  # of ringside_fail's sentence


def _rows(groups: list[dict[str, float]]) -> ctypes.Array[_library.GroupDescription]:
    rows = [_library.GroupDescription(**group) for group in groups]
    return (_library.GroupDescription * len(rows))(*rows)


class Job:
    """A job, from join to leave. `description` is what the coordinator has said of it."""

    def __init__(self) -> None:
        self.library = _library.Library()
        self._ready = self.library.functions["ready"]
        self.description = _library.JobDescription()
        self.process_id = os.getpid()
        self.optimizer: Any = None  # the one whose gradients it exchanges
        self.before_leave: Callable[[], None] | None = None
        self.settle: Callable[[], None] | None = None  # waits for parameters that are under way
        self._is_described = self._is_started = False
        self._begin_step = 0  # that it goes on from, or has begun with
        self._may_commit = True  # as far as is known
        options = _library.Options(size=ctypes.sizeof(_library.Options), keeps_vectors=True)
        self._handle: ctypes.c_void_p | None = ctypes.c_void_p()
        if self.library.call("join", ctypes.byref(options), ctypes.byref(self._handle)):
            self._handle = None
            _come_too_late(self.library)
        self.call("job", ctypes.byref(self.description))
        self.mode: str = self.description.mode.decode()

    def call(self, name: str, *arguments: Any) -> int:
        """Calls a function of the library with the handle. Raises RingsideError."""
        return self.library.call(name, self._use(), *arguments)

    def ready(self, tensor: int) -> None:
        """A gradient is there, of a step whose gradients this process has begun. It is called for
        each tensor, and so does little: without a handle, the library refuses."""
        status = self._ready(self._handle, tensor)
        if status:
            raise self.library.error_of(status)

    def call_raw(self, name: str, *arguments: Any) -> Any:
        """The same for one that does not return a status."""
        return self.library.call_raw(name, self._use(), *arguments)

    def describe(self, tensors: list[tuple[bytes, int]]) -> None:
        """Names and counts of the tensors that are exchanged."""
        rows = (_library.TensorDescription * len(tensors))()
        for row, (name, count) in zip(rows, tensors):
            row.name, row.count = name, count
        self.call("describe", rows, len(tensors))
        self._is_described = True

    def set_optimizer(self, name: str, rate: float, settings: dict[str, float]) -> None:
        """The job's optimizer, wherever the updates are made. `description` has it, too, then."""
        row = _library.OptimizerDescription(name=name.encode(), rate=rate, **settings)
        self.call("set_optimizer", ctypes.byref(row))
        self.call("job", ctypes.byref(self.description))

    def set_groups(self, groups: list[dict[str, float]], group_of_tensor: list[int]) -> None:
        """The settings of groups of tensors, by their names in struct ringside_group."""
        members = (ctypes.c_uint32 * len(group_of_tensor))(*group_of_tensor)
        self.call("set_groups", _rows(groups), len(groups), members)

    def change_groups(self, groups: list[dict[str, float]]) -> None:
        """Other settings of all groups, from the next gradients on."""
        self.call("change_groups", _rows(groups), len(groups))

    def start(self) -> None:
        """Waits until all processes have the same tensors with the same values."""
        self.call("start")
        self._is_started = True

    def steps_made(self) -> int:
        """That were ended, in all generations of the job's processes."""
        if not self._is_started:
            return self._begin_step
        counters = _library.Counters()
        self.call("counters", ctypes.byref(counters))
        return int(counters.steps)

    def commit(self) -> None:
        """All processes can go on from here. Does nothing in a job that ends with a loss."""
        if self._may_commit:
            if self.settle:
                self.settle()
            if self.before_leave:
                self.before_leave()  # the vector gets what lies on a GPU
            try:
                self.call("commit")
            except UnsupportedError:
                self._may_commit = False

    def go_on(self, steps: int) -> None:
        """Before the start: so many steps were made, by what all processes have now."""
        if not self._is_started:
            self._begin_step = steps
            if steps > 0:
                self.call("go_on", steps)

    def rejoin(self) -> None:
        """Waits until those that are left, and those that have come, are the job's processes."""
        self._is_started = False
        if self.call("rejoin"):
            self._handle = None
            _come_too_late(self.library)
        self.call("job", ctypes.byref(self.description))

    def _use(self) -> ctypes.c_void_p:
        if self._handle is None:
            raise RingsideError("this process has left the job: the script called shutdown()")
        if os.getpid() != self.process_id:
            raise RingsideError(
                "this is a fork of the process that is in the job: only that one may use it"
            )
        return self._handle

    def _give_up_handle(self) -> ctypes.c_void_p | None:
        """The handle, once, in the process that has it."""
        if self._handle is None or os.getpid() != self.process_id:
            return None
        handle, self._handle = self._handle, None
        return handle

    def leave(self) -> None:
        """Waits until all processes have left; an error if the job did not end well."""
        if self._handle is not None and os.getpid() == self.process_id and not self._is_started:
            if not self._is_described:  # a script of collectives alone, in all processes
                self.describe([])
                if not self.description.servers_update:  # the job's optimizer has no use
                    self.call("keep_gradients")
            self.start()
        if self._handle is not None and os.getpid() == self.process_id:
            if self.settle:
                with suppress(RingsideError):  # "leave" says it
                    self.settle()
            if self.before_leave:
                self.before_leave()
        handle = self._give_up_handle()
        if handle is not None:
            self.library.call("leave", handle)

    def fail(self, why: str) -> None:
        """Ends the job for all."""
        handle = self._give_up_handle()
        if handle is not None:
            text = " ".join(why.split()).encode("ascii", "replace")[:_WHY_BYTES]
            self.library.call_raw("fail", handle, text.rstrip(b"."))


def _come_too_late(library: _library.Library) -> None:
    """The job was completed by the others: there is nothing left to do."""
    sentence = library.call_raw("error", None).decode("utf-8", "replace")
    print(f"ringside: {sentence}", file=sys.stderr, flush=True)
    raise SystemExit(0)


_job: Job | None = None
_has_hooks = False


def join() -> Job:
    """Joins the job of the environment, unless this process has."""
    global _job
    if _job is None:
        if not os.environ.get("RINGSIDE_SERVER"):
            raise RingsideError(
                "this process has no job (RINGSIDE_SERVER is not set): start the script by "
                "`ringside run -n 2 --mode ring -- python3 train.py`"
            )
        _job = Job()
        _add_hooks()
    elif not is_in_job():
        raise RingsideError(
            "this process has left its job, and a process joins once: start another"
        )
    return _job


def is_in_job() -> bool:
    return _job is not None and _job._handle is not None


def current() -> Job:
    """The job. An error outside of one."""
    if _job is None:
        raise RingsideError("this process is in no job yet: the script has to call init() first")
    return _job


def describe_error(error: BaseException) -> str:
    """An exception as the last line of its traceback has it; of sys.exit(text), the text."""
    if isinstance(error, SystemExit):
        return _describe_exit(error.code)
    name = type(error).__name__
    return f"{name}: {error}" if str(error) else name


def has_failed(error: BaseException | None) -> bool:
    """Whether it ends the script badly: not so sys.exit() and sys.exit(0)."""
    return error is not None and not (isinstance(error, SystemExit) and not error.code)


def _describe_exit(code: object) -> str:
    return code if isinstance(code, str) else f"the script ended with sys.exit({code!r})"


def _add_hooks() -> None:
    global _has_hooks
    if not _has_hooks:
        _has_hooks = True
        atexit.register(_at_exit)
        sys.excepthook = _note_exception(sys.excepthook)
        sys.exit = _exit
        _hear_stderr()


_exit_code: object = None  # of the SystemExit that has ended the script
_is_ending = False
_outermost: FrameType | None = None  # the script's, until Python ends
_RETURNS = {dis.opmap[name] for name in ("RETURN_VALUE", "RETURN_CONST") if name in dis.opmap}


class _Exit(SystemExit):
    """What sys.exit raises. It notes whether it ends the script, which Python tells nobody.

    One that a script catches is dropped while a frame of the script runs. One that ends it is
    dropped when there is none any more, or, if it is in a circle of references, after that.
    """

    def __del__(self) -> None:
        global _exit_code
        if _is_ending or sys._getframe().f_back is None:
            _exit_code = self.code


class _Stderr(io.TextIOWrapper):
    """Standard error, which notes what Python itself writes there after the script.

    That is the text of a SystemExit that has ended it: one of Python's own class, which the script
    has raised, and which Python shows to nobody else.
    """

    def write(self, text: str, /) -> int:
        global _exit_code
        if sys._getframe().f_back is None and _has_raised() and text.strip():
            _exit_code = text
        return super().write(text)


def _has_raised() -> bool:
    """Whether the script has not come to its end, where its last frame is left."""
    frame = _outermost
    return frame is not None and frame.f_code.co_code[frame.f_lasti] not in _RETURNS


def _hear_stderr() -> None:
    global _outermost
    file = sys.stderr
    is_main = threading.current_thread() is threading.main_thread()
    if type(file) is not io.TextIOWrapper or not is_main:
        return  # another's, which is left alone
    file.flush()
    try:
        heard = _Stderr(
            file.buffer,
            file.encoding,
            file.errors,
            line_buffering=file.line_buffering,
            write_through=file.write_through,
        )
    except OSError:
        return  # the descriptor is not what Python has opened
    frame = sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
    sys.stderr, _outermost = heard, frame
    # Called before the functions of atexit, which may write what they like.
    getattr(threading, "_register_atexit", lambda function: None)(_stop_hearing)


def _stop_hearing() -> None:
    global _outermost
    _outermost = None


def _exit(status: Any = None, /) -> NoReturn:
    """sys.exit of a process that is in a job."""
    if status and threading.current_thread() is threading.main_thread():
        raise _Exit(status)  # without a name here, which would be a circle of references
    raise SystemExit(status)


def _note_exception(shown_by: Callable[..., Any]) -> Callable[..., Any]:
    """An exception that nobody has caught: shows it, as ever, then fails the job."""

    def note(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        shown_by(kind, error, trace)
        sys.stderr.flush()
        if _job is not None:
            _job.fail(describe_error(error))

    return note


def _at_exit() -> None:
    global _is_ending
    if _job is None:
        return
    _is_ending = True
    gc.collect()  # maybe an _Exit
    if _exit_code:
        _job.fail(_describe_exit(_exit_code))
        return
    try:
        _job.leave()
    except RingsideError as error:
        sys.stdout.flush()
        print(f"ringside: {error}", file=sys.stderr, flush=True)
        os._exit(1)  # an exception at this point would not change how the process ends
