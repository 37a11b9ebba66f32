"""Groups of parameters with settings of their own, and schedulers, where the job makes updates."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from jobs import PRELUDE, completed, run
from test_optimizer import PLAIN

TRAIN = """
model = make_model()
weights = [p for p in model.parameters() if p.dim() > 1]
biases = [p for p in model.parameters() if p.dim() == 1]
optimizer = torch.optim.{optimizer}
{scheduler}
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
losses = []
for step in range(12):
    {before}
    optimizer.zero_grad()
    loss = loss_of(model)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    {after}
print(losses)
print(digest(model))
"""

JOB = {"RINGSIDE_UPDATES": "job"}

GROUPS = [
    "SGD([{'params': weights, 'lr': 0.1, 'weight_decay': 0.01}, {'params': biases}], lr=0.02)",
    "SGD([{'params': weights, 'momentum': 0.9}, {'params': biases}], lr=0.05)",
    "SGD([{'params': biases}, {'params': weights, 'momentum': 0.8, 'nesterov': True}], lr=0.05)",
    "Adam([{'params': weights, 'betas': (0.8, 0.99)}, {'params': biases, 'eps': 1e-6}], lr=0.01)",
    "AdamW([{'params': biases, 'weight_decay': 0}, {'params': weights, 'lr': 0.02}], lr=0.01)",
    "Adagrad([{'params': weights, 'lr': 0.05}, {'params': biases}], lr=0.01)",
    "Adadelta([{'params': weights, 'rho': 0.8}, {'params': biases}])",
    "RMSprop([{'params': weights, 'alpha': 0.9}, {'params': biases, 'lr': 0}], lr=0.001)",
]

SCHEDULERS = {
    "SGD(model.parameters(), lr=0.2)": "StepLR(optimizer, 3, 0.5)",
    "SGD(model.parameters(), lr=0.1, momentum=0.9)": "CosineAnnealingLR(optimizer, 12)",
    "SGD(model.parameters(), lr=0.05, momentum=0.9)": "OneCycleLR(optimizer, 0.2, total_steps=13)",
    "Adam(model.parameters(), lr=0.01)": "OneCycleLR(optimizer, 0.05, total_steps=13)",
    "AdamW(model.parameters(), lr=0.01)": "LambdaLR(optimizer, lambda step: min(1, step / 5))",
    "SGD([{'params': weights, 'lr': 0.2}, {'params': biases}], lr=0.1)":
        "LambdaLR(optimizer, [lambda step: min(1, step / 4), lambda step: 0.8 ** step])",
}


def script_of(optimizer: str, scheduler: str = "", before: str = "") -> str:
    made = f"scheduler = torch.optim.lr_scheduler.{scheduler}" if scheduler else ""
    return TRAIN.format(optimizer=optimizer, scheduler=made, before=before,
                        after="scheduler.step()" if scheduler else "")


def plain_losses(script: str) -> list[float]:
    """Those of the script without us."""
    printed: list[str] = []
    source = PRELUDE.replace("import ringside.torch as hvd", PLAIN) + script
    exec(source, {"print": lambda value: printed.append(str(value))})
    return json.loads(printed[-2])


def losses(lines: list[str]) -> torch.Tensor:
    return torch.tensor(json.loads(lines[-2]))


def check_bits_and_losses(folder: Path, script: str, sizes: tuple[int, ...]) -> None:
    """Ring and ps-sync end with the same bits, and one process has the losses of torch."""
    for workers in sizes:
        ring = completed(folder, script, workers=workers, variables=JOB)
        servers = completed(folder, script, "--servers", "2", workers=workers, mode="ps-sync")
        assert len(set(ring.values() + servers.values())) == 1, ring.text + servers.text
        if workers == 1:
            for ended in (ring, servers):
                assert torch.allclose(losses(ended.lines[0]), torch.tensor(plain_losses(script)),
                                      rtol=1e-5, atol=1e-6), ended.text


@pytest.mark.parametrize("optimizer", GROUPS)
def test_each_group_is_updated_by_its_settings(tmp_path: Path, optimizer: str) -> None:
    sizes = (1, 2, 3) if optimizer == GROUPS[0] else (1, 2)
    check_bits_and_losses(tmp_path, script_of(optimizer), sizes)


@pytest.mark.parametrize("optimizer", list(SCHEDULERS))
def test_schedulers_rule_where_servers_make_the_updates(tmp_path: Path, optimizer: str) -> None:
    sizes = (1, 2, 3) if "weights" in optimizer else (1, 2)
    check_bits_and_losses(tmp_path, script_of(optimizer, SCHEDULERS[optimizer]), sizes)


@pytest.mark.parametrize("mode", ["ps-ssp:2", "ps-async"])
def test_one_unsynchronised_process_trains_as_torch_does(tmp_path: Path, mode: str) -> None:
    for optimizer in list(SCHEDULERS)[-3:]:
        script = script_of(optimizer, SCHEDULERS[optimizer])
        ended = completed(tmp_path, script, workers=1, mode=mode)
        assert torch.allclose(losses(ended.lines[0]), torch.tensor(plain_losses(script)),
                              rtol=1e-5, atol=1e-6), ended.text


def test_each_push_has_the_rate_of_its_process(tmp_path: Path) -> None:
    """Where one has the rate 0, its gradients change nothing."""
    script = script_of("SGD(model.parameters(), lr=0.1)",
                       before="optimizer.param_groups[0]['lr'] = 0.0")
    ended = completed(tmp_path, script + "print(bool(losses[0] == losses[-1]))\n",
                      workers=2, mode="ps-async")
    assert ended.values() == ["True", "True"], ended.text


@pytest.mark.parametrize(("optimizer", "sentence"), [
    ("SGD([{'params': weights, 'lr': 0.2 + rank}, {'params': biases}], lr=0.1)",
     "lr=0.2"),
    ("SGD([{'params': weights}, {'params': biases, 'weight_decay': 0.1 * rank}], lr=0.1)",
     "in group 1 it has weight-decay=0"),
    ("SGD([{'params': weights, 'lr': 0.1}, {'params': biases}] if rank else model.parameters(), "
     "lr=0.1)", "of parameters, and the others have"),
    ("SGD([{'params': weights, 'lr': 0.1}, {'params': biases}] if rank else "
     "[{'params': weights + biases[:1]}, {'params': biases[1:]}], lr=0.1)",
     "its groups have other parameters than those of the others, from value 192 of the model on"),
])
def test_processes_with_other_groups_are_named(tmp_path: Path, optimizer: str,
                                               sentence: str) -> None:
    for mode, variables in (("ps-sync", {}), ("ring", JOB)):
        ended = run(tmp_path, script_of(optimizer), mode=mode, variables=variables)
        reason = ended.summary["reason"]
        assert ended.code == 1 and reason.startswith("worker "), ended.text
        assert "its optimizer differs: " in reason and sentence in reason, reason


def test_a_process_with_another_rate_in_a_step_is_named(tmp_path: Path) -> None:
    script = script_of("SGD([{'params': weights, 'lr': 0.2}, {'params': biases}], lr=0.1)",
                       before="optimizer.param_groups[1]['lr'] = 0.3 if rank and step > 4 else 0.1")
    ended = run(tmp_path, script, mode="ps-sync")
    reason = ended.summary["reason"]
    assert ended.code == 1 and "in step 5 worker " in reason, ended.text
    assert "(group 1 of its parameters)" in reason and "lr=0.3" in reason, reason
    assert "lr=0.1" in reason and "worker 1" in reason and "worker 0" in reason, reason


@pytest.mark.parametrize(("change", "sentence"), [
    ("optimizer.param_groups[0]['lr'] = 0.3",
     "the learning rate of group 0 was changed from 0.1 to 0.3 between backward() and step()"),
    ("optimizer.param_groups[0]['weight_decay'] = 0.5", "the weight_decay of group 0 was changed"),
    ("optimizer.param_groups.pop()", "had 2 groups of parameters, and has 1 now"),
])
def test_a_change_that_comes_too_late_is_refused(tmp_path: Path, change: str,
                                                 sentence: str) -> None:
    script = script_of("SGD([{'params': weights}, {'params': biases}], lr=0.1)")
    ended = run(tmp_path, script.replace("loss.backward()", f"loss.backward(); {change}"),
                mode="ps-sync")
    assert ended.code == 1 and sentence in ended.text, ended.text


@pytest.mark.parametrize(("optimizer", "before", "sentence"), [
    ("SGD([{'params': weights, 'nesterov': True}, {'params': biases}], lr=0.1, momentum=0.9)", "",
     "some of them have nesterov=True and others False"),
    ("SGD([{'params': weights, 'dampening': 0.5}, {'params': biases}], lr=0.1, momentum=0.9)", "",
     "SGD has dampening=0 there, not 0.5"),
    ("SGD(model.parameters(), lr=0.1)", "optimizer.param_groups[0]['momentum'] = 0.1 * step",
     "by sgd from the first step on, and the script's optimizer is momentum now"),
    ("SGD(model.parameters(), lr=0.1)", "optimizer.param_groups[0]['lr'] = -1.0 * step",
     "a rate is not 0 to 1e6"),
])
def test_what_servers_cannot_have_is_refused(tmp_path: Path, optimizer: str, before: str,
                                             sentence: str) -> None:
    ended = run(tmp_path, script_of(optimizer, before=before), workers=1, mode="ps-sync")
    assert ended.code == 1 and sentence in ended.text, ended.text


def test_a_schedule_of_the_job_rules_over_the_rates_of_groups(tmp_path: Path) -> None:
    """Each group has its rate times what the schedule makes of the job's."""
    optimizer = "SGD([{'params': weights, 'lr': 0.2}, {'params': biases}], lr=0.1)"
    schedule = ("--lr-schedule", "step", "--lr-gamma", "0.5", "--warmup-epochs", "0", "--steps",
                "12")
    cosine = ("--lr-schedule", "cosine", "--steps", "12")
    theirs = "CosineAnnealingLR(optimizer, 12)"
    for options, scheduler in ((schedule, ""), (cosine, theirs)):
        ours = script_of(optimizer, before="optimizer.param_groups[0]['lr'] = 0.7")
        wanted = torch.tensor(plain_losses(script_of(optimizer, scheduler)))
        for mode, variables in (("ps-sync", {}), ("ring", JOB)):
            ended = completed(tmp_path, ours, *options, workers=1, mode=mode, variables=variables)
            assert torch.allclose(losses(ended.lines[0]), wanted, rtol=1e-5, atol=1e-6), ended.text
