"""The job's optimizer is the script's, where the job's options name none."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from jobs import completed, run

TRAIN = """
model = make_model()
optimizer = torch.optim.{optimizer}
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
for step in range(8):
    optimizer.zero_grad()
    loss_of(model).backward()
    optimizer.step()
print(digest(model))
"""

# What the script says, and the options that say the same.
SAID = {
    "SGD(model.parameters(), lr=0.05)": "sgd --lr 0.05",
    "SGD(model.parameters(), lr=0.05, momentum=0.7, weight_decay=1e-3)":
        "momentum --lr 0.05 --momentum 0.7 --weight-decay 1e-3",
    "SGD(model.parameters(), lr=0.05, momentum=0.8, nesterov=True)":
        "nesterov --lr 0.05 --momentum 0.8",
    "Adam(model.parameters(), lr=0.1 / 3, betas=(0.8, 0.99), eps=1e-7)":
        "adam --lr 0.03333333333333333 --beta1 0.8 --beta2 0.99 --epsilon 1e-7",
    "AdamW(model.parameters())": "adamw --lr 0.001 --weight-decay 0.01",
    "Adagrad(model.parameters())": "adagrad --lr 0.01",
    "Adadelta(model.parameters(), rho=0.8)": "adadelta --lr 1 --decay 0.8",
    "RMSprop(model.parameters())": "rmsprop --lr 0.01",
}


@pytest.mark.parametrize("optimizer", list(SAID))
def test_ring_and_servers_have_it_with_the_bits_of_the_options(
    tmp_path: Path, optimizer: str
) -> None:
    script = TRAIN.format(optimizer=optimizer)
    name, *settings = SAID[optimizer].split()
    jobs = [completed(tmp_path, script, mode="ps-sync"),
            completed(tmp_path, script, variables={"RINGSIDE_UPDATES": "job"}),
            completed(tmp_path, script, "--optimizer", name, *settings, mode="ps-sync")]
    assert len({value for job in jobs for value in job.values()}) == 1, [j.text for j in jobs]
    for job in jobs:
        assert job.summary["optimizer"] == name and f", {name}, lr " in job.text, job.text
        assert math.isclose(job.summary["lr"], float(settings[1]), rel_tol=1e-5), job.summary


@pytest.mark.parametrize("mode", ["ps-ssp:2", "ps-async"])
def test_unsynchronised_servers_have_it(tmp_path: Path, mode: str) -> None:
    script = TRAIN.format(optimizer="AdamW(model.parameters(), lr=0.002)")
    ended = completed(tmp_path, script, mode=mode)
    assert (ended.summary["optimizer"], ended.summary["lr"]) == ("adamw", 0.002), ended.summary


def test_in_ring_it_is_called_the_programs(tmp_path: Path) -> None:
    script = TRAIN.format(optimizer="Rprop(model.parameters())")
    for options in ((), ("--optimizer", "adam", "--lr", "0.3")):
        ended = completed(tmp_path, script, *options)
        assert "the program's optimizer, seed 1" in ended.text, ended.text
        assert ended.summary["optimizer"] == "the program's", ended.summary
        assert ended.summary["lr"] is None and ended.summary["lr_effective"] is None, ended.summary


def test_processes_that_disagree_are_named(tmp_path: Path) -> None:
    optimizer = "Adam(model.parameters(), betas=(0.9, 0.99 if rank else 0.9))"
    for mode, variables in (("ps-sync", {}), ("ps-async", {}), ("ring", {"RINGSIDE_UPDATES": "job"})):
        ended = run(tmp_path, TRAIN.format(optimizer=optimizer), mode=mode, variables=variables)
        reason = ended.summary["reason"]
        assert ended.code == 1 and "its optimizer differs: it has beta2=0.9" in reason, ended.text
        assert "beta2=0.99" in reason and reason.startswith("worker "), reason


@pytest.mark.parametrize(("optimizer", "options", "sentence"), [
    ("Rprop(model.parameters())", (), "the job makes the updates, and has no Rprop"),
    ("Adam(model.parameters(), amsgrad=True)", (), "Adam has amsgrad=False there, not True"),
    ("Adam(model.parameters(), eps=0)", (), "its Adam has no eps=0"),
    ("RMSprop(model.parameters(), alpha=0)", (), "its RMSprop has no alpha=0"),
    ("SGD(model.parameters(), lr=0.1)", ("--lr", "0.2"),
     "the learning rate 0.1, and the job --lr 0.2: leave --lr out"),
    ("SGD(model.parameters(), lr=0.1, weight_decay=2)", (), "weight-decay"),
])
def test_what_servers_cannot_have_is_refused(
    tmp_path: Path, optimizer: str, options: tuple[str, ...], sentence: str
) -> None:
    ended = run(tmp_path, TRAIN.format(optimizer=optimizer), *options, mode="ps-sync")
    assert ended.code == 1 and sentence in ended.text, ended.text


def test_a_schedule_of_the_job_begins_at_its_rate(tmp_path: Path) -> None:
    script = TRAIN.format(optimizer="SGD(model.parameters(), lr=0.1)")
    schedule = ("--lr-schedule", "cosine", "--steps", "8")
    said = completed(tmp_path, script, *schedule, mode="ps-sync")
    named = completed(tmp_path, script, *schedule, "--optimizer", "sgd", "--lr", "0.1",
                      mode="ps-sync")
    assert said.values() == named.values() and said.summary["lr"] == 0.1, said.text
    given = completed(tmp_path, script, *schedule, "--lr", "0.3", mode="ps-sync")
    assert given.summary["lr"] == 0.3 and given.values() != said.values(), given.text
