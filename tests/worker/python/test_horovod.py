"""The examples under real Horovod, with one line changed: their numbers are those of ringside.torch.

Horovod is taken from where bench/install-peers puts it, or HOROVOD_PYTHON names an interpreter that has it.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from jobs import LIMIT, SOURCE, run_file
from test_examples import EXAMPLES, need

OURS, THEIRS = "import ringside.torch as hvd", "import horovod.torch as hvd"

# What each is run with, and the images that it needs. Elastic Horovod has a launcher of its own.
ARGUMENTS = {
    "fashion_mnist.py": ("--limit 2000 --epochs 2", "fashion-mnist"),
    "cifar10_resnet.py": ("--limit 256 --epochs 1 --batch-size 32 --blocks 1", "cifar10"),
    "accumulate.py": ("--limit 1024 --epochs 2 --passes 4 --clip 1", "fashion-mnist"),
    "resume.py": ("--limit 1024 --epochs 2 --checkpoint {folder}/last.pt", "fashion-mnist"),
}


@functools.lru_cache(maxsize=None)
def horovod_python() -> str:
    """A Python that has Horovod; empty where there is none."""
    peer = (SOURCE / "bench" / "peers" / "horovod.txt").read_text().split()[0].replace("==", "-")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    python = os.environ.get("HOROVOD_PYTHON") or str(cache / "ringside-python" / peer / "bin" / "python")
    probe = [python, "-c", "import horovod.torch as hvd; assert hvd.gloo_built()"]
    is_there = os.access(python, os.X_OK) and not subprocess.run(
        probe, capture_output=True, check=False).returncode
    return python if is_there else ""


def epochs(text: str) -> list[list[float]]:
    """The numbers of rank 0's lines, one of each epoch."""
    lines = re.findall(r"^\[(?:worker )?0\](?:<stdout>:)? ?epoch (.*)$", text, re.M)
    return [[float(number) for number in re.findall(r"\d+\.?\d*", line)] for line in lines]


@pytest.mark.parametrize("script", ARGUMENTS)
def test_an_example_has_the_same_numbers_under_horovod(tmp_path: Path, script: str) -> None:
    python = horovod_python()
    if not python:
        pytest.skip("Horovod is not there: bench/install-peers horovod")
    arguments, data = ARGUMENTS[script]
    need(data)
    folders = [tmp_path / name for name in ("theirs", "ours")]
    for folder in folders:
        shutil.copytree(EXAMPLES, folder)
    text = (EXAMPLES / script).read_text()
    assert text.count(OURS + "  #") == 1
    theirs, ours = folders
    (theirs / script).write_text(text.replace(OURS, THEIRS))

    launcher = [python, "-m", "horovod.runner.launch", "-np", "2", "--gloo", "--network-interfaces", "lo"]
    horovod = subprocess.run(
        [*launcher, python, script, *arguments.format(folder=theirs).split()], cwd=theirs,
        env={**os.environ, "OMP_NUM_THREADS": "1"}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, timeout=LIMIT, check=False)
    assert horovod.returncode == 0, horovod.stdout
    job = run_file(tmp_path / "run", [str(ours / script), *arguments.format(folder=ours).split()],
                   variables={"OMP_NUM_THREADS": "1"}, python=python)
    assert job.code == 0, job.text
    expected, seen = epochs(horovod.stdout), epochs(job.text)
    assert expected and len(seen) == len(expected), (horovod.stdout, job.text)
    for line, wanted in zip(seen, expected):
        assert line == pytest.approx(wanted, rel=2e-3, abs=2e-3)
