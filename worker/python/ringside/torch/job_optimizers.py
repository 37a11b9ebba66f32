"""Which optimizer of the job makes the update that a torch optimizer would make.

Where the job makes the updates, its optimizer is the script's. If the job's options name one,
DistributedOptimizer compares the two, and refuses what differs.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from ringside._job import Job
from ringside._library import JobDescription, UnsupportedError

OWN_UPDATES = "--mode ring without updates='job' (RINGSIDE_UPDATES)"  # the script makes them

_OPEN = b"auto"  # as the job's optimizer: its options leave it to the script

# Of a class of torch: settings that have to have one value, because the job knows no other.
_FIXED: dict[str, dict[str, Any]] = {
    "SGD": {"dampening": 0},
    "Adam": {"amsgrad": False},
    "AdamW": {"amsgrad": False},
    "Adagrad": {"lr_decay": 0, "initial_accumulator_value": 0},
    "Adadelta": {},
    "RMSprop": {"momentum": 0, "centered": False},
}


def _settings_of(name: str, group: dict[str, Any]) -> tuple[str, dict[str, float]]:
    """The job's optimizer, and its settings by their names in struct ringside_job."""
    decay = {"weight_decay": group["weight_decay"]}
    if name == "SGD":
        if group["momentum"] == 0:
            return "sgd", decay
        kind = "nesterov" if group["nesterov"] else "momentum"
        return kind, {"momentum": group["momentum"], **decay}
    settings = {"epsilon": group["eps"], **decay}
    if name in ("Adam", "AdamW"):
        beta1, beta2 = group["betas"]
        return name.lower(), {"beta1": beta1, "beta2": beta2, **settings}
    if name == "Adagrad":
        return "adagrad", settings
    share = group["rho"] if name == "Adadelta" else group["alpha"]
    return name.lower(), {"decay": share, **settings}


def _check_groups(optimizer: torch.optim.Optimizer, mode: str) -> str:
    """The class's name, if servers have such an optimizer."""
    names = [kind.__name__ for kind in type(optimizer).__mro__]
    name = next((name for name in names if name in _FIXED), names[0])
    own = getattr(torch.optim, name, None)
    # The class whose step it takes; torch's AdamW takes that of its Adam.
    stepper = next(kind for kind in type(optimizer).__mro__ if "step" in vars(kind))
    has_own_step = not stepper.__module__.startswith("torch.optim.")
    if name not in _FIXED or own not in type(optimizer).__mro__ or has_own_step:
        raise UnsupportedError(
            f"in mode {mode} the job makes the updates, and has no {names[0]}: use {OWN_UPDATES}, "
            f"or one of {', '.join(_FIXED)}"
        )
    first = {key: value for key, value in optimizer.param_groups[0].items() if key != "params"}
    for group in optimizer.param_groups[1:]:
        for key, value in first.items():
            if group.get(key) != value:
                raise UnsupportedError(
                    f"in mode {mode} the job treats all parameters alike, and the optimizer has "
                    f"groups whose {key} differs ({value} and {group.get(key)}): use {OWN_UPDATES}"
                )
    for key, wanted in {**_FIXED[name], "maximize": False}.items():
        if first.get(key, wanted) != wanted:
            raise UnsupportedError(
                f"in mode {mode} the job makes the updates, and {name} has {key}={wanted} there, "
                f"not {first[key]}: use {OWN_UPDATES}"
            )
    return name


def _describe(optimizer: torch.optim.Optimizer, mode: str) -> tuple[str, str, dict[str, float]]:
    """The class's name, the job's name for it, and its settings; refuses what the job has not."""
    name = _check_groups(optimizer, mode)
    group = optimizer.param_groups[0]
    kind, settings = _settings_of(name, group)
    for key in ("eps", "rho", "alpha"):
        if group.get(key) == 0:
            raise UnsupportedError(
                f"in mode {mode} the job makes the updates, and its {name} has no {key}=0, which "
                f"stands for the default there: give {key} a value above 0, or use {OWN_UPDATES}"
            )
    return name, kind, settings


def _is_close(value: float, other: float) -> bool:
    return math.isclose(value, other, rel_tol=1e-6, abs_tol=1e-12)


def check(optimizer: torch.optim.Optimizer, job: JobDescription) -> None:
    """Refuses an optimizer that makes other updates than the job's servers will make."""
    mode = job.mode.decode()
    name, kind, settings = _describe(optimizer, mode)
    rate = float(optimizer.param_groups[0]["lr"])
    differs = kind != job.optimizer.decode()
    differs = differs or any(
        not _is_close(value, getattr(job, key)) for key, value in settings.items()
    )
    # With a schedule the job decides the rate; with may_set_rate the script tells it.
    is_rate_kept = not job.has_schedule and not job.may_set_rate
    differs = differs or (is_rate_kept and not _is_close(rate, job.rate))
    if differs:
        options = [f"--optimizer {kind}", f"--lr {rate!r}"]
        options += [f"--{key.replace('_', '-')} {value!r}" for key, value in settings.items()]
        raise UnsupportedError(
            f"in mode {mode} the job makes the updates, and its options differ from the "
            f"script's {name}: launch the job with {' '.join(options)}"
        )


def agree(optimizer: torch.optim.Optimizer, job: Job) -> None:
    """Gives the job the script's optimizer, or compares the two, if its options name one."""
    if job.description.optimizer == _OPEN:
        _, kind, settings = _describe(optimizer, job.mode)
        job.set_optimizer(kind, float(optimizer.param_groups[0]["lr"]), settings)
    check(optimizer, job.description)


def rate_of(optimizer: torch.optim.Optimizer, job: JobDescription) -> float:
    """The rate of all groups, as it is now."""
    rates = {float(group["lr"]) for group in optimizer.param_groups}
    if len(rates) > 1:
        raise UnsupportedError(
            f"in mode {job.mode.decode()} the job treats all parameters alike, and the groups have "
            f"the rates {', '.join(f'{rate:g}' for rate in sorted(rates))} now: use {OWN_UPDATES}"
        )
    return rates.pop()


def check_rate(rate: float, job: JobDescription) -> None:
    """Refuses a rate that servers, which keep the job's, do not have."""
    if not job.has_schedule and not _is_close(rate, job.rate):
        raise UnsupportedError(
            f"the learning rate is {rate:g} now, and servers keep the job's {job.rate:g}: give the "
            "job a schedule by --lr-schedule or --warmup-epochs, with --steps, or use --mode ring"
        )
