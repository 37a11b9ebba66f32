"""DistributedOptimizer(overlap_forward=True): step() returns, and parameters come during forward."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from jobs import completed, run
from test_elastic import KILL, SCRIPT, ends

# Rank 1 begins its backward pass when rank 0 says so, through a pipe that has a name.
PIPE = """
import os
pipe = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pipe")
if rank == 0:
    os.mkfifo(pipe)
hvd.barrier()

def hold():
    if rank == 1:
        open(pipe).close()

def release():
    if rank == 0:
        open(pipe, "w").close()
"""

TRAIN = """
model = {model}
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters(), {options})
"""
STEPS = """
for step in range(6):
    optimizer.zero_grad()
    loss_of(model).backward()
    optimizer.step()
print(digest(model))
"""
MESSAGES = ("--transport", "tcp", "--insecure")  # a ring in shared memory waits in step()
OVERLAP = "overlap_forward=True"


def test_step_returns_before_the_others_have_sent_anything(tmp_path: Path) -> None:
    """In step 2 rank 1 waits for a word of rank 0, which says it after its step()."""
    script = PIPE + TRAIN.format(model="make_model()", options=OVERLAP) + """
loss_of(model).backward()
optimizer.step()
optimizer.zero_grad()
loss = loss_of(model)
hold()
loss.backward()
optimizer.step()
release()
print(digest(model))
"""
    plain = script.replace(OVERLAP, "").replace("\nhold()", "").replace("\nrelease()", "")
    for mode, options in (("ps-sync", ()), ("ring", MESSAGES)):
        updates = {"RINGSIDE_UPDATES": "job"}
        ended = completed(tmp_path, script, *options, mode=mode, variables=updates)
        waited = completed(tmp_path, plain, *options, mode=mode, variables=updates)
        assert len(set(ended.values() + waited.values())) == 1, ended.text


MODELS = {
    "plain": "make_model()",
    "copies": "make_model().bfloat16()",
    "shared": "torch.nn.Sequential(*[torch.nn.Linear(6, 6)] * 3, torch.nn.Linear(6, 3))",
}


BOTH = (("ps-sync", ()), ("ring", MESSAGES))


@pytest.mark.parametrize(("model", "workers", "modes"), [
    ("plain", 1, [("ps-sync", ()), ("ring", ())]), ("plain", 2, BOTH), ("plain", 3, BOTH),
    ("copies", 2, BOTH[:1]), ("shared", 2, BOTH[:1])])
def test_the_bits_are_those_of_waiting(tmp_path: Path, model: str, workers: int, modes: list[Any]) -> None:
    digests = set()
    features = "features = features.to(next(model.parameters()).dtype)"
    steps = STEPS.replace("digest(model)", "digest(model.float())")
    for options in (OVERLAP, ""):
        script = "torch.manual_seed(3)\n" + TRAIN.format(model=MODELS[model], options=options) + features + steps
        for mode, more in modes:
            ended = completed(tmp_path, script, *more, workers=workers, mode=mode,
                              variables={"RINGSIDE_UPDATES": "job"})
            digests |= set(ended.values())
    assert len(digests) == 1


MIXED = TRAIN.replace("{options}", "backward_passes_per_step=2, {options}") + """
import copy, io
seen = []
def see(values):
    seen.append(values.detach().clone().double().sum().item())
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
for step in range(10):
    optimizer.zero_grad()
    for part in (0, 1):
        loss_of(model, part, 2).backward()
    optimizer.step()
    scheduler.step()
    hvd.report(loss=0.5, images=8)
    if step == 1:
        see(model.state_dict()["0.weight"])
    elif step == 2:
        see(model[2].bias.data)
    elif step == 3:
        model.eval()
        with torch.no_grad():
            see(loss_of(model, 0, 1))
        model.train()
        hvd.report(accuracy=0.5)
    elif step == 4:
        see(hvd.allreduce(model[0].bias.detach()))
    elif step == 5:
        see(torch.nn.utils.parameters_to_vector(copy.deepcopy(model).parameters()))
    elif step == 6:
        file = io.BytesIO()
        torch.save(model.state_dict(), file)
        file.seek(0)
        see(torch.load(file)["2.weight"])
    elif step == 7:
        see(hvd.broadcast(model[2].weight, 1))
    elif step == 8:
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        model.zero_grad()
        see(features @ model[0].weight.t())
print(seen, digest(model))
"""


@pytest.mark.parametrize(("mode", "more"), [("ps-sync", ()), ("ring", MESSAGES)])
def test_what_a_script_reads_behind_step_is_there(tmp_path: Path, mode: str, more: tuple[str, ...]) -> None:
    lines = set()
    for options in (OVERLAP, ""):
        ended = completed(tmp_path, MIXED.format(model="make_model()", options=options), *more, mode=mode,
                          variables={"RINGSIDE_UPDATES": "job"})
        lines |= set(ended.values())
    assert len(lines) == 1 and len(lines.pop().split()) == 9


@pytest.mark.parametrize(("mode", "more"), [("ring", ()), ("ps-ssp:1", ()), ("ps-async", ()), ("local", ())])
def test_where_parameters_come_at_once_step_waits(tmp_path: Path, mode: str, more: tuple[str, ...]) -> None:
    script = TRAIN.format(model="make_model()", options=OVERLAP) + STEPS
    completed(tmp_path, script, *more, mode=mode, workers=1 if mode == "local" else 2)


def test_the_last_step_of_a_job_is_as_any(tmp_path: Path) -> None:
    script = TRAIN.format(model="make_model()", options=OVERLAP) + STEPS
    ended = completed(tmp_path, script, "--steps", "6", mode="ps-sync")
    left = completed(tmp_path, script.replace("print(", "hvd.shutdown()\nprint("), mode="ps-sync")
    assert len(set(ended.values() + left.values())) == 1


def test_what_is_written_before_parameters_have_come_is_refused(tmp_path: Path) -> None:
    script = TRAIN.format(model="make_model()", options=OVERLAP) + STEPS.replace(
        "optimizer.step()", "optimizer.step()\n    torch.nn.init.zeros_(model[2].bias)")
    ended = run(tmp_path, script, mode="ps-sync")
    reason = ended.summary["reason"]
    assert "2.bias" in reason and "was written after the first step" in reason, ended.text


def test_a_loss_while_parameters_are_under_way_ends_the_job(tmp_path: Path) -> None:
    script = PIPE + "import signal" + TRAIN.format(model="make_model()", options=OVERLAP) + """
loss_of(model).backward()
optimizer.step()
loss = loss_of(model)
hold()
if rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
loss.backward()
optimizer.step()
release()
try:
    loss_of(model)
finally:
    print("values", bool(model[0].weight.isfinite().all()), flush=True)
"""
    ended = run(tmp_path, script, mode="ps-sync")
    assert ended.code == 1 and "worker 1" in ended.summary["reason"], ended.text
    assert any("values True" in line for line in ended.lines[0]), ended.text


def test_a_script_goes_on_after_a_loss(tmp_path: Path) -> None:
    found = []
    for options in (f", {OVERLAP})", ")"):
        script = SCRIPT.replace("named_parameters())", "named_parameters()" + options)
        script = script.replace("{strike}", KILL.format(rank=1)).replace("{last}", "20")
        ended = run(tmp_path, script, "--on-loss", "commit", workers=3, mode="ps-sync")
        assert ended.code == 0 and ended.summary["workers_lost"] == 1, ended.text
        assert len(ends(ended)) == 2 and re.search("step 20", ended.text), ended.text
        found.append(ends(ended))
    assert found[0] == found[1]
