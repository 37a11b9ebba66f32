"""A job that something happens to: its processes, who they are, and what is left of it.

Whoever uses this is the subreaper of all that it starts: a process of the job that loses its parent
becomes its child, so nothing that the job has started gets out of sight, whatever it is called.
"""
import ctypes
import fcntl
import glob
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import time

from lab_folder import LabFolder
from patience import patient

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
PTRACE_SEIZE, PTRACE_INTERRUPT = 0x4206, 0x4207
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
POLL_S = 0.01
USUAL = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGPIPE)

# Leaves ssh's options and the host aside, and runs here what it should run there.
SSH = """#!/bin/sh
while [ $# -gt 0 ]; do
    case "$1" in -T) shift ;; -o) shift 2 ;; *) break ;; esac
done
host=$1; shift
exec sh -c "$*"
"""


def raise_loopback():
    """Of a network namespace that is new."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sH22x", b"lo", 0)
        flags = struct.unpack("16sH22x", fcntl.ioctl(any_socket, SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sH22x", b"lo", flags | IFF_UP))


def begin_session(user=None):
    """In a new process: nothing is ignored because whoever started the check has ignored it."""
    os.setsid()
    for number in USUAL:
        signal.signal(number, signal.SIG_DFL)
    if user is not None:
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)


def read_text(path):
    """"" if it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


class Process:
    """One of the job's, as /proc has it."""

    def __init__(self, pid, state):
        self.pid, self.state = pid, state
        self.words = [word for word in read_text(f"/proc/{pid}/cmdline").split("\0") if word]

    def option(self, name):
        for at, word in enumerate(self.words):
            if word == name and at + 1 < len(self.words):
                return self.words[at + 1]
            if word.startswith(name + "="):
                return word[len(name) + 1:]
        return None

    @property
    def role(self):
        """"worker 1", "server 0" (the coordinator), "agent", "launcher", "trial", or "" ."""
        program = os.path.basename(self.words[0]) if self.words else ""
        if program == "worker":
            return "trial" if "--probe" in self.words else f"worker {self.option('--rank')}"
        if program == "ps":
            return f"server {self.option('--shard-index') or 0}"
        if program == "ringside":
            return "agent" if "agent" in self.words[1:2] else "launcher"
        return ""


class FaultLab(LabFolder):
    """A job in `folder`, which is empty, and the processes that it has started."""

    user = None  # whose processes they are; None: our own
    prefix = ()  # a command that becomes the program that it is given

    def __init__(self, build, folder):
        system = ctypes.CDLL(None)
        system.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        system.prctl(PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
        signal.signal(signal.SIGTERM, lambda number, frame: sys.exit("ended from outside"))
        self.build, self.folder = build, folder
        self.ended = {}  # pid: as waitpid gives it
        self.started = {}  # pid: the name of its output
        for name in ("tmp", "home", "runtime"):
            os.mkdir(self.path(name), 0o700)
        self.write("ssh", SSH, 0o700)
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.startswith("RINGSIDE_")}
        self.environment.update(TMPDIR=self.path("tmp"), HOME=self.path("home"),
                                XDG_RUNTIME_DIR=self.path("runtime"))

    def device(self):
        """What workers compute on: cpu, if it was built."""
        said = subprocess.run([os.path.join(self.build, "worker", "worker"), "--backends"],
                              stdout=subprocess.PIPE, text=True, check=False, env=self.environment)
        has_cpu = any('"name":"cpu","available":true' in line for line in said.stdout.splitlines())
        return ["--device", "cpu" if has_cpu else "ref"]

    def start(self, name, program, *arguments, announces=False):
        """Starts build/PROGRAM; its output is NAME.txt. Its pid; the endpoint, if it announces one."""
        command = [*self.prefix, os.path.join(self.build, program), *arguments]
        ends = os.pipe() if announces else None
        if announces:
            command += ["--announce-fd", str(ends[1])]
        with open(self.path(name + ".txt"), "wb") as output:
            process = subprocess.Popen(  # pylint: disable=consider-using-with
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                cwd=self.folder, env=self.environment, preexec_fn=lambda: begin_session(self.user),
                pass_fds=ends[1:] if announces else ())
        process.returncode = 0  # it is reaped here, not there
        self.started[process.pid] = name
        if not announces:
            return process.pid
        os.close(ends[1])
        with os.fdopen(ends[0], encoding="utf-8") as announcement:
            return process.pid, announcement.readline().strip()

    def keys(self, wants_some):
        """The options that members need by hand: where there is tcp, they have keys."""
        if not wants_some:
            return []
        making = self.start("keygen", "deploy/ringside", "keygen", self.path("keys"))
        self.wait_until(lambda: self.code(making) is not None, patient(60))
        return ["--keys", self.path("keys")]

    def reap(self):
        while True:
            try:
                pid, result = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self.ended[pid] = result

    def processes(self):
        """All that descend from us and have not ended."""
        self.reap()
        found, parents = [], [os.getpid()]
        while parents:
            parent = parents.pop()
            for path in glob.glob(f"/proc/{parent}/task/*/children"):
                parents += [int(word) for word in read_text(path).split()]
            if parent != os.getpid():
                stat = read_text(f"/proc/{parent}/stat").rsplit(")", 1)[-1].split()
                if stat and stat[0] != "Z":
                    found.append(Process(parent, stat[0]))
        return sorted(found, key=lambda process: process.pid)

    def code(self, pid):
        """Its exit code, or 128 and the signal; None if it has not ended."""
        self.reap()
        result = self.ended.get(pid)
        if result is None:
            return None
        return os.WEXITSTATUS(result) if os.WIFEXITED(result) else 128 + os.WTERMSIG(result)

    def wait_until(self, is_so, seconds):
        """Whether it came to be so."""
        deadline = time.monotonic() + seconds
        while not is_so():
            if time.monotonic() > deadline:
                return False
            time.sleep(POLL_S)
        return True

    def end_all(self):
        """Kills whoever is left."""
        for _ in range(100):
            left = self.processes()
            if not left:
                return
            for process in left:
                self.signal(process.pid, signal.SIGKILL)
            time.sleep(0.02)

    def signal(self, pid, number):
        """False if it has gone."""
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return False
        return True

    def hang(self, pid, thread):
        """Stops the thread of this name and no other, without a signal: to its parent, and all others, it runs."""
        system = ctypes.CDLL(None, use_errno=True)
        system.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
        for task in os.listdir(f"/proc/{pid}/task"):
            if read_text(f"/proc/{pid}/task/{task}/comm").strip() == thread:
                for request in (PTRACE_SEIZE, PTRACE_INTERRUPT):
                    if system.ptrace(request, int(task), None, None) != 0:
                        raise AssertionError(f"ptrace: {os.strerror(ctypes.get_errno())}")
                return
        raise AssertionError(f"process {pid} has no thread {thread}")

    # What it has written.

    def said(self):
        return "".join(f"--- {name}\n" + read_text(self.path(name + ".txt"))
                       for name in self.started.values())

    def logs(self):
        return "".join(f"--- {path[len(self.folder) + 1:]}\n{read_text(path)}"
                       for path in sorted(glob.glob(self.path("**", "logs", "*.log"), recursive=True)))

    def run_folders(self):
        """Those that were begun: somebody has written a log or a description there."""
        begun = set()
        for path in glob.glob(self.path("**", "job.json"), recursive=True):
            begun.add(os.path.dirname(path))
        for path in glob.glob(self.path("**", "logs"), recursive=True):
            begun.add(os.path.dirname(path))
        return sorted(folder for folder in begun
                      if not folder.startswith(self.path("tmp") + os.sep))

    def summary(self, folder):
        """None if there is none; a text if it is no JSON."""
        text = read_text(os.path.join(folder, "summary.json"))
        if text == "":
            return None
        try:
            return json.loads(text)
        except ValueError:
            return text

    def last_step(self):
        """Of the newest line of any metrics.jsonl; -1 if there is none."""
        paths = glob.glob(self.path("**", "metrics.jsonl"), recursive=True)
        newest = max(paths, key=os.path.getmtime, default=None)
        steps = re.findall(r'"step": ?(\d+)', read_text(newest)[-2000:]) if newest else []
        return int(steps[-1]) if steps else -1

    def leftovers(self):
        """Files that should not be there any more, and sockets."""
        found = []
        for folder, _, names in os.walk(self.folder):
            for name in names:
                path = os.path.join(folder, name)
                is_draft = name.endswith((".part", ".reserve", ".lock"))
                is_temporary = any(path.startswith(self.path(place) + os.sep)
                                   for place in ("tmp", "runtime"))
                if is_draft or is_temporary:
                    found.append(path[len(self.folder) + 1:])
        for name in os.listdir(self.path("tmp")):
            if os.path.isdir(self.path("tmp", name)):
                found.append(f"tmp/{name}/")
        return found

    def sockets(self):
        """Names and ports in this network namespace."""
        names = [line.split()[7] for line in read_text("/proc/net/unix").splitlines()[1:]
                 if len(line.split()) > 7]
        ports = [line.split()[1] for line in read_text("/proc/net/tcp").splitlines()[1:]
                 if line.split()[3] == "0A"]
        return names + ports
