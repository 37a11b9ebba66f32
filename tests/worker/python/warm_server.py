"""Runs scripts in processes that have imported PyTorch already.

Importing PyTorch takes a second, and the tests start hundreds of processes. `jobs` starts this server once,
and the launcher starts a copy of `warm_client.py` in the place of Python. The client hands its arguments, its
environment, its folder and its first three descriptors to the server, which forks; the fork becomes the
script. When the client is gone, whatever ended it, the script's process is killed.

usage: warm_server.py SOCKET, with a pipe as standard input, at whose end the server ends
"""

from __future__ import annotations

import array
import atexit
import json
import os
import select
import signal
import socket
import sys
import threading
import traceback
from types import ModuleType

import torch
import torch.distributed
import torch.nn.parallel  # noqa: F401


def receive(connection: socket.socket) -> tuple[dict, list[int]]:
    """What a client wants to have run, and its descriptors."""
    text, descriptors = b"", array.array("i")
    while not text.endswith(b"\n"):
        part, ancillary, _, _ = connection.recvmsg(1 << 16, socket.CMSG_SPACE(3 * descriptors.itemsize))
        if not part:
            raise ConnectionError
        text += part
        for level, kind, data in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                descriptors.frombytes(data)
    return json.loads(text), list(descriptors)


def run_script(arguments: list[str]) -> int:
    """Runs a script as Python would; returns its exit status."""
    sys.argv = arguments
    sys.path[0] = os.path.dirname(os.path.abspath(arguments[0]))
    main = ModuleType("__main__")
    main.__dict__.update(__file__=arguments[0], __builtins__=__builtins__)
    sys.modules["__main__"] = main
    status = 0
    try:
        with open(arguments[0], encoding="utf-8") as file:
            exec(compile(file.read(), arguments[0], "exec"), main.__dict__)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            status = end.code or 0
        else:
            print(end.code, file=sys.stderr)
            status = 1
    except BaseException:
        kind, error, trace = sys.exc_info()
        assert kind and error and trace
        sys.excepthook(kind, error.with_traceback(trace.tb_next), trace.tb_next)
        status = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    return status


def become(wanted: dict, descriptors: list[int]) -> None:
    """Makes this process the one that the client stands for; does not return."""
    status = 1
    try:
        for number, descriptor in enumerate(descriptors):
            os.dup2(descriptor, number)
            os.close(descriptor)
        os.chdir(wanted["folder"])
        os.environ.clear()
        os.environ.update(wanted["environment"])
        folders = wanted["environment"].get("PYTHONPATH", "").split(":")
        sys.path[1:1] = [folder for folder in folders if folder]
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        torch.set_num_threads(1)
        status = run_script(wanted["arguments"])
    except BaseException:
        traceback.print_exc()
    os._exit(status & 0xFF)


def start(connection: socket.socket, others: list[int]) -> int:
    """Forks for a client; returns the fork's id."""
    wanted, descriptors = receive(connection)
    child = os.fork()
    if child == 0:
        for descriptor in [connection.fileno(), *others]:
            os.close(descriptor)
        become(wanted, descriptors)
    for descriptor in descriptors:
        os.close(descriptor)
    connection.sendall(b"%d\n" % child)
    return child


def tell_ends(children: dict[int, socket.socket]) -> None:
    """Hands the statuses of those that ended to their clients."""
    for child in list(children):
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            connection = children.pop(child)
            try:
                connection.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))
            except OSError:
                pass  # the client is gone
            connection.close()


def main() -> None:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(sys.argv[1])
    listener.listen(64)
    wake, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.set_wakeup_fd(waker)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    print("ready", flush=True)
    children: dict[int, socket.socket] = {}
    while True:
        readable, _, _ = select.select([0, wake, listener, *children.values()], [], [])
        if 0 in readable:
            break
        if wake in readable:
            os.read(wake, 4096)
        for child, connection in children.items():
            if connection in readable:  # clients say nothing more: this one is gone
                os.kill(child, signal.SIGKILL)
        tell_ends(children)
        if listener in readable:
            connection, _ = listener.accept()
            others = [wake, waker, listener.fileno(), *(c.fileno() for c in children.values())]
            try:
                children[start(connection, others)] = connection
            except (ConnectionError, ValueError):
                connection.close()
    for child in children:
        os.kill(child, signal.SIGKILL)


if __name__ == "__main__":
    main()
