"""Runs the steps of a part one after the other, and writes down what became of each.

A step passes, fails, or is not run; what is not run is never said to have passed. The file is written
anew before and after every step, so that a part which is cut off leaves what it knows.
"""
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import tempfile
import time
import traceback

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SHORTEST_S = 15  # no step begins with less time left
KEPT_LINES = 12  # of what a command said before it failed


class Failed(Exception):
    """What is wrong, for the report."""


class NotRun(Exception):
    """What a step needs and this machine has not."""


def library_folders():
    """Of this pack, of a PyTorch that carries CUDA's libraries, and of the toolkit."""
    folders = [os.path.join(ROOT, "lib")]
    try:
        import nvidia  # pylint: disable=import-outside-toplevel
        for base in nvidia.__path__:
            for folder, _, files in os.walk(base):
                if any(re.match(r"lib.*\.so", name) for name in files):
                    folders.append(folder)
    except ImportError:
        pass
    folders.append(os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "lib64"))
    given = os.environ.get("LD_LIBRARY_PATH")
    return folders + ([given] if given else [])


def read_about():
    path = os.path.join(ROOT, "about.json")
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except OSError as error:
        raise SystemExit(f"first-hour: {path}: {error.strerror}; make a pack with tests/gpu/pack, and "
                         "start the first-hour that is in it") from error


def read_all(folder):
    """The files of a folder, one behind the other; nothing if there is none."""
    texts = []
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
            texts.append(file.read())
    return "".join(texts)


def end_session(process):
    """Ends a command, and what it has started: workers and peers would go on using the GPU. What they
    said."""
    for sign, patience_s in ((signal.SIGTERM, 10), (signal.SIGKILL, 10)):
        try:
            os.killpg(process.pid, sign)
        except ProcessLookupError:
            pass
        try:
            return process.communicate(timeout=patience_s)
        except subprocess.TimeoutExpired:
            continue
    return "", ""


class Hour:
    """One part. `minutes` is how long it may take, `limit_s` how long a command of it that sets no limit
    of its own. With goes_on, steps that an earlier run of the part has passed are kept."""

    def __init__(self, part, out, minutes, limit_s=300, goes_on=False):
        self.about = read_about()
        self.is_fake = self.about["runtime"] == "fake"
        self.deadline = time.monotonic() + 60 * minutes
        self.started = time.monotonic()
        self.path = os.path.join(out, f"part-{part}.json")
        self.report = {"part": part, **self.about, "machine": {}, "steps": [], "outcome": "cut off"}
        self.earlier = self.read_earlier() if goes_on else {"steps": []}
        self.stopped_by = None
        self.log = ""  # of all processes of the last job
        self.limit_s = limit_s
        self.folder = tempfile.mkdtemp(prefix="ringside-hour-")
        # Not what RINGSIDE_ variables would make of the jobs' options.
        self.environment = {**{name: value for name, value in os.environ.items()
                               if not name.startswith("RINGSIDE_")},
                            "LD_LIBRARY_PATH": ":".join(library_folders()),
                            "RINGSIDE_CACHE": os.path.join(self.folder, "cache"),
                            "RINGSIDE_REQUIRE_CUDA": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        if self.is_fake:
            self.environment["FAKE_CUDA"] = os.environ.get("FAKE_CUDA", "eager,ipc,gpus=4")
        self.write()

    def read_earlier(self):
        """The report of an earlier run of this part by this pack; without steps if there is none."""
        try:
            with open(self.path, encoding="utf-8") as file:
                earlier = json.load(file)
        except (OSError, ValueError):
            return {"steps": []}
        if any(earlier.get(key) != self.report[key] for key in ("part", *self.about)):
            print(f"{self.path} is of another part or pack: nothing of it is kept", flush=True)
            return {"steps": []}
        return earlier

    def find_passed(self, name):
        """What an earlier run has of a step that it has passed; None if it has not."""
        return next((row for row in self.earlier["steps"]
                     if row["step"] == name and row["state"] == "passed"), None)

    def close(self):
        """Ends the part; its exit status."""
        states = {step["state"] for step in self.report["steps"]}
        self.report.pop("running", None)
        self.report["outcome"] = ("failed" if "failed" in states else "incomplete"
                                  if "not run" in states else "passed")
        self.report["seconds"] = round(time.monotonic() - self.started, 1)
        self.write()
        shutil.rmtree(self.folder, ignore_errors=True)
        counts = {state: sum(step["state"] == state for step in self.report["steps"])
                  for state in ("passed", "failed", "not run")}
        print(f"part {self.report['part']}: {self.report['outcome']}, "
              + ", ".join(f"{count} {state}" for state, count in counts.items())
              + f", {self.report['seconds']:.0f} s: {self.path}", flush=True)
        return 1 if counts["failed"] else 0

    def write(self):
        draft = self.path + ".part"
        with open(draft, "w", encoding="utf-8") as file:
            json.dump(self.report, file, indent=1)
        os.replace(draft, self.path)

    def left_s(self):
        return self.deadline - time.monotonic()

    def step(self, name, function, *arguments, is_essential=False):
        """Runs function(*arguments), which returns figures, or raises. Nothing runs after an essential
        step that has not passed: it would mean nothing. Essential ones are never kept."""
        begin = time.monotonic()
        kept = None if is_essential or self.stopped_by else self.find_passed(name)
        if kept is not None:
            self.report["steps"].append(kept)
            self.write()
            print(f"kept     {name}", flush=True)
            return True
        row = {"step": name, "state": "passed"}
        if self.stopped_by:
            row.update({"state": "not run", "why": f"'{self.stopped_by}' has not passed"})
        elif self.left_s() < SHORTEST_S:
            row.update({"state": "not run", "why": "no time was left"})
        else:
            self.report["running"] = name
            self.write()
            try:
                row["figures"] = function(*arguments)
            except Failed as failed:
                row.update({"state": "failed", "why": str(failed)})
            except NotRun as missing:
                row.update({"state": "not run", "why": str(missing)})
            except Exception:  # pylint: disable=broad-exception-caught  # what nobody has foreseen, too
                row.update({"state": "failed", "why": "first-hour itself is wrong here, or what it read:\n"
                            + traceback.format_exc(limit=-3)})
        row["seconds"] = round(time.monotonic() - begin, 1)
        if is_essential and row["state"] != "passed" and not self.stopped_by:
            self.stopped_by = name
        self.report["steps"].append(row)
        self.write()
        print(f"{row['state']:8} {name} ({row['seconds']:.1f} s)"
              + (f": {row['why']}" if "why" in row else ""), flush=True)
        return row["state"] == "passed"

    def need_gpu(self):
        if self.is_fake:
            raise NotRun("it needs a GPU; this is a rehearsal on the fake runtime")

    def run(self, command, limit_s=None, variables=None):
        """What a command printed on standard output. Raises Failed with the end of all that it said.
        Whatever it has started ends with it."""
        command = [str(word) for word in command]
        limit_s = max(1, min(limit_s or self.limit_s, self.left_s()))
        try:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, text=True, errors="replace",
                                       cwd=self.folder, env={**self.environment, **(variables or {})},
                                       start_new_session=True)
        except OSError as error:
            raise Failed(f"cannot start {command[0]}: {error.strerror}") from error
        late = ""
        try:
            said = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            late = f"still running after {limit_s:.0f} s"
            said = end_session(process)
        except BaseException:
            end_session(process)
            raise
        if late or process.returncode != 0:
            lines = "".join(said).strip().splitlines()[-KEPT_LINES * (2 if late else 1):]
            raise Failed("\n".join([f"{late or f'exit status {process.returncode}'}: "
                                    + " ".join(command), *lines]))
        return said[0]

    def program(self, path):
        return os.path.join(ROOT, "build", path)

    def job(self, name, *options):
        """Runs a job on the GPU; its summary."""
        out = os.path.join(self.folder, re.sub(r"[^a-z0-9-]", "-", name))
        shutil.rmtree(out, ignore_errors=True)
        self.run([self.program("deploy/ringside"), "run", "--device", "cuda", "--data", "synthetic",
                  "--out", out, *options])
        with open(os.path.join(out, "summary.json"), encoding="utf-8") as file:
            summary = json.load(file)
        self.log = read_all(os.path.join(out, "logs"))
        if summary["device"] != "cuda":
            raise Failed(f"the job ran on {summary['device']}")
        shutil.rmtree(out, ignore_errors=True)
        return summary

    def note_machine(self):
        """What this machine is; essential, and in every part."""
        machine = self.report["machine"]
        machine.update({"host": platform.node(), "cores": os.cpu_count(),
                        "python": platform.python_version()})
        if shutil.which("nvidia-smi"):
            try:
                machine["gpus"] = self.run(["nvidia-smi", "--query-gpu=name,driver_version,memory.total,"
                                            "clocks.max.sm,clocks.max.mem,power.limit",
                                            "--format=csv,noheader"]).strip().splitlines()
            except Failed as failed:  # not every driver tells everybody
                machine["gpus"] = str(failed).splitlines()
        if self.earlier["steps"] and self.earlier["machine"].get("gpus") != machine.get("gpus"):
            print(f"{self.path} is of another GPU: nothing of it is kept", flush=True)
            self.earlier = {"steps": []}
        said = self.run([self.program("deploy/ringside"), "check"])
        machine["ringside"] = [line.strip() for line in said.splitlines() if line.strip()]
        if not re.search(r"^device\s+cuda\s+yes", said, re.MULTILINE):
            raise Failed("ringside check finds no usable GPU:\n" + said)
        return {}
