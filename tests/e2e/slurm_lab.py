"""A Slurm for tests: a controller and four nodes on this machine, in a folder, as root or not.

Nodes share the address of this machine, 127.0.0.1; as root they may have namespaces of their own,
with an address and a name each.
"""
import getpass
import os
import shutil
import socket
import subprocess
import sys

from lab_folder import GONE_S, OURS, LabFolder, await_, kill, make_hosts, may_make_hosts
from patience import patient

NODES = 4
NETWORK = "10.78.0"
UNFINISHED = ("PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "REQUEUED", "SUSPENDED")
LEAVES = OURS + ("srun",)  # what a job may leave behind
DAEMONS = ("munged", "slurmctld", "slurmd")
TOOLS = DAEMONS + ("sbatch", "srun", "salloc", "scancel", "scontrol", "squeue")


def find(tool):
    return shutil.which(tool, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def missing_tool():
    for tool in TOOLS:
        if find(tool) is None:
            return tool
    return None


def missing_for_network():
    """Why nodes cannot have addresses of their own here; None if they can."""
    if os.geteuid() != 0:
        return "root"
    for tool in ("ip", "nsenter", "unshare"):
        if find(tool) is None:
            return tool
    return None if may_make_hosts() else "network namespace"


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


class Job:
    """One of Slurm's, with the file that it writes to."""

    def __init__(self, number, output):
        self.number, self.output = number, output

    def said(self):
        if not os.path.exists(self.output):
            return ""
        with open(self.output, encoding="utf-8") as file:
            return file.read()


class SlurmLab(LabFolder):
    """Four nodes of eight cores and two GPUs that are none; gone with all that runs there."""

    def __init__(self, build, source, has_network=False):
        super().__init__(build, "slurm")
        self.source = source
        self.has_network = has_network
        self.scripts = os.path.join(source, "deploy", "slurm")
        self.programs = {"ringside": self.ringside,
                         "ps": os.path.join(self.build, "ps-server", "ps"),
                         "worker": os.path.join(self.build, "worker", "worker")}
        os.chmod(self.folder, 0o755)  # munged wants its socket to be reachable
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.startswith(("RINGSIDE_", "SLURM"))}
        self.environment.update(SLURM_CONF=self.path("slurm.conf"), RINGSIDE=self.ringside)
        self.names = 0

    def new_name(self):
        self.names += 1
        return f"job{self.names}"

    def run(self, *command, check=True):
        done = subprocess.run(command, check=False, stdin=subprocess.DEVNULL, cwd=self.folder,
                              env=self.environment, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=patient(300))
        if check and done.returncode != 0:
            raise AssertionError(f"{command}: exit code {done.returncode}\n{done.stdout}")
        return done.stdout

    def space(self, index):
        """Of a node; 0 is the switch. The controller is on node 1, and commands are given there."""
        return f"sl{os.getpid()}-{index}"

    def inside(self, index):
        """What runs a command on a node: by the namespace alone, as /sys must stay."""
        if not self.has_network:
            return ()
        return ("nsenter", f"--net=/run/netns/{self.space(index)}", "unshare", "--uts", "sh", "-c",
                f'hostname host{index}; exec "$@"', "sh")

    def address(self, index):
        return f"{NETWORK}.{index}" if self.has_network else "127.0.0.1"

    def up(self):
        if self.has_network:
            make_hosts(self.run, self.space, NODES, NETWORK)
        user, ports = getpass.getuser(), free_ports(1 + NODES)
        hosts = [f"host{i}" if self.has_network else "localhost" for i in range(NODES + 1)]
        nodes = "".join(f"NodeName=n{i} NodeHostname={hosts[i]} NodeAddr={self.address(i)} "
                        f"Port={ports[i]} "
                        "CPUs=8 RealMemory=4000 Gres=gpu:2\n" for i in range(1, NODES + 1))
        for i in range(2):
            self.write(f"gpu{i}", "")
        self.write("gres.conf", f"NodeName=n[1-{NODES}] Name=gpu File={self.path('gpu[0-1]')}\n")
        self.write("slurm.conf", f"""
ClusterName=loop
SlurmctldHost={hosts[1]}({self.address(1)})
SlurmctldPort={ports[0]}
SlurmUser={user}
SlurmdUser={user}
AuthInfo=socket={self.path("munge.socket")}
StateSaveLocation={self.path("state")}
SlurmdSpoolDir={self.path("spool.%n")}
SlurmctldPidFile={self.path("slurmctld.pid")}
SlurmdPidFile={self.path("slurmd.%n.pid")}
SlurmctldLogFile={self.path("slurmctld.log")}
SlurmdLogFile={self.path("slurmd.%n.log")}
ProctrackType=proctrack/linuxproc
ReturnToService=2
SlurmdTimeout=20
KillWait=2
SchedulerParameters=batch_sched_delay=0
{"" if self.has_network else "CommunicationParameters=NoInAddrAny,NoCtldInAddrAny"}
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
DefMemPerCPU=100
GresTypes=gpu
{nodes}PartitionName=main Nodes=n[1-{NODES}] Default=YES
""", 0o644)
        for name in ["state"] + [f"spool.n{i}" for i in range(1, NODES + 1)]:
            os.mkdir(self.path(name), 0o755)
        with open(self.path("munge.key"), "wb") as file:
            file.write(os.urandom(128))
        os.chmod(self.path("munge.key"), 0o600)
        self.run(find("munged"), f"--key-file={self.path('munge.key')}",
                 f"--socket={self.path('munge.socket')}", f"--pid-file={self.path('munged.pid')}",
                 f"--log-file={self.path('munged.log')}", f"--seed-file={self.path('munged.seed')}")
        self.run(*self.inside(1), find("slurmctld"), "-f", self.path("slurm.conf"))
        for i in range(1, NODES + 1):
            self.run(*self.inside(i), find("slurmd"), "-f", self.path("slurm.conf"), "-N", f"n{i}")
        await_(lambda: self.run(*self.inside(1), "sinfo", "-h", "-o", "%D %t",
                                check=False).strip() == f"{NODES} idle", "nodes are idle")

    def submit(self, *arguments, variables=None):
        """A job that runs by now, or soon."""
        output = self.path(f"{self.new_name()}.log")
        self.environment.update(variables or {})
        said = self.run(*self.inside(1), "sbatch", "--parsable", f"--output={output}",
                        *arguments, check=False)
        for name in variables or {}:
            del self.environment[name]
        number = said.strip().split(";", maxsplit=1)[0]
        if not number.isdigit():
            raise AssertionError(f"{arguments}: {said}")
        return Job(number, output)

    def facts(self, job):
        """What Slurm knows of it, by name."""
        said = self.run(*self.inside(1), "scontrol", "show", "job", "--oneliner", job.number)
        return dict(word.split("=", 1) for word in said.split() if "=" in word)

    def wait(self, job):
        """Its exit code, once it is over; -1 if a signal or Slurm has ended it."""
        await_(lambda: self.facts(job)["JobState"] not in UNFINISHED, f"{job.number} is over",
               240)
        facts = self.facts(job)
        code, by_signal = facts["ExitCode"].split(":")
        has_ended = by_signal == "0" and facts["JobState"] in ("COMPLETED", "FAILED")
        return int(code) if has_ended else -1

    def finish(self, job, expected=0):
        code = self.wait(job)
        if code != expected:
            raise AssertionError(f"exit code {code}, not {expected}:\n{job.said()}")
        return job.said()

    def script(self, text, *arguments, expected=0):
        """A job of these lines, to its end; what it wrote."""
        lines = f"#!/bin/bash\nringside={self.ringside}\n{text}\n"
        path = self.write(f"{self.new_name()}.sh", lines, 0o700)
        return self.finish(self.submit(*arguments, path), expected)

    def await_training(self, folder, job):
        def trains():
            if self.facts(job)["JobState"] not in UNFINISHED:
                raise AssertionError(f"it does not train: {self.facts(job)}\n{job.said()}")
            return self.has_metrics(folder)
        await_(trains, f"it trains:\n{job.said()}")

    def expedite(self, job):
        """Slurm starts a job that is queued again after two minutes; this one at once, but not in the
        second in which it was ended: a node takes it for that one then, and does not launch it."""
        await_(lambda: self.facts(job)["Restarts"] != "0" and
               self.facts(job)["JobState"] == "PENDING", "it is queued again")
        await_(lambda: not self.run("scontrol", "update", f"JobId={job.number}",
                                    "StartTime=now+2", check=False).strip(), "it may start")

    def processes(self, names=LEAVES):
        """Those of ours in this Slurm, by pid; without names all that it has to do with."""
        found, mark = {}, f"SLURM_CONF={self.path('slurm.conf')}"
        for pid in filter(str.isdigit, os.listdir("/proc")):
            name = self.read_process(pid, "comm").strip()
            if (names is None or name in names) and mark in self.read_process(pid, "environ").split("\0"):
                found[int(pid)] = name
        return found

    @staticmethod
    def read_process(pid, part):
        """A file of /proc; empty if the process has ended, or is somebody else's."""
        try:
            with open(f"/proc/{pid}/{part}", encoding="utf-8", errors="replace") as file:
                return file.read()
        except OSError:
            return ""

    def expect_nothing_left(self):
        def queue():
            return self.run(*self.inside(1), "squeue", "-h").strip()
        await_(lambda: not self.processes() and not queue(),
               lambda: f"nothing is left: {self.processes()} {queue()}", GONE_S)

    def clear(self):
        """After a case that went wrong: no jobs."""
        self.run("scancel", "--user", getpass.getuser(), check=False)
        try:
            self.expect_nothing_left()
        except AssertionError as error:
            print(error, file=sys.stderr)

    def down(self):
        self.run(*self.inside(1), "scancel", "--user", getpass.getuser(), check=False)
        for name in [f"slurmd.n{i}" for i in range(1, NODES + 1)] + ["slurmctld", "munged"]:
            try:
                with open(self.path(f"{name}.pid"), encoding="utf-8") as file:
                    kill(int(file.read()))
            except (OSError, ValueError):
                print(f"    ({name} had ended before)", file=sys.stderr)
        for pid in self.processes(names=None):
            kill(pid)  # such as slurmstepd, which has nobody to report to any more
        for i in range(NODES + 1 if self.has_network else 0):
            self.run("ip", "netns", "del", self.space(i), check=False)
        self.remove()
