"""Jobs that are killed once a checkpoint is written, and resumed: for check_resume and check_resume_cells."""
import json
import os
import re
import subprocess

from patience import patient

ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("RINGSIDE_")}
COMMON = "--data shapes --limit-train 240 --limit-test 48 --global-batch 24 --epochs 3 --threads 1 --seed 7"
BOUND_S = patient(120)

# Which words of a resumed job's result must be equal to those of an undisturbed one.
# (Where workers are apart each evaluates with what its own batch normalisation has learned by then.)
BITS, DIGEST, ROUGH = "bits", "digest", "rough"
OPTIMIZERS = ("sgd", "momentum", "nesterov", "adam", "adamw", "adagrad", "adadelta", "rmsprop")


class Job:
    """Its processes, all of which are this one's children."""

    def __init__(self, build, options, *own):
        self.build, self.said, self.workers = build, "", []
        words = (COMMON + " " + options).split()
        self.ranks = self.count = int(last_of(words, "-n"))  # self.count: worker processes
        if last_of(words, "--mode") == "local":
            self.ranks = self.count = 1
        elif "--processes" in words:
            self.count = int(last_of(words, "--processes"))
        self.ps = subprocess.Popen(
            [os.path.join(build, "ps-server", "ps"), *options_last(words), *own, "--log-level", "info",
             "--progress", "none", "--announce-fd", "1"],
            env=ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.open_to = ["--insecure"] if "--insecure" in words else []
        self.servers = 0
        if "--servers" in words:
            self.servers = int(last_of(words, "--servers")) - 1
        endpoint = self.ps.stdout.readline().strip()
        if endpoint:
            self.start(endpoint)

    def start(self, endpoint):
        for index in range(self.servers):
            self.workers.append(self.spawn("ps-server/ps", "--server", endpoint, "--shard-index", str(index + 1)))
        for rank in range(self.count):
            self.workers.append(self.spawn("worker/worker", "--server", endpoint, "--rank", str(rank)))

    def spawn(self, program, *arguments):
        return subprocess.Popen([os.path.join(self.build, program), *arguments, *self.open_to], env=ENVIRONMENT,
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                text=True)

    def kill(self):
        for process in [self.ps, *self.workers]:
            process.kill()
        return self.wait()

    def kill_after(self, step):
        """Once the checkpoint of this step, or a later one, is written. False: the job has ended before."""
        for line in self.ps.stderr:
            self.said += line
            found = re.search(r"checkpoint at step (\d+)$", line.rstrip())
            if found and "no checkpoint" not in line and int(found.group(1)) >= step:
                self.kill()
                return True
        self.wait()
        return False

    def wait(self):
        try:
            code = self.ps.wait(BOUND_S)
        except subprocess.TimeoutExpired:
            for process in [self.ps, *self.workers]:
                process.kill()
            code = "no end"
        self.said += self.ps.stderr.read()
        for process in self.workers:
            if code != 0 or self.ps.poll() is None:
                process.kill()
            self.said += process.communicate(timeout=BOUND_S)[1]
        self.ps.stdout.close()
        self.ps.stderr.close()
        return code


def last_of(words, name):
    return words[len(words) - words[::-1].index(name)]


def options_last(words):
    """The last of the values that an option is given; --switch may have several."""
    result, at = {}, 0
    while at < len(words):
        name, has_value = words[at], at + 1 < len(words) and not words[at + 1].startswith("-")
        value = words[at + 1] if has_value else None
        if name == "--switch":
            result.setdefault(name, []).append(value)
        else:
            result[name] = [value]
        at += 2 if has_value else 1
    listing = []
    for name, values in result.items():
        for value in values:
            listing += [name] if value is None else [name, value]
    return listing


def summary_of(folder):
    with open(os.path.join(folder, "summary.json"), encoding="utf-8") as file:
        return json.load(file)


def epochs_of(summary, is_exact):
    """What evaluations and losses say; where workers are apart, what a worker lost in which period is a race."""
    names = ("epoch", "train_loss", "test_loss", "test_accuracy") if is_exact else ("epoch", "test_loss", "test_accuracy")
    return [{name: epoch[name] for name in names} for epoch in summary["epochs"]]


def every_of(options):
    words = options.split()
    return "" if "--checkpoint-every" in words else " --checkpoint-every 7"


def without(options, name):
    words = options.split()
    if name in words:
        at = words.index(name)
        del words[at:at + 2]
    return " ".join(words)


class Failure(Exception):
    pass


def require(is_true, what):
    if not is_true:
        raise Failure(what)


def finish(build, options, *own):
    job = Job(build, options, *own)
    code = job.wait()
    require(code == 0, f"the job ends with {code}:\n{job.said}")
    return job


def check_metrics(folder, workers):
    """No step twice, none left out."""
    steps = {}
    with open(os.path.join(folder, "metrics.jsonl"), encoding="utf-8") as file:
        for line in file:
            entry = json.loads(line)
            before = steps.setdefault(entry["rank"], 0)
            require(entry["step"] > before, f"metrics.jsonl goes from step {before} to {entry['step']}")
            steps[entry["rank"]] = entry["step"]
    require(len(steps) == workers, "metrics.jsonl lacks a rank")


def check_case(build, case, base, after=1):
    options, changed, kind = case
    plain, steady, killed = (os.path.join(base, name) for name in ("plain", "steady", "killed"))
    finish(build, without(options, "--checkpoint-every"), "--out", plain)
    expected = summary_of(plain)
    with_checkpoints = options + every_of(options)
    is_unsynchronised = "ps-async" in options or "ps-ssp" in options
    finish(build, with_checkpoints, "--out", steady)
    if kind != ROUGH:
        require(summary_of(steady)["params_digest"] == expected["params_digest"], "checkpoints change the bits")
    job = Job(build, with_checkpoints, "--out", killed)
    was_killed = job.kill_after(after)
    require(was_killed, f"no checkpoint was written:\n{job.said}")
    require(not os.path.exists(os.path.join(killed, "summary.json")), "the job has ended before it was killed")
    finish(build, f"{with_checkpoints} {changed}", "--resume", killed)
    found = summary_of(killed)
    require(found["outcome"] == "completed" and found["restarts"] == 1, f"the resumed job: {found}")
    require(found["steps"] == expected["steps"], f"{found['steps']} steps instead of {expected['steps']}")
    require(len(found["epochs"]) == len(expected["epochs"]),
            f"{len(found['epochs'])} epochs instead of {len(expected['epochs'])}")
    if kind != ROUGH:
        require(found["params_digest"] == expected["params_digest"], "the resumed job has other bits")
    if kind == BITS:
        is_exact = not is_unsynchronised
        require(epochs_of(found, is_exact) == epochs_of(expected, is_exact),
                f"epochs differ:\n{epochs_of(found, is_exact)}\n{epochs_of(expected, is_exact)}")
    check_metrics(killed, job.ranks)
