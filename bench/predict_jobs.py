"""The jobs that bench/predict runs: some among processes of this host, some over links."""
import contextlib
import json
import os
import subprocess
import tempfile

import predict_cells
from launching import ENVIRONMENT, Failed, Processes, start_job
from netns import Links, burst_kib

JOB_TIMEOUT_S = 180
SECURITY = "curve"  # the default of jobs with keys, which those on this host have
CALIBRATION_S = 4  # of a job over links, about
CALIBRATION_STEPS_LEAST = 20
# Two workers that share a core leave it idle over slower links, or with a delay.
FEW_CORES_LINK = predict_cells.Network(10000, 0)


def call(*words, timeout_s=600):
    """What a command prints; it has to succeed."""
    command = [str(word) for word in words]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              check=False, env=ENVIRONMENT, timeout=timeout_s)
    except subprocess.TimeoutExpired as expired:
        raise Failed(f"still running after {timeout_s} s: {' '.join(command)}") from expired
    if done.returncode != 0:
        raise Failed(f"exit status {done.returncode}: {' '.join(command)}\n"
                     f"{done.stdout}{done.stderr}")
    return done.stdout


def images_of(folder):
    """What a run folder says per second."""
    with open(os.path.join(folder, "summary.json"), encoding="utf-8") as file:
        return json.load(file)["images_per_second"]


@contextlib.contextmanager
def one_core():
    """What is started meanwhile has one of this process's cores."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


class Jobs:
    """Of a build: workers of one thread each."""

    def __init__(self, build, data, batch, folder):
        self.build, self.data, self.batch, self.folder = build, data, batch, folder
        self.ringside = os.path.join(build, "deploy", "ringside")

    def options(self, model):
        """Without copies for losses, which predictions do not have, and of which the first costs
        jobs of a few seconds more than its share."""
        return ["--model", model, "--data", self.data, "--batch", str(self.batch), "--eval", "none",
                "--on-loss", "fail"]

    def run_alone(self, model, steps, out=None):
        """Images/s of one worker that exchanges nothing; with `out` its run folder stays, with a
        timeline."""
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            where = out or os.path.join(folder, "run")
            call(self.ringside, "run", "--mode", "local", "-n", 1, *self.options(model),
                 "--threads", 1, "--steps", steps, *(["--timeline"] if out else []), "--out", where,
                 timeout_s=JOB_TIMEOUT_S)
            return images_of(where)

    def run_apart(self, model, steps):
        """Images/s of two workers beside each other that exchange nothing before the last step."""
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            out = os.path.join(folder, "run")
            call(self.ringside, "run", "--mode", "ring", "-n", 2, "--sync-every", steps,
                 *self.options(model), "--threads", 1, "--steps", steps, "--out", out,
                 timeout_s=JOB_TIMEOUT_S)
            return images_of(out)

    def run_here(self, cell, steps):
        """Images/s of a cell whose processes are all on this host."""
        transport = ["--transport", "tcp"] if cell.network == "tcp" else []
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            out = os.path.join(folder, "run")
            call(self.ringside, "run", *cell.options, "-n", cell.workers, *self.options(cell.model),
                 "--threads", 1, "--steps", steps, *transport, "--out", out,
                 timeout_s=JOB_TIMEOUT_S)
            return images_of(out)

    def run_over_links(self, cell, options, steps, out=None, link=None):
        """Each process on a host of its own; in ring the coordinator is on that of rank 0. Messages
        are encrypted, as those of jobs on this host are, and of jobs that `ringside run` starts
        over ssh. With `out` the run folder stays, with a timeline. `link` takes the place of the
        cell's."""
        link = link or predict_cells.LINKS[cell.network]
        worker = os.path.join(self.build, "worker", "worker")
        with Links(cell.workers + cell.servers, link.mbit, delay_ms=link.delay_ms, are_named=True,
                   are_fair=True, build=self.build) as links, \
                Processes(JOB_TIMEOUT_S, self.build, SECURITY, links.delay_line) as processes:
            where = out or os.path.join(processes.folder.name, "run")
            parts = (["--timeline-dir", os.path.join(where, "timeline")] if out else [])
            servers = links.hosts[cell.workers:] or links.hosts[:1]
            start_job(processes, self.build,
                      [*options, "--workers", cell.workers, *self.options(cell.model), "--threads",
                       1, "--steps", steps, "--out", where, *(["--timeline"] if out else [])],
                      servers, links.hosts[:cell.workers],
                      lambda rank, endpoint, host: [worker, "--server", endpoint, "--rank", rank,
                                                    "--bind", host.address, "--local-size",
                                                    cell.workers, *parts])
            processes.wait()
            return images_of(where)

    def calibrate_here(self, cell, runs, files):
        """Files of costs and of a network, from jobs of two workers on this host."""
        codes = (["--compress", predict_cells.CODECS[cell.extra]]
                 if cell.extra in predict_cells.CODECS else [])
        call(self.ringside, "calibrate", *self.options(cell.model), "--threads", 1, "--steps",
             predict_cells.CALIBRATION_STEPS[cell.model], *files, "--runs", runs, *codes,
             *(["--transport", "auto"] if cell.network == "shm" else []))

    def calibrate_over_links(self, cell, runs, near, step_s):
        """The run folders for it: one worker alone, before and after two over links, and then two on
        one core. `near` has runs of two on this host; a step of one worker takes step_s."""
        os.makedirs(runs)
        steps = max(CALIBRATION_STEPS_LEAST, int(CALIBRATION_S / step_s))
        self.run_alone(cell.model, steps, os.path.join(runs, "local"))
        jobs = dict(predict_cells.LINK_RUNS)
        if cell.extra in predict_cells.CODECS:
            jobs["ps-sync-compress"] = [*jobs["ps-sync"], "--compress",
                                        predict_cells.CODECS[cell.extra]]
        exchange_s = self.exchange_s(cell, near)
        for name, options in jobs.items():
            pair = predict_cells.Cell(cell.model, cell.network,
                                      "ps-sync:1" if "ps-sync" in name else "ring:auto", 2, "")
            self.run_over_links(pair, options, max(CALIBRATION_STEPS_LEAST,
                                                   int(CALIBRATION_S / (step_s + exchange_s))),
                                os.path.join(runs, name))
        self.run_alone(cell.model, steps, os.path.join(runs, "local-again"))
        pair = predict_cells.Cell(cell.model, cell.network, "ring:auto", 2, "")
        with one_core():
            self.run_over_links(pair, jobs["ring"], max(CALIBRATION_STEPS_LEAST, steps // 4),
                                os.path.join(runs, "ring-few-cores"), FEW_CORES_LINK)

    @staticmethod
    def exchange_s(cell, near):
        """What two workers exchange in a step, over the link."""
        with open(os.path.join(near, "ring", "summary.json"), encoding="utf-8") as file:
            size = 4 * json.load(file)["parameters"]
        link = predict_cells.LINKS[cell.network]
        return 8e-6 * size / link.mbit + 8e-3 * link.delay_ms

    @staticmethod
    def known_of(network, mbit):
        """What calibrate is told of the links."""
        return ["--nic", f"{mbit:.3f} Mbit/s", "--burst-kib",
                burst_kib(predict_cells.LINKS[network].mbit)]

    def calibrate_from(self, runs, files, known):
        """The same from run folders, in the order in which they were run: of equal ones the last
        counts."""
        names = [name for name in predict_cells.CALIBRATION_RUNS
                 if os.path.exists(os.path.join(runs, name))]
        call(self.ringside, "calibrate", *[os.path.join(runs, name) for name in names], *files,
             *known)
