"""Runs scripts of PyTorch in jobs, for the tests of ringside.torch.

The environment says which build is tested: RINGSIDE_BUILD, its folder.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

BUILD = Path(os.environ.get("RINGSIDE_BUILD", "build/test-gcc")).resolve()
HERE = Path(__file__).resolve().parent
SOURCE = HERE.parents[2]
LIMIT = 90 * int(os.environ.get("RINGSIDE_TEST_PATIENCE", "1"))

PRELUDE = """
import sys, torch
import ringside.torch as hvd
torch.set_num_threads(1)
hvd.init()
rank, size = hvd.rank(), hvd.size()

def make_model(seed=1):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(6, 32), torch.nn.Tanh(), torch.nn.Linear(32, 3))

generator = torch.Generator().manual_seed(7)
features = torch.randn(48, 6, generator=generator)
labels = features.sum(1).gt(0).long() + features[:, 0].gt(1).long()

def loss_of(model, first=None, every=None):
    first, every = rank if first is None else first, size if every is None else every
    return torch.nn.functional.cross_entropy(model(features[first::every]), labels[first::every])

def digest(model):
    import hashlib
    bits = b"".join(p.detach().contiguous().numpy().tobytes() for p in model.parameters())
    return hashlib.sha256(bits).hexdigest()[:16]
"""


class Ended:
    """How a job went: the launcher's exit code and output, each rank's lines, and summary.json."""

    def __init__(self, code: int, text: str, folder: Path):
        self.code, self.text = code, text
        self.lines: dict[int, list[str]] = {}
        for rank, line in re.findall(r"^\[(?:\S+ )?worker (\d+)\] (.*)$", text, re.M):
            self.lines.setdefault(int(rank), []).append(line)
        summary = folder / "summary.json"
        self.summary = json.loads(summary.read_text()) if summary.exists() else {}

    def values(self) -> list[str]:
        """The last line of each rank."""
        return [self.lines[rank][-1] for rank in sorted(self.lines)]


def environment(**more: str) -> dict[str, str]:
    package = str(SOURCE / "worker" / "python")
    return {
        **os.environ,
        "PYTHONPATH": package,
        "RINGSIDE_LIBRARY": str(BUILD / "worker" / "library" / "libringside.so.1"),
        **more,
    }


@functools.lru_cache(maxsize=None)
def warm_python() -> str:
    """A program in the place of Python, whose processes have PyTorch already; works as long as this one."""
    folder = Path(tempfile.mkdtemp(prefix="ringside-warm-"))
    atexit.register(shutil.rmtree, folder)
    read_end, write_end = os.pipe()  # not inherited: the server ends when this process does
    server = subprocess.Popen([sys.executable, "-B", str(HERE / "warm_server.py"), str(folder / "socket")],
                              stdin=read_end, stdout=subprocess.PIPE, text=True)
    os.close(read_end)
    assert write_end >= 0 and server.stdout and server.stdout.readline() == "ready\n"
    client = folder / "python3"
    client.write_text(f"#!{sys.executable} -ISs\n" + (HERE / "warm_client.py").read_text())
    client.chmod(0o755)
    return str(client)


def command(out: Path, program: list[str], *options: str, workers: int = 2, mode: str = "ring",
            python: str = sys.executable) -> list[str]:
    """That runs a script with its arguments."""
    return [str(BUILD / "deploy" / "ringside"), "run", "-n", str(workers), "--mode", mode, "--out",
            str(out), *options, "--", python, *program]


def run_file(
    out: Path,
    program: list[str],
    *options: str,
    workers: int = 2,
    mode: str = "ring",
    variables: dict[str, str] | None = None,
    python: str = sys.executable,
) -> Ended:
    """Runs a script that is there already, with its arguments."""
    ended = subprocess.run(
        command(out, program, *options, workers=workers, mode=mode, python=python),
        env=environment(**(variables or {})), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, timeout=LIMIT, check=False)
    return Ended(ended.returncode, ended.stdout, out)


def run(
    folder: Path,
    script: str,
    *options: str,
    workers: int = 2,
    mode: str = "ring",
    prelude: str = PRELUDE,
    variables: dict[str, str] | None = None,
    is_warm: bool = True,
) -> Ended:
    """Runs the script in `workers` processes; it comes behind the prelude. One that is not warm starts
    and ends as Python does."""
    out = folder / f"{mode.replace(':', '-')}-{workers}-{len(list(folder.iterdir()))}"
    out.mkdir()
    path = out / "train.py"
    path.write_text(prelude + script)
    return run_file(out / "run", [str(path)], *options, workers=workers, mode=mode,
                    variables=variables, python=warm_python() if is_warm else sys.executable)


def completed(*arguments: object, **keywords: object) -> Ended:
    """The same for a job that has to end well."""
    ended = run(*arguments, **keywords)  # type: ignore[arg-type]
    assert ended.code == 0 and ended.summary["outcome"] == "completed", ended.text
    return ended
