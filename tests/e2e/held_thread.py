"""Stops a single thread of a running process, as a disk does that hangs below it."""
import ctypes
import os

LIBC = ctypes.CDLL(None, use_errno=True)
PTRACE_SEIZE, PTRACE_DETACH, PTRACE_INTERRUPT = 0x4206, 17, 0x4207
WAIT_ALL = 0x40000000  # __WALL: also for threads


def trace(request, thread):
    LIBC.ptrace.restype = ctypes.c_long
    if LIBC.ptrace(ctypes.c_long(request), ctypes.c_long(thread), None, None) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def thread_named(pid, name):
    """The thread of a process that has this name; None: there is none."""
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{task}/comm", encoding="ascii") as file:
                if file.read().strip() == name:
                    return int(task)
        except OSError:
            continue  # it has ended
    return None


class HeldThread:
    """Holds it until release(), or until this process ends. A signal that kills its process kills it, too."""

    def __init__(self, thread):
        self.thread = thread
        trace(PTRACE_SEIZE, thread)
        trace(PTRACE_INTERRUPT, thread)
        os.waitpid(thread, WAIT_ALL)

    def release(self):
        """Also of a process that is killed: nobody sees its end before."""
        try:
            trace(PTRACE_DETACH, self.thread)
        except ProcessLookupError:
            os.waitpid(self.thread, WAIT_ALL)
