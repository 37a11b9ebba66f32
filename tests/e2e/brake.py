"""Makes single threads of a running job slow."""
import os
import subprocess
import sys


def workers_parts(launcher, role, number):
    """Threads of a process below a launcher, by name: worker 1, or the server of shard 1."""
    option = b"--rank" if role == "worker" else b"--shard-index"
    found = {}
    for pid in os.listdir("/proc"):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                arguments = file.read().split(b"\0")
            if option not in arguments or not is_below(int(pid), launcher):
                continue
            if arguments[arguments.index(option) + 1] != str(number).encode():
                continue
            for task in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{task}/comm", encoding="ascii") as file:
                    found.setdefault(file.read().strip(), []).append(int(task))
        except (OSError, ValueError, IndexError):
            continue
    return found


def is_below(pid, ancestor):
    while pid > 1:
        if pid == ancestor:
            return True
        try:
            with open(f"/proc/{pid}/stat", encoding="ascii") as file:
                pid = int(file.read().rsplit(")", 1)[1].split()[1])
        except (OSError, ValueError, IndexError):
            return False
    return False


class Brake:
    """Leaves a thread a small part of one core: others, each in a session of its own, share it. One
    that is pressed hard has a 200th of it. (An idle class would have a 10,000th: that job would not
    end.)"""
    OTHERS = 24
    HARD_NICE = 10

    def __init__(self):
        self.core = min(os.sched_getaffinity(0))
        busy = f"import os\nwhile os.getppid() == {os.getpid()}: pass"  # ends with this test
        self.others = [subprocess.Popen([sys.executable, "-c", busy], start_new_session=True)
                       for _ in range(self.OTHERS)]
        for other in self.others:
            os.sched_setaffinity(other.pid, {self.core})

    def press(self, thread, is_hard):
        os.sched_setaffinity(thread, {self.core})
        if is_hard:
            os.setpriority(os.PRIO_PROCESS, thread, self.HARD_NICE)

    def spare(self, thread):
        """Keeps a thread off that core: a kernel may leave it there for long among so many others."""
        try:
            os.sched_setaffinity(thread, os.sched_getaffinity(0) - {self.core})
        except ProcessLookupError:
            pass  # it has ended

    def release(self):
        for other in self.others:
            other.kill()
            other.wait()
