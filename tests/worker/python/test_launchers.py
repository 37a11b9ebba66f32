"""Scripts that torchrun or mpirun starts, beside a `ps` that was started by hand."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from jobs import BUILD, LIMIT, PRELUDE, environment

SCRIPT = PRELUDE + """
model = make_model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
for step in range(5):
    optimizer.zero_grad()
    loss_of(model).backward()
    optimizer.step()
import os
assert hvd.rank() == int(os.environ.get("RANK", os.environ.get("OMPI_COMM_WORLD_RANK"))) and size == 2
"""


def start_by_hand(folder: Path, launcher: list[str]) -> dict:
    """The summary of a job of two processes that the launcher starts."""
    script = folder / "train.py"
    script.write_text(SCRIPT)
    reading, writing = os.pipe()
    ps = subprocess.Popen(
        [str(BUILD / "ps-server" / "ps"), "--workers", "2", "--model", "external:train.py", "--mode", "ring",
         "--out", str(folder / "run"), "--progress", "none", "--announce-fd", str(writing)],
        pass_fds=[writing], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        os.close(writing)
        with os.fdopen(reading) as announced:
            endpoint = announced.readline().split()[-1]
        ended = subprocess.run([*launcher, str(script)], env=environment(RINGSIDE_SERVER=endpoint, OMP_NUM_THREADS="1"),
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True, timeout=LIMIT, check=False, cwd=folder)
        assert ended.returncode == 0, ended.stdout
        ps_text = ps.communicate(timeout=LIMIT)[0]
        assert ps.returncode == 0, ps_text
    finally:
        if ps.poll() is None:
            ps.kill()
            ps.wait()
    summary: dict = json.loads((folder / "run" / "summary.json").read_text())
    return summary


def test_torchrun_gives_a_script_its_rank(tmp_path: Path) -> None:
    pytest.importorskip("torch.distributed.run")
    summary = start_by_hand(tmp_path, [
        sys.executable, "-m", "torch.distributed.run", "--nproc_per_node=2", "--rdzv_backend=c10d",
        "--rdzv_endpoint=localhost:0", "--redirects=9:0", "--tee=9:0"])  # its defaults fail in torch 1.13
    assert summary["outcome"] == "completed" and summary["steps"] == 5


def test_mpirun_gives_a_script_its_rank(tmp_path: Path) -> None:
    mpirun = shutil.which("mpirun.openmpi")
    if mpirun is None:
        pytest.skip("needs Open MPI's mpirun")
    as_root = ["--allow-run-as-root"] if os.getuid() == 0 else []
    summary = start_by_hand(tmp_path, [
        mpirun, *as_root, "--oversubscribe", "--mca", "oob_tcp_if_include", "lo", "-n", "2", sys.executable])
    assert summary["outcome"] == "completed" and summary["steps"] == 5
