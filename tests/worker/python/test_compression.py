"""Compression that the script says: of collectives, and of gradients."""

from __future__ import annotations

from pathlib import Path

import pytest
from jobs import completed, run
from test_optimizer import MOMENTUM, TRAIN

REDUCE = """
value = torch.tensor([1 + 2.0**-12, 2049.0, 70000.0, 0.1])
halves = hvd.allreduce(value * (1 + rank), op=hvd.Sum, compression=hvd.Compression.fp16)
wanted = sum((value * (1 + r)).half().float() for r in range(size)).half().float()
print(halves.dtype is torch.float32 and torch.equal(halves, wanted))
narrow = hvd.allreduce(value, compression=hvd.Compression.bf16)
print(torch.equal(narrow, value.bfloat16().float()))
counts = hvd.allreduce(torch.tensor([3, 5]), op=hvd.Sum, compression=hvd.Compression.fp16)
print(counts.dtype is torch.int64 and counts.tolist() == [3 * size, 5 * size])
both = hvd.grouped_allreduce([value, value], compression=hvd.Compression.fp16)
print(all(torch.equal(one, value.half().float()) for one in both))

class Signs(hvd.compression.Compressor):
    "One of the script's own."
    @staticmethod
    def compress(tensor):
        return tensor.sign(), tensor.abs().mean()
    @staticmethod
    def decompress(tensor, context):
        return tensor * context

own = hvd.allreduce(torch.tensor([-1.0, 3.0]), compression=Signs)
print(own.tolist() == [-2.0, 2.0])
"""


@pytest.mark.parametrize("mode", ["ring", "ps-async"])
def test_allreduce_casts_and_casts_back(tmp_path: Path, mode: str) -> None:
    ended = completed(tmp_path, REDUCE, mode=mode)
    assert ended.lines[0] == ended.lines[1] == ["True"] * 5, ended.text


# The gradient of each step is 1 + 2^-12. A half has 10 bits behind the point.
STEPS = """
weight = torch.nn.Parameter(torch.zeros(1))
optimizer = torch.optim.SGD([weight], lr=1.0)
optimizer = hvd.DistributedOptimizer(optimizer, compression=hvd.Compression.{kind})
for step in range({steps}):
    optimizer.zero_grad()
    (weight.sum() * (1 + {last})).backward()
    optimizer.step()
print(-weight.item())
"""
MEANS = ("ps-sync", "--server-optimizer", "none")


@pytest.mark.parametrize("job", [("ring",), ("ps-sync",), MEANS])
def test_gradients_travel_as_the_script_says(tmp_path: Path, job: tuple[str, ...]) -> None:
    mode, *options = job
    for kind, last in (("none", "2.0**-12"), ("fp16", "2.0**-12"), ("bf16", "2.0**-9")):
        script = STEPS.format(kind=kind, steps=1, last=last)
        wanted = 1 + eval(last) if kind == "none" else 1.0
        ended = completed(tmp_path, script, *options, mode=mode)
        assert [float(value) for value in ended.values()] == [wanted] * 2, ended.text


@pytest.mark.parametrize("job", [("ps-sync",), MEANS])
def test_what_is_lost_comes_with_later_gradients(tmp_path: Path, job: tuple[str, ...]) -> None:
    """1, 1, 1 + 2^-10, 1: without it the sum would be 4."""
    mode, *options = job
    ended = completed(tmp_path, STEPS.format(kind="fp16", steps=4, last="2.0**-12"), *options,
                      mode=mode)
    assert [float(value) for value in ended.values()] == [4 + 2.0**-10] * 2, ended.text


def test_it_has_the_bits_of_the_jobs_option(tmp_path: Path) -> None:
    script = TRAIN.format(optimizer=MOMENTUM)
    said = script.replace("model.named_parameters())",
                          "model.named_parameters(), compression=hvd.Compression.fp16)")
    for mode, more in (("ring", ()), ("ps-sync", ()), ("ps-sync", MEANS[1:])):
        by_script = completed(tmp_path, said, *more, mode=mode)
        by_option = completed(tmp_path, script, *more, "--compress", "fp16", mode=mode)
        assert len(set(by_script.values() + by_option.values())) == 1, by_script.text
    both = completed(tmp_path, said, "--compress", "fp16", mode="ps-sync")
    assert both.values() == completed(tmp_path, said, mode="ps-sync").values()
    alone = completed(tmp_path, said, workers=1)
    assert alone.values() == completed(tmp_path, script, workers=1).values()  # nothing travels


def test_processes_and_options_that_disagree_are_named(tmp_path: Path) -> None:
    script = TRAIN.format(optimizer=MOMENTUM)
    half = script.replace("model.named_parameters())",
                          "model.named_parameters(), compression=hvd.Compression.fp16)")
    other = half.replace("hvd.Compression.fp16", "[hvd.Compression.fp16, hvd.Compression.bf16][rank]")
    for mode in ("ring", "ps-sync", "ps-async"):
        ended = run(tmp_path, other, mode=mode)
        reason = ended.summary["reason"]
        assert ended.code == 1 and "its compression of gradients differs: it has " in reason, reason
        assert "fp16" in reason and "bf16" in reason and reason.startswith("worker "), reason
    ended = run(tmp_path, half, "--compress", "int8", mode="ring")
    assert ended.code == 1, ended.text
    assert "the program says fp16, and the job has --compress int8" in ended.text, ended.text
