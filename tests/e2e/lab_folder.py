"""What the labs of tests have in common: a folder of their own, waiting, and hosts on one switch."""
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time

from patience import patient

GONE_S = 30  # far more than "within seconds": a loaded machine proves nothing
OURS = ("ringside", "ps", "worker")


class LabFolder:
    """Files below `folder`, and the launcher of a build."""

    def __init__(self, build, name):
        self.build = os.path.abspath(build)
        self.ringside = os.path.join(self.build, "deploy", "ringside")
        self.folder = tempfile.mkdtemp(prefix=f"ringside-{name}-")

    def remove(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def summary(self, folder):
        with open(self.path(folder, "summary.json"), encoding="utf-8") as file:
            return json.load(file)

    def has_metrics(self, folder):
        """Whether a worker of the job has reported."""
        metrics = self.path(folder, "metrics.jsonl")
        return os.path.exists(metrics) and os.path.getsize(metrics) > 0

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def write(self, name, text, mode=0o600):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(self.path(name), mode)
        return self.path(name)


def has_steps(place):
    """Whether a folder has a checkpoint, or a mirror a copy."""
    return os.path.isdir(place) and any(name.startswith("step-") for name in os.listdir(place))


def await_(is_so, what, limit_s=60):
    """Waits until is_so(); raises after limit_s, or a longer time (patience.py). `what` may be a function that says what it is."""
    deadline = time.monotonic() + patient(limit_s)
    while not is_so():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited in vain until {what() if callable(what) else what}")
        time.sleep(0.05)


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        pass  # it has ended by itself


def may_make_hosts():
    """Whether this user may make network namespaces."""
    probe = f"lab{os.getpid()}-probe"
    if subprocess.run(["ip", "netns", "add", probe], check=False,
                      stderr=subprocess.DEVNULL).returncode != 0:
        return False
    subprocess.run(["ip", "netns", "del", probe], check=False)
    return True


def make_hosts(run, space, count, network):
    """Network namespaces space(1) ... space(count), each with an address NETWORK.NUMBER on eth0, behind
    a bridge in space(0). run(*command) raises if a command fails."""
    switch = space(0)
    run("ip", "netns", "add", switch)
    run("ip", "-n", switch, "link", "add", "br0", "type", "bridge")
    run("ip", "-n", switch, "link", "set", "br0", "up")
    for index in range(1, count + 1):
        host = space(index)
        run("ip", "netns", "add", host)
        run("ip", "link", "add", f"v{index}", "netns", switch, "type", "veth", "peer", "name",
            "eth0", "netns", host)
        run("ip", "-n", switch, "link", "set", f"v{index}", "master", "br0", "up")
        run("ip", "-n", host, "addr", "add", f"{network}.{index}/24", "dev", "eth0")
        run("ip", "-n", host, "link", "set", "lo", "up")
        run("ip", "-n", host, "link", "set", "eth0", "up")
