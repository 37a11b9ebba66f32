"""Starts the processes of one measurement, waits for them, and ends them whatever happens.

A process is (command, host). A host is where it runs: what comes before its command, such as
`ip netns exec NAME`, and the address it is reached at.
"""
import collections
import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TIMEOUT_S = 900  # of one measurement: eight processes on two cores take their time
GRACE_S = 3.0  # once one process has failed, the others have this long to say why

Host = collections.namedtuple("Host", "prefix address")
LOCAL = Host((), "127.0.0.1")

# What guards the connections of a job: see `ps --help`.
SECURITIES = ("none", "curve", "auth-only")

# Threads that spin while they wait cost the others their cores.
# Not what RINGSIDE_ variables would make of the jobs' options: the command lines say all.
ENVIRONMENT = {**{name: value for name, value in os.environ.items()
                  if not name.startswith("RINGSIDE_")},
               "OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": "0"}


class Failed(Exception):
    """A run that did not work: the command, and what was printed."""


class Unavailable(Exception):
    """What this machine, or this user, does not allow."""


@contextlib.contextmanager
def uninterrupted():
    """Signals that end a benchmark wait until what is made, or removed, is whole."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM, signal.SIGHUP, signal.SIGINT))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def exit_on_signals():
    """SIGTERM and SIGHUP unwind like Ctrl-C does, so that nothing is left behind."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda received, frame: sys.exit(128 + received))


def run_main(main):
    """main(), with one line for what users can do something about."""
    exit_on_signals()
    try:
        main()
    except Failed as failed:
        sys.exit(f"{os.path.basename(sys.argv[0])}: {failed}")
    except KeyboardInterrupt:
        sys.exit(130)


def run_tool(*command, text=None):
    """What a tool of the system prints, with `text` as its input."""
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        reason = (done.stderr.strip() or f"exit status {done.returncode}").splitlines()[0]
        raise Unavailable(f"{' '.join(command)}: {reason}")
    return done.stdout


def run_lines(command, variables=None):
    """The lines of JSON that a command prints which ends by itself."""
    command = [str(word) for word in command]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          check=False, env={**os.environ, **(variables or {})})
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode != 0 or not lines:
        raise Failed(f"exit status {done.returncode}: {' '.join(command)}\n"
                     f"{done.stdout}{done.stderr}")
    return [json.loads(line) for line in lines]


class Processes:
    """Processes that are started together; `with` ends what still runs.

    All of them go without keys, off the loopback interface as well; those of a build that is given
    have fresh ones, unless `security` is "none". They fail if the delay line that they need ends.
    """

    def __init__(self, timeout_s, build=None, security="none", delay_line=None):
        self.delay_line = delay_line  # borrowed
        self.deadline = time.monotonic() + timeout_s
        self.timeout_s = timeout_s
        with uninterrupted():
            self.folder = tempfile.TemporaryDirectory(prefix="ringside-bench-")
        self.list, self.commands, self.cpu_seconds = [], [], []
        self.environment = {**ENVIRONMENT, "RINGSIDE_INSECURE": "true"}
        if security != "none":
            keys = os.path.join(self.folder.name, "job.keys")
            subprocess.run([os.path.join(build, "deploy", "ringside"), "keygen", keys], check=True,
                           stdout=subprocess.DEVNULL)
            self.environment = {**ENVIRONMENT, "RINGSIDE_KEYS": keys}

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        with uninterrupted():
            for process in self.list:
                if process.returncode is None:
                    process.kill()
                    process.wait()
            self.folder.cleanup()

    def log_path(self, index, stream):
        return os.path.join(self.folder.name, f"{index}.{stream}")

    def start(self, command, host=LOCAL, pass_fds=()):
        index = len(self.list)
        command = [*host.prefix, *map(str, command)]
        with open(self.log_path(index, "out"), "wb") as out, \
                open(self.log_path(index, "err"), "wb") as err:
            try:
                process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out,
                                           stderr=err, pass_fds=pass_fds, env=self.environment)
            except OSError as error:
                raise Failed(f"cannot start {' '.join(command)}: {error}") from error
        self.list.append(process)
        self.commands.append(" ".join(command))
        self.cpu_seconds.append(0.0)
        return process

    def read(self, index, stream):
        with open(self.log_path(index, stream), encoding="utf-8", errors="replace") as file:
            return file.read()

    def fail(self, index, why):
        said = "".join(self.read(i, "err") for i in range(len(self.list)))
        raise Failed(f"{why}\n{self.commands[index]}\n{self.read(index, 'out')}{said}")

    def reap(self, index):
        """Whether it has ended; then its exit status and CPU time are known."""
        process = self.list[index]
        if process.returncode is not None:
            return True
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid == 0:
            return False
        process.returncode = os.waitstatus_to_exitcode(status)
        self.cpu_seconds[index] = usage.ru_utime + usage.ru_stime
        return True

    def sleep(self, running):
        """Until one of these ends, or the time is over. Looking at them every few milliseconds would
        take more than a hundredth of a core from jobs that need all of them."""
        ends = select.poll()
        descriptors = [os.pidfd_open(self.list[index].pid) for index in running]
        if self.delay_line is not None:
            descriptors.append(os.pidfd_open(self.delay_line.process.pid))
        try:
            for descriptor in descriptors:
                ends.register(descriptor, select.POLLIN)
            ends.poll(1000 * max(0, self.deadline - time.monotonic()))
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def wait(self):
        """Until all have ended well."""
        failed = None
        while True:
            if self.delay_line is not None and self.delay_line.failure():
                raise Failed(self.delay_line.failure())
            running = [i for i in range(len(self.list)) if not self.reap(i)]
            bad = [i for i, process in enumerate(self.list) if process.returncode not in (None, 0)]
            if bad and failed is None:
                failed = bad[0]
                self.deadline = min(self.deadline, time.monotonic() + GRACE_S)
            if not running:
                break
            if time.monotonic() > self.deadline:
                index = running[0] if failed is None else failed
                self.fail(index, f"still running after {self.timeout_s:.0f} s:" if failed is None
                          else f"exit status {self.list[index].returncode}:")
            self.sleep(running)
        if failed is not None:
            self.fail(failed, f"exit status {self.list[failed].returncode}:")

    def results(self, first=0):
        """The lines of JSON that processes from `first` on printed."""
        lines = "".join(self.read(i, "out") for i in range(first, len(self.list))).splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]


def read_endpoint(processes, descriptor):
    """What the `ps` that was started last announces."""
    ready, _, _ = select.select([descriptor], [], [], 10)
    line = os.read(descriptor, 4096).decode().strip() if ready else ""
    if not line:
        processes.fail(len(processes.list) - 1, "the coordinator announces no endpoint:")
    return line


def start_job(processes, build, job, servers, workers, worker_command):
    """`servers` and `workers` are hosts; the first server is the coordinator, in every mode.
    worker_command(rank, endpoint, host) is what a worker runs.
    """
    program = os.path.join(build, "ps-server", "ps")
    reader, writer = os.pipe()
    try:
        processes.start([program, "--bind", servers[0].address, "--announce-fd", writer,
                         "--progress", "none", *job], servers[0], (writer,))
    finally:
        os.close(writer)
    try:
        endpoint = read_endpoint(processes, reader)
    finally:
        os.close(reader)
    for index, host in enumerate(servers[1:], 1):
        processes.start([program, "--shard-index", index, "--server", endpoint, "--bind",
                         host.address], host)
    for rank, host in enumerate(workers):
        processes.start(worker_command(rank, endpoint, host), host)


def run_exchange(build, mode, size, options, servers, workers, warmup, rounds, buckets=1,
                 security="none", is_ordinary=False, timeout_s=TIMEOUT_S):
    """bench_exchange in a job of its own: rank 0's line, with the CPU seconds of all processes.

    Those of servers are counted from start to end, so the share of the timed rounds is taken.
    """
    # What bench_exchange cuts is its own, but servers take no larger frames than the job says.
    bucket_mb = max(size / buckets / 2**20, 0.001)
    job = ["--mode", mode, "--workers", len(workers), "--steps", warmup + rounds + 1, "--eval",
           "none", "--optimizer", "sgd", "--data", "synthetic", "--bucket-mb", f"{bucket_mb:.6f}",
           *options]
    if mode != "ring":
        job += ["--servers", len(servers)]
    if security != "none":
        job += ["--security", security]

    def command(rank, endpoint, host):
        return [os.path.join(build, "bench", "bench_exchange"), "--server", endpoint, "--rank",
                rank, "--bind", host.address, "--bytes", size, "--buckets", buckets, "--warmup",
                warmup, *(["--ordinary"] if is_ordinary else [])]

    with Processes(timeout_s, build, security) as processes:
        start_job(processes, build, job, servers, workers, command)
        processes.wait()
        lines = processes.results(len(servers))
        server_cpu = sum(processes.cpu_seconds[:len(servers)])
    if len(lines) != len(workers):
        raise Failed(f"{len(lines)} of {len(workers)} workers printed a result")
    lines.sort(key=lambda line: line["rank"])
    result = dict(lines[0])
    result["security"] = security
    result["cpu_seconds"] = sum(line["cpu_seconds"] for line in lines)
    if mode != "ring":
        result["cpu_seconds"] += server_cpu * rounds / (warmup + rounds + 1)
    result["workers_us_median"] = [line["us_median"] for line in lines]
    result["workers_rate"] = [line["rounds"] / line["seconds"] if line["seconds"] > 0 else 0
                              for line in lines]
    return result
