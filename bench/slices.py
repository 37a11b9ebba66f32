"""Jobs that take turns on one machine: one runs for a slice of time, the others stand still (SIGSTOP).

A machine may change its speed by more than what is to be measured, from one minute to the next. Jobs that run one
after the other are then measured at different speeds. Slices of seconds are not: a slice is compared with those of
another job just before and just after it.
"""
import json
import math
import os
import signal
import statistics
import subprocess
import time

from launching import ENVIRONMENT, TIMEOUT_S, Failed

POLL_S = 0.01
END_S = 60
LINES_MIN = 4  # of each rank, of a slice that counts
# A job that stands still for its turn has lost nobody.
PATIENCE = ["--lost-after", "7200", "--stall-warn", "7200", "--stall-fail", "86400", "--report-every", "1"]


def descendants(pid):
    """Of a process, itself included, parents first."""
    parents = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                parents[int(name)] = int(file.read().rpartition(")")[2].split()[1])
        except OSError:
            pass  # it has ended
    found = [pid]
    for at in found:
        found += [child for child, parent in parents.items() if parent == at]
    return found


def rate_of(lines, images):
    """Images/s of all ranks. Of each, the time from its second line on: the first one may be of a step before."""
    total = 0.0
    for own in by_rank(lines).values():
        first, last = own[1], own[-1]
        total += images * (last["step"] - first["step"]) / (last["seconds"] - first["seconds"])
    return total


def by_rank(lines):
    ranks = {}
    for line in lines:
        ranks.setdefault(line["rank"], []).append(line)
    return ranks


class SlicedJob:
    """A job of `ringside run` that runs on request only; `with` ends it. It makes more steps than anybody awaits."""

    def __init__(self, build, options, folder, workers):
        self.command = [os.path.join(build, "deploy", "ringside"), "run", *options, *PATIENCE, "--workers",
                        str(workers), "--steps", "100000000", "--out", os.path.join(folder, "run")]
        self.metrics = os.path.join(folder, "run", "metrics.jsonl")
        self.workers, self.offset, self.pids = workers, 0, []
        self.said = open(os.path.join(folder, "said"), "w+", encoding="utf-8")  # pylint: disable=consider-using-with
        try:
            self.launcher = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=self.said,
                                             stderr=self.said, env=ENVIRONMENT, start_new_session=True)
        except OSError as error:
            self.said.close()
            raise Failed(f"cannot start {self.command[0]}: {error}") from error

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.signal_all(signal.SIGCONT)
        if self.launcher.poll() is None:
            self.launcher.send_signal(signal.SIGINT)
        try:
            self.launcher.wait(END_S)
        except subprocess.TimeoutExpired:
            self.signal_all(signal.SIGKILL)
            self.launcher.wait()
        self.said.close()

    def signal_all(self, number):
        if self.launcher.poll() is not None:
            return  # and with it all others
        pids = self.pids or descendants(self.launcher.pid)
        for pid in pids if number == signal.SIGSTOP else reversed(pids):  # nobody sees those below stand still
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass

    def fail(self, why):
        self.said.seek(0)
        raise Failed(f"{why}: {' '.join(self.command)}\n{self.said.read()}")

    def read_lines(self):
        """Whole lines of its metrics that came since the last slice."""
        try:
            with open(self.metrics, "rb") as file:
                file.seek(self.offset)
                data = file.read()
        except FileNotFoundError:
            return b""
        return data[:data.rfind(b"\n") + 1]

    def await_lines(self):
        """Until each rank has enough; and nothing is read again of what came until then."""
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            data = self.read_lines()
            lines = [json.loads(line) for line in data.splitlines()]
            ranks = by_rank(lines).values()
            if len(ranks) == self.workers and min(map(len, ranks)) >= LINES_MIN:
                return data, lines
            if self.launcher.poll() is not None:
                self.fail("the job has ended before its time")
            if time.monotonic() > deadline:
                self.fail(f"no steps in {TIMEOUT_S} s")
            time.sleep(POLL_S)

    def warm_up(self):
        """Its first steps; then it stands still."""
        self.await_lines()
        self.pids = descendants(self.launcher.pid)
        self.signal_all(signal.SIGSTOP)
        self.offset += len(self.read_lines())

    def run_slice(self, seconds, images):
        """Images/s."""
        self.signal_all(signal.SIGCONT)
        time.sleep(seconds)
        self.await_lines()
        self.signal_all(signal.SIGSTOP)
        data, lines = self.await_lines()
        self.offset += len(data)
        return rate_of(lines, images)


def ratios_of(rates, way, base):
    """Of each slice of a way to the base's slices before and after it, the nearer one counting more.

    `rates`: for each way, in the order in which they take turns, its slices.
    """
    names = list(rates)
    apart = (names.index(way) - names.index(base)) % len(names)
    first = names.index(way) > names.index(base)  # whether the base has had a slice before the way's first one
    share, ratios = apart / len(names), []
    for number, rate in enumerate(rates[way]):
        before = number if first else number - 1
        if 0 <= before and before + 1 < len(rates[base]):
            expected = (1 - share) * math.log(rates[base][before]) + share * math.log(rates[base][before + 1])
            ratios.append(math.exp(math.log(rate) - expected))
    return ratios


def mean_of(ratios):
    """The mean, and what it may be off by with 95 % (twice its standard error); NaN of fewer than two."""
    error = statistics.stdev(ratios) / math.sqrt(len(ratios)) if len(ratios) > 1 else math.nan
    return statistics.mean(ratios) if ratios else math.nan, 2 * error
