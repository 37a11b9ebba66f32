"""The examples train on real images, in the jobs that their first lines name.

Images are those of the folder $RINGSIDE_DATA. What needs them is skipped without.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from pathlib import Path

import pytest
from jobs import SOURCE, Ended, run_file

EXAMPLES = SOURCE / "worker" / "python" / "examples"
SCRIPTS = ["fashion_mnist.py", "cifar10_resnet.py", "accumulate.py", "resume.py",
           "elastic_fashion_mnist.py"]
sys.path.insert(0, str(EXAMPLES))

import images  # noqa: E402  the examples' own

# What the examples use of horovod.torch, by Horovod's documentation.
HOROVOD = {
    "init", "rank", "size", "allreduce", "allreduce_", "Sum", "broadcast_object",
    "broadcast_parameters", "broadcast_optimizer_state", "DistributedOptimizer", "elastic",
}


def need(name: str) -> None:
    """Skips the test where there are no such images."""
    folder = os.environ.get("RINGSIDE_DATA")
    if not folder or not (Path(folder) / name).is_dir():
        pytest.skip(f"needs {name}/ in the folder that RINGSIDE_DATA names")


def train(
    folder: Path,
    script: str,
    arguments: str,
    options: str = "",
    mode: str = "ring",
    variables: dict[str, str] | None = None,
) -> Ended:
    """A job of two processes that has to end well."""
    out = folder / f"run-{len(list(folder.iterdir()))}"
    ended = run_file(out, [str(EXAMPLES / script), *arguments.split()], *options.split(),
                     mode=mode, variables=variables)
    assert ended.code == 0 and ended.summary["outcome"] == "completed", ended.text
    return ended


def printed(ended: Ended, what: str) -> list[float]:
    """The numbers behind a word in rank 0's lines, one of each epoch."""
    lines = [line for line in ended.lines[0] if line.startswith("epoch ")]
    return [float(number) for line in lines for number in re.findall(rf"{what} ([\d.]+)", line)]


def check_report(ended: Ended, losses: list[float]) -> None:
    """The loss falls, and the job has heard of it."""
    assert len(losses) >= 2 and losses[-1] < losses[0], ended.text
    told = [epoch["train_loss"] for epoch in ended.summary["epochs"]]
    if len(told) == 1:  # the script does not evaluate; all epochs have as many images
        losses = [sum(losses) / len(losses)]
    assert told == pytest.approx(losses, abs=2e-4)


def check_accuracy(ended: Ended, least: float) -> None:
    accuracies = printed(ended, "accuracy")
    assert accuracies[-1] >= least
    told = [epoch["test_accuracy"] for epoch in ended.summary["epochs"]]
    assert told == pytest.approx(accuracies, abs=1e-4)
    assert ended.summary["best_accuracy"] == max(told)


FASHION = "--limit 1024 --epochs 3 --batch-size 32"
FASHION_JOB = "--optimizer momentum --momentum 0.9 --lr 0.02"


def test_fashion_mnist_has_the_same_bits_in_ring_and_ps_sync(tmp_path: Path) -> None:
    need("fashion-mnist")
    ring = train(tmp_path, "fashion_mnist.py", FASHION, FASHION_JOB,
                 variables={"RINGSIDE_UPDATES": "job"})
    servers = train(tmp_path, "fashion_mnist.py", FASHION, FASHION_JOB, mode="ps-sync")
    assert ring.summary["params_digest"] == servers.summary["params_digest"]
    assert ring.lines[0] == servers.lines[0]
    for ended in (ring, servers):
        assert ended.summary["steps"] == 3 * 16
        check_report(ended, printed(ended, "loss"))
        check_accuracy(ended, 0.4)


def test_fashion_mnist_learns_in_ps_async(tmp_path: Path) -> None:
    need("fashion-mnist")
    ended = train(tmp_path, "fashion_mnist.py", FASHION, FASHION_JOB, mode="ps-async")
    check_report(ended, printed(ended, "loss"))
    check_accuracy(ended, 0.3)


RESNET = "--limit 256 --epochs 3 --batch-size 32 --blocks 1 --lr 0.02"
RESNET_JOB = ("--optimizer momentum --momentum 0.9 --weight-decay 5e-4 --lr 0.02 --lr-scale linear "
              "--lr-schedule cosine --warmup-epochs 0.33333 --steps 12")


def test_cifar10_resnet_warms_up_as_the_job_that_it_names(tmp_path: Path) -> None:
    need("cifar10")
    script = train(tmp_path, "cifar10_resnet.py", RESNET)
    servers = train(tmp_path, "cifar10_resnet.py", RESNET, RESNET_JOB, mode="ps-sync")
    for ended in (script, servers):
        assert "12 steps, of which 4 warm up" in ended.lines[0]
        # Of two processes: the whole rate after the warm-up, half of it at half of the cosine.
        assert printed(ended, "rate") == [0.04, 0.02, 0.0]
        check_report(ended, printed(ended, "loss"))
        check_accuracy(ended, 0)
    assert printed(servers, "loss") == pytest.approx(printed(script, "loss"), abs=3e-3)


def test_accumulate_makes_a_step_of_several_passes_and_clips(tmp_path: Path) -> None:
    need("fashion-mnist")
    arguments = "--limit 1024 --epochs 3 --batch-size 16 --passes 4 --clip "
    ended = train(tmp_path, "accumulate.py", arguments + "1")
    assert ended.summary["steps"] == 3 * 8
    check_report(ended, printed(ended, "loss"))
    assert max(printed(ended, "longest gradient")) > 1
    clipped = train(tmp_path, "accumulate.py", arguments + "0.01")
    check_report(clipped, printed(clipped, "loss"))
    assert printed(clipped, "loss")[-1] > printed(ended, "loss")[-1] + 0.3  # short steps


def test_accumulate_trains_without_clipping_by_servers(tmp_path: Path) -> None:
    need("fashion-mnist")
    ended = train(tmp_path, "accumulate.py", "--limit 1024 --batch-size 16 --clip 0",
                  "--optimizer momentum --momentum 0.9 --lr 0.05", mode="ps-sync")
    check_report(ended, printed(ended, "loss"))


def test_resume_ends_with_the_bits_of_a_run_that_was_not_interrupted(tmp_path: Path) -> None:
    need("fashion-mnist")
    arguments = f"--limit 1024 --checkpoint {tmp_path}/"
    whole = train(tmp_path, "resume.py", arguments + "whole.pt --epochs 2")
    check_report(whole, printed(whole, "loss"))
    check_accuracy(whole, 0.4)
    first = train(tmp_path, "resume.py", arguments + "part.pt --epochs 1")
    second = train(tmp_path, "resume.py", arguments + "part.pt --epochs 2")
    for rank in (0, 1):
        assert f"process {rank} of 2 begins after 0 epochs" in first.lines[rank]
        assert f"process {rank} of 2 begins after 1 epochs" in second.lines[rank]
    assert first.summary["params_digest"] != whole.summary["params_digest"]
    assert second.summary["params_digest"] == whole.summary["params_digest"]
    assert not list(tmp_path.glob("*.new"))


@pytest.mark.parametrize("mode", ["ring", "ps-sync"])
def test_elastic_goes_on_without_a_process_that_is_killed(tmp_path: Path, mode: str) -> None:
    need("fashion-mnist")
    arguments = "--limit 960 --epochs 2 --batch-size 32 --commit-every 4"
    ended = run_file(tmp_path / "run", [str(EXAMPLES / "elastic_fashion_mnist.py"), *arguments.split()],
                     "--on-loss", "commit", "--fault", "rank=1,step=16,kill", workers=3, mode=mode)
    assert ended.code == 0 and ended.summary["outcome"] == "completed", ended.text
    assert ended.summary["workers_lost"] == 1
    begun = [line for lines in ended.lines.values() for line in lines if " begins in epoch " in line]
    assert sorted(begun) == [f"process {rank} of {size} begins in epoch {epoch}"
                             for rank, size, epoch in [(0, 2, 2), (0, 3, 1), (1, 2, 2), (1, 3, 1), (2, 3, 1)]]
    # Ten steps of three processes, four more, and the rest of the second epoch by two.
    assert ended.summary["steps"] > 20
    check_accuracy(ended, 0.4)


def test_a_job_without_images_ends_with_a_sentence(tmp_path: Path) -> None:
    ended = run_file(tmp_path / "run",
                     [str(EXAMPLES / "fashion_mnist.py"), "--data", "/nonexistent"], workers=1)
    assert ended.code == 1
    assert "/nonexistent is no folder: give that of fashion-mnist by" in ended.summary["reason"]


def test_files_that_are_missing_or_broken_are_named(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RINGSIDE_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match="where is cifar10.* by --data.* RINGSIDE_DATA"):
        images.cifar10(None, is_training=True)
    with pytest.raises(FileNotFoundError, match="data_batch_1.bin is missing"):
        images.cifar10(str(tmp_path), is_training=True)
    (tmp_path / "test_batch.bin").write_bytes(bytes(3000))
    with pytest.raises(ValueError, match="test_batch.bin ends after 3000 bytes of 3073"):
        images.cifar10(str(tmp_path), is_training=False, limit=1)
    pixels = tmp_path / "t10k-images-idx3-ubyte"
    pixels.write_bytes(bytes((0, 0, 9, 3)) + bytes(12))
    with pytest.raises(ValueError, match="is no IDX file of bytes in 3 dimensions"):
        images.fashion_mnist(str(tmp_path), is_training=False)


def test_idx_files_are_read_as_they_are(tmp_path: Path) -> None:
    folder = tmp_path / "fashion-mnist"
    folder.mkdir()
    sizes = b"".join(size.to_bytes(4, "big") for size in (2, 2, 3))
    (folder / "train-images-idx3-ubyte").write_bytes(bytes((0, 0, 8, 3)) + sizes + bytes(range(12)))
    (folder / "train-labels-idx1-ubyte").write_bytes(bytes((0, 0, 8, 1)) + sizes[:4] + b"\7\4")
    dataset = images.fashion_mnist(str(folder), is_training=True)
    assert dataset[1][0].tolist() == [[[6, 7, 8], [9, 10, 11]]] and int(dataset[1][1]) == 4
    assert len(images.fashion_mnist(str(folder), is_training=True, limit=1)) == 1
    assert [len(images.share(dataset, rank, 3)) for rank in range(3)] == [1, 1, 0]


def test_cifar10_goes_on_in_the_next_file(tmp_path: Path) -> None:
    pixels = bytes(range(256)) * 12
    (tmp_path / "data_batch_1.bin").write_bytes((b"\1" + pixels) * 10_000)
    (tmp_path / "data_batch_2.bin").write_bytes(b"\2" + pixels)
    dataset = images.cifar10(str(tmp_path), is_training=True, limit=10_001)
    assert len(dataset) == 10_001 and int(dataset[9_999][1]) == 1 and int(dataset[10_000][1]) == 2
    assert bytes(dataset[10_000][0].numpy().tobytes()) == pixels


@pytest.mark.parametrize("script", SCRIPTS)
def test_one_line_differs_under_horovod(script: str) -> None:
    tree = ast.parse((EXAMPLES / script).read_text())
    ours = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))
            and "ringside" in ast.unparse(node)]
    assert [ast.unparse(node) for node in ours] == ["import ringside.torch as hvd"]
    used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name) and node.value.id == "hvd"}
    assert used - {"report"} <= HOROVOD  # which hasattr() asks for
    asked = sum("hasattr(hvd, 'report')" in ast.unparse(node.test) for node in ast.walk(tree)
                if isinstance(node, ast.If))
    reports = ast.unparse(tree).count("hvd.report(")
    assert asked == reports > 0
