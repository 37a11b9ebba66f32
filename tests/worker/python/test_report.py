"""What the job's record has of what scripts report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jobs import completed

TRAIN = """
model = make_model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())

def step():
    optimizer.zero_grad()
    loss = loss_of(model)
    loss.backward()
    optimizer.step()
    return loss
"""

ALL = """
accuracies = [0.5, 0.75, 0.25]
for epoch in range(3):
    for _ in range(4):
        hvd.report(loss=step(), images=8)
    hvd.report(accuracy=0.125)  # of several results between two steps the last ones count
    hvd.report(accuracy=accuracies[epoch], test_loss=epoch + rank, test_images=16)
hvd.report(loss=step(), images=8)
"""


def details_of(folder: Path) -> list[dict[str, float]]:
    found = list(folder.glob("*/run/details.json"))
    assert len(found) == 1
    return list(json.loads(found[0].read_text())["evaluations"])


@pytest.mark.parametrize("mode", ["ring", "ps-async"])
def test_each_evaluation_is_in_the_summary(tmp_path: Path, mode: str) -> None:
    ended = completed(tmp_path, TRAIN + ALL, mode=mode)
    epochs = ended.summary["epochs"]
    assert [epoch["epoch"] for epoch in epochs] == [1, 2, 3, 4]
    assert [epoch["test_accuracy"] for epoch in epochs] == [0.5, 0.75, 0.25, None]
    assert [epoch["test_loss"] for epoch in epochs] == [0.5, 1.5, 2.5, None]
    assert all(0 < epoch["train_loss"] < 2 and epoch["images_per_second"] > 0 for epoch in epochs)
    assert (ended.summary["best_accuracy"], ended.summary["best_epoch"]) == (0.75, 2)
    assert [of["step"] for of in details_of(tmp_path)] == [4, 8, 12, 13]
    assert "step 8: train loss" in ended.text and "test accuracy 75.00 %" in ended.text
    assert "test accuracy 25.00 %, best 75.00 % (epoch 2), run folder" in ended.text


RANK_0 = """
for epoch in range(2):
    for _ in range(4):
        step()
    if rank == 0:
        hvd.report(accuracy=0.5 + epoch / 4)
"""


def test_the_first_process_may_evaluate_for_all(tmp_path: Path) -> None:
    ended = completed(tmp_path, TRAIN + RANK_0)
    for epoch, accuracy in zip(ended.summary["epochs"], (0.5, 0.75)):
        assert epoch["test_accuracy"] == accuracy
        assert epoch["test_loss"] is None and epoch["train_loss"] is None, epoch  # nobody told them
    assert ended.summary["best_accuracy"] == 0.75
    assert "step 8: test accuracy 75.00 %" in ended.text


def test_without_evaluations_nothing_is_best(tmp_path: Path) -> None:
    ended = completed(tmp_path, TRAIN + "step()\nhvd.report(loss=step(), images=8)\n")
    assert len(ended.summary["epochs"]) == 1
    assert ended.summary["best_accuracy"] is None and ended.summary["best_epoch"] is None
