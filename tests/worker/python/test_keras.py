"""Keras 3 models train in jobs, on PyTorch 2. Keras by itself is the oracle.

PyTorch 2 and Keras are those of bench/install-peers pytorch, or of the Python that KERAS_PYTHON names.
"""

from __future__ import annotations

import json
import os
import subprocess
from functools import cache
from pathlib import Path

import pytest
from jobs import LIMIT, SOURCE, Ended, environment, run_file

EXAMPLE = SOURCE / "worker" / "python" / "examples" / "keras_fashion_mnist.py"
PEER = "torch-2.15.0"

# A model, its data, and what becomes of its weights. Each process has its rows of each batch.
SCRIPT = """
import json, os, sys
import numpy as np
import keras
OPTIMIZER, SEEDS, CALLBACK = sys.argv[1:4]
if "RINGSIDE_SERVER" in os.environ:
    import ringside.keras as hvd
    hvd.init()
    rank, size = hvd.rank(), hvd.size()
else:
    hvd, rank, size = None, 0, 1
keras.utils.set_random_seed(7 + (rank if SEEDS == "differ" else 0))
model = keras.Sequential([keras.Input((8, 8, 1)), keras.layers.Conv2D(4, 3, activation="relu"),
                          keras.layers.Flatten(), keras.layers.Dense(5)])
optimizer = eval("keras.optimizers." + OPTIMIZER)
if hvd:
    optimizer = hvd.DistributedOptimizer(optimizer)
model.compile(optimizer=optimizer, loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
draw = np.random.default_rng(3)
pixels = draw.normal(size=(96, 8, 8, 1)).astype("float32").reshape(12, 8, 8, 8, 1)
labels = draw.integers(0, 5, size=96).reshape(12, 8)
own = slice(rank * 8 // size, (rank + 1) * 8 // size)
callbacks = [hvd.callbacks.BroadcastGlobalVariablesCallback(0)] if hvd and CALLBACK == "yes" else []
if CALLBACK == "warmup":
    callbacks = [hvd.callbacks.LearningRateWarmupCallback(0.5, 2)]
model.fit(pixels[:, own].reshape(-1, 8, 8, 1), labels[:, own].reshape(-1), batch_size=8 // size, epochs=2,
          shuffle=False, verbose=0, callbacks=callbacks)
values = [float(v) for w in model.get_weights() for v in w.reshape(-1)]
for begin in range(0, len(values), 100):  # a line that is too long is cut
    print("weights", json.dumps(values[begin : begin + 100]), flush=True)
print("iterations", int(optimizer.iterations), float(optimizer.learning_rate), flush=True)
"""


@cache
def keras_python() -> str:
    """A Python that has Keras and PyTorch 2; skips the test where there is none."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ringside-python"
    python = os.environ.get("KERAS_PYTHON") or str(folder / PEER / "bin" / "python")
    found = subprocess.run([python, "-c", "import keras, torch"], env={**os.environ, "KERAS_BACKEND": "torch"},
                           capture_output=True, check=False).returncode if os.path.exists(python) else 1
    if found != 0:
        pytest.skip("Keras and PyTorch 2 are not there: bench/install-peers pytorch")
    return python


def write(folder: Path) -> Path:
    path = folder / "train.py"
    path.write_text(SCRIPT)
    return path


def alone(folder: Path, optimizer: str) -> list[float]:
    """The weights that Keras has by itself."""
    done = subprocess.run([keras_python(), str(write(folder)), optimizer, "same", "no"],
                          env={**os.environ, "KERAS_BACKEND": "torch"}, capture_output=True, text=True,
                          timeout=LIMIT, check=False)
    assert done.returncode == 0, done.stderr
    return weights_of(done.stdout.splitlines())


def weights_of(lines: list[str]) -> list[float]:
    own = [json.loads(line.split(" ", 1)[1]) for line in lines if line.startswith("weights ")]
    return [value for part in own for value in part]


def job(folder: Path, optimizer: str, mode: str, workers: int = 2, seeds: str = "same",
        callback: str = "no") -> Ended:
    python = keras_python()
    out = folder / f"run-{len(list(folder.iterdir()))}"
    return run_file(out, [str(write(folder)), optimizer, seeds, callback], workers=workers, mode=mode,
                    variables={"KERAS_BACKEND": "torch"}, python=python)


def trained(folder: Path, optimizer: str, mode: str, **keywords: object) -> list[list[float]]:
    """The weights of each rank."""
    ended = job(folder, optimizer, mode, **keywords)  # type: ignore[arg-type]
    assert ended.code == 0 and ended.summary["outcome"] == "completed", ended.text
    return [weights_of(ended.lines[rank]) for rank in sorted(ended.lines)]


def distance(one: list[float], other: list[float]) -> float:
    assert len(one) == len(other) > 0
    return max(abs(a - b) for a, b in zip(one, other))


@pytest.mark.parametrize("optimizer", ["SGD(0.1, momentum=0.9)", "Adam(0.01)", "AdamW(0.01, weight_decay=0.1)"])
def test_one_process_has_the_bits_of_keras(tmp_path: Path, optimizer: str) -> None:
    assert trained(tmp_path, optimizer, "ring", workers=1) == [alone(tmp_path, optimizer)]


@pytest.mark.parametrize("optimizer", ["SGD(0.1, momentum=0.9, nesterov=True)", "Adam(0.01)"])
def test_two_processes_train_as_one_with_twice_the_batch(tmp_path: Path, optimizer: str) -> None:
    first, second = trained(tmp_path, optimizer, "ring")
    assert first == second
    assert distance(first, alone(tmp_path, optimizer)) < 1e-5


@pytest.mark.parametrize("optimizer", ["SGD(0.1)", "SGD(0.1, momentum=0.9)", "SGD(0.1, momentum=0.9, nesterov=True)"])
def test_servers_make_the_updates_of_sgd(tmp_path: Path, optimizer: str) -> None:
    first, second = trained(tmp_path, optimizer, "ps-sync")
    assert first == second
    assert distance(first, alone(tmp_path, optimizer)) < 1e-5


def test_a_job_without_order_trains_too(tmp_path: Path) -> None:
    ended = job(tmp_path, "SGD(0.05)", "ps-async")
    assert ended.code == 0 and ended.summary["steps"] == 24, ended.text
    assert any(line == "iterations 24 0.05000000074505806" for line in ended.lines[0]), ended.lines[0]


def test_first_parameters_come_from_one_process(tmp_path: Path) -> None:
    first, second = trained(tmp_path, "SGD(0.1)", "ring", seeds="differ", callback="yes")
    assert first == second
    assert distance(first, alone(tmp_path, "SGD(0.1)")) < 1e-5


def test_first_parameters_that_differ_are_refused(tmp_path: Path) -> None:
    ended = job(tmp_path, "SGD(0.1)", "ring", seeds="differ")
    assert ended.code != 0 and "first parameters differ" in ended.text, ended.text
    assert "BroadcastGlobalVariablesCallback" in ended.text, ended.text


def test_the_rate_rises_over_the_first_epochs(tmp_path: Path) -> None:
    ended = job(tmp_path, "SGD(0.1)", "ring", callback="warmup")
    assert ended.code == 0, ended.text
    line = next(line for line in ended.lines[0] if line.startswith("iterations 24 "))
    assert abs(float(line.split()[2]) - 0.5 * (0.5 + 0.5 * 23 / 24)) < 1e-6, line


@pytest.mark.parametrize(("optimizer", "mode", "sentence"), [
    ("Adam(0.01)", "ps-sync", "Keras writes Adam in another way than they do"),
    ("SGD(0.1, clipnorm=1.0)", "ps-sync", "do not know clipnorm=1.0"),
    ("SGD(0.1, weight_decay=0.1)", "ps-async", "do not know weight_decay=0.1"),
])
def test_what_cannot_be_is_refused_by_name(tmp_path: Path, optimizer: str, mode: str, sentence: str) -> None:
    ended = job(tmp_path, optimizer, mode)
    assert ended.code != 0 and sentence in ended.text, ended.text


def test_another_backend_is_refused_by_name() -> None:
    # Its own libraries are not needed for that, so none is started.
    script = ("import keras; keras.backend.backend = lambda: 'tensorflow'; import ringside.keras as hvd;"
              "hvd.DistributedOptimizer(keras.optimizers.SGD())")
    ended = subprocess.run([keras_python(), "-c", script], env=environment(KERAS_BACKEND="torch"),
                           capture_output=True, text=True, timeout=LIMIT, check=False)
    assert "Keras runs on tensorflow, whose training step is compiled as a whole" in ended.stderr, ended.stderr


def test_elastic_is_refused_by_name() -> None:
    ended = subprocess.run([keras_python(), "-c", "import ringside.keras as hvd; hvd.elastic"],
                           env=environment(KERAS_BACKEND="torch"), capture_output=True, text=True,
                           timeout=LIMIT, check=False)
    assert "ringside.keras has no elastic: fit() cannot be called again" in ended.stderr, ended.stderr


@pytest.mark.parametrize("mode", ["ring", "ps-sync"])
def test_the_example_trains_on_real_images(tmp_path: Path, mode: str) -> None:
    folder = os.environ.get("RINGSIDE_DATA")
    if not folder or not (Path(folder) / "fashion-mnist").is_dir():
        pytest.skip("needs fashion-mnist/ in the folder that RINGSIDE_DATA names")
    ended = run_file(tmp_path / "run", [str(EXAMPLE), "--epochs", "2", "--limit", "2000"], mode=mode,
                     variables={"KERAS_BACKEND": "torch"}, python=keras_python())
    assert ended.code == 0 and ended.summary["outcome"] == "completed", ended.text
    assert ended.summary["epochs"][-1]["test_accuracy"] > 0.5, ended.summary
