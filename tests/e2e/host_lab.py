"""Hosts for tests: network namespaces, each with a name and an sshd of its own, on one switch."""
import os
import re
import shutil
import subprocess
import time

from lab_folder import GONE_S, OURS, LabFolder, await_, kill, make_hosts, may_make_hosts
from patience import patient

HOSTS = 4
PORTS = "41000-41040"


def run(*command, check=True):
    return subprocess.run(command, check=check, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True)


def expect(said, *patterns):
    for pattern in patterns:
        if not re.search(pattern, said):
            raise AssertionError(f"'{pattern}' is not in:\n{said}")


class Lab(LabFolder):
    """Hosts as namespaces; removed with all that runs in them."""

    def __init__(self, build):
        super().__init__(build, "hosts")
        self.prefix = f"rs{os.getpid()}"
        self.sshds = {}
        self.outputs = 0

    def space(self, index):
        return f"{self.prefix}-{index}"

    def up(self):
        os.makedirs("/run/sshd", exist_ok=True)
        make_hosts(run, self.space, HOSTS, "10.77.0")
        for name in ("host_key", "user_key"):
            run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.path(name))
        shutil.copy(self.path("user_key.pub"), self.path("authorized"))
        os.mkdir(self.path("data"))
        os.mkdir(self.path("home"))
        for name in [f"data_batch_{i}.bin" for i in range(1, 6)] + ["test_batch.bin"]:
            with open(self.path("data", name), "wb") as file:
                file.write(bytes(3073) * 64)
        names = []
        for index in range(1, HOSTS + 1):
            names.append(f"Host host{index}\n  HostName 10.77.0.{index}\n")
            self.start_sshd(index)
        self.write("ssh_config", "".join(names) + f"""
Host *
  User root
  IdentityFile {self.path("user_key")}
  IdentitiesOnly yes
  UserKnownHostsFile {self.path("known_hosts")}
  StrictHostKeyChecking accept-new
  LogLevel ERROR
""")

    def start_sshd(self, index):
        # How sanitizers behave, where the programs were built with one.
        sanitizers = " ".join(f'"{name}={value}"' for name, value in os.environ.items()
                              if name.endswith("SAN_OPTIONS"))
        config = self.write(f"sshd_config{index}", f"""
ListenAddress 10.77.0.{index}:22
HostKey {self.path("host_key")}
AuthorizedKeysFile {self.path("authorized")}
PidFile none
UsePAM no
StrictModes no
PermitRootLogin prohibit-password
PasswordAuthentication no
SetEnv HOME={self.path("home")} {sanitizers}
MaxStartups 100
""")
        # On host4 the data are a folder without them.
        hide = f"mount -t tmpfs none {self.path('data')}; " if index == 4 else ""
        log = self.path(f"sshd{index}.log")
        self.sshds[index] = subprocess.Popen(
            ["ip", "netns", "exec", self.space(index), "unshare", "--uts", "--mount", "sh", "-c",
             f"hostname host{index}; {hide}exec /usr/sbin/sshd -D -f {config} -E {log}"],
            stdin=subprocess.DEVNULL)
        await_(lambda: os.path.exists(log) and
               "Server listening" in open(log, encoding="utf-8").read(),
               f"the sshd of host{index} listens", GONE_S)

    def stop_sshd(self, index):
        sshd = self.sshds.pop(index, None)
        if sshd is not None:
            sshd.kill()
            sshd.wait()
            os.remove(self.path(f"sshd{index}.log"))

    def processes(self, index):
        """Those of ours on a host, by pid."""
        found = {}
        for pid in run("ip", "netns", "pids", self.space(index)).stdout.split():
            try:
                with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
                    name = file.read().strip()
                with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                    is_zombie = file.read().rsplit(")", 1)[1].split()[0] == "Z"
            except OSError:
                continue
            if name in OURS and not is_zombie:
                found[int(pid)] = name
        return found

    def expect_nothing_left(self, hosts=range(1, HOSTS + 1), says_when=False):
        began = time.monotonic()

        def left():
            return {index: self.processes(index) for index in hosts}
        await_(lambda: not any(left().values()), lambda: f"nothing is left: {left()}", GONE_S)
        if says_when:
            print(f"    (all gone after {time.monotonic() - began:.1f} s)")

    def on_first(self):
        """A command that becomes the one behind it, on host1."""
        return ["ip", "netns", "exec", self.space(1), "unshare", "--uts", "sh", "-c",
                'hostname host1; exec "$@"', "sh"]

    def ssh(self):
        """For --ssh."""
        return f"ssh -F {self.path('ssh_config')}"

    def start(self, command, *arguments):
        """The launcher, on host1, with what it writes in a file."""
        self.outputs += 1
        output = self.path(f"output{self.outputs}")
        process = subprocess.Popen(
            [*self.on_first(), self.ringside, command, "--ssh", self.ssh(), *arguments],
            stdin=subprocess.DEVNULL, stdout=open(output, "wb"), stderr=subprocess.STDOUT)
        process.output = output
        return process

    def finish(self, process, expected=0):
        code = process.wait(timeout=patient(300))
        with open(process.output, encoding="utf-8") as file:
            said = file.read()
        if code != expected:
            raise AssertionError(f"exit code {code}, not {expected}:\n{said}")
        return said

    def job(self, *arguments, expected=0):
        """Output and summary of a job, to its end."""
        out = self.path(f"run{self.outputs + 1}")
        said = self.finish(self.start("run", "--out", out, *arguments), expected)
        return said, self.summary(out), out

    def start_long(self, *arguments):
        """A job that does not end by itself, once all of its workers have trained."""
        out = self.path(f"run{self.outputs + 1}")
        process = self.start("run", "--mode", "ring", "-H", "host1:1,host2:1,host3:1,host4:1",
                             "--coordinator", "host1", "--port-range", PORTS, "--model", "lenet5",
                             "--data", "shapes", "--epochs", "10000", "--limit-train", "64",
                             "--global-batch", "16",
                             "--limit-test", "20", "--eval", "none", "--report-every", "1",
                             "--threads", "1", "--device", "ref", "--on-loss", "fail", "--out", out,
                             *arguments)
        await_(lambda: process.poll() is not None or self.has_metrics(out), "it trains")
        if not self.has_metrics(out):
            raise AssertionError(f"it does not train:\n{self.finish(process)}")
        return process, out

    def launcher_pid(self, process):
        """`ip netns exec`, unshare and sh have become it."""
        return process.pid

    def down(self):
        for index in list(self.sshds):
            self.stop_sshd(index)
        for index in range(HOSTS + 1):
            listed = run("ip", "netns", "pids", self.space(index), check=False)
            for pid in listed.stdout.split() if listed.returncode == 0 else []:
                kill(int(pid))
            run("ip", "netns", "del", self.space(index), check=False)
        self.remove()


def missing_tools():
    if os.geteuid() != 0:
        return "root"
    for tool in ("ip", "nft", "unshare", "ssh", "ssh-keygen"):
        if shutil.which(tool) is None:
            return tool
    if not os.path.exists("/usr/sbin/sshd"):
        return "sshd"
    return None if may_make_hosts() else "network namespaces"
