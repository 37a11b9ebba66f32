"""The package is built as a wheel, and a script finds it where it is installed."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from jobs import BUILD, LIMIT, SOURCE, environment


def python(*arguments: str, **keywords: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True,
                          timeout=LIMIT, check=False, **keywords)  # type: ignore[call-overload]


def test_a_wheel_is_installed_and_joins_a_job(tmp_path: Path) -> None:
    missing = [name for name in ("pip", "setuptools", "wheel") if find_spec(name) is None]
    if missing:
        pytest.skip(f"a wheel needs {' and '.join(missing)}: deploy/install-dependencies --tests")
    tree = tmp_path / "tree"
    tree.mkdir()
    subprocess.run(["cp", "-r", str(SOURCE / "worker" / "python"), str(tree)], check=True)
    built = python("-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index",
                   "--wheel-dir", str(tmp_path), str(tree / "python"))
    assert built.returncode == 0, built.stderr
    wheel = next(tmp_path.glob("ringside-*-py3-none-any.whl"))
    place = tmp_path / "place"
    installed = python("-m", "pip", "install", "--no-deps", "--no-index", "--target", str(place),
                       str(wheel))
    assert installed.returncode == 0, installed.stderr
    script = tmp_path / "train.py"
    script.write_text("import ringside.torch as hvd, ringside, ringside.torch.distributed\nhvd.init()\n"
                      "print(hvd.size(), ringside.__file__)\n")
    ended = subprocess.run(
        [str(BUILD / "deploy" / "ringside"), "run", "-n", "2", "--mode", "ring", "--out",
         str(tmp_path / "run"), "--", sys.executable, str(script)],
        env=environment(PYTHONPATH=str(place)), cwd=tmp_path, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=LIMIT, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert f"2 {os.path.join(str(place), 'ringside', '__init__.py')}" in ended.stdout + ended.stderr


def test_a_library_that_is_not_there_is_named(tmp_path: Path) -> None:
    ended = python("-c", "import ringside.torch as hvd; hvd.init()",
                   env=environment(RINGSIDE_LIBRARY=str(tmp_path / "no.so"),
                                   RINGSIDE_SERVER="ipc://nobody"))
    assert ended.returncode == 1
    assert "cannot be loaded" in ended.stderr and "RINGSIDE_LIBRARY" in ended.stderr


def test_a_script_that_nobody_launched_says_how_to() -> None:
    variables = {name: value for name, value in environment().items() if name != "RINGSIDE_SERVER"}
    ended = python("-c", "import ringside.torch as hvd; hvd.init()", env=variables)
    assert ended.returncode == 1
    assert "start the script by `ringside run -n 2 --mode ring -- python3 train.py`" in ended.stderr
