"""Which optimizer of the job makes the update that a torch optimizer would make.

Where the job makes the updates, its optimizer is the script's. If the job's options name one,
DistributedOptimizer compares the two, and refuses what differs.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from ringside._job import Job
from ringside._library import JobDescription, RingsideError, UnsupportedError

# By which the script makes them.
OWN_UPDATES = (
    "--mode ring, or --mode ps-sync with --server-optimizer none, without updates='job' "
    "(RINGSIDE_UPDATES)"
)

OPEN = b"auto"  # as the job's optimizer: its options leave it to the script

# Of a class of torch: settings that have to have one value, because the job knows no other.
_FIXED: dict[str, dict[str, Any]] = {
    "SGD": {"dampening": 0},
    "Adam": {"amsgrad": False},
    "AdamW": {"amsgrad": False},
    "Adagrad": {"lr_decay": 0, "initial_accumulator_value": 0},
    "Adadelta": {},
    "RMSprop": {"momentum": 0, "centered": False},
}


_Settings = dict[str, float]  # by their names in struct ringside_group


def _number(value: Any) -> float:
    return float(value)  # torch allows tensors of one value


def _kind_of(name: str, group: dict[str, Any]) -> str:
    """The job's optimizer that a group alone would have."""
    if name != "SGD":
        return name.lower()
    if _number(group["momentum"]) == 0:
        return "sgd"
    return "nesterov" if group["nesterov"] else "momentum"


def _settings_of(kind: str, group: dict[str, Any]) -> _Settings:
    """What the job's optimizer takes of a group, without its rate."""
    settings = {}
    if kind in ("momentum", "nesterov"):
        settings["momentum"] = _number(group["momentum"])
    if kind in ("adam", "adamw"):
        settings["beta1"], settings["beta2"] = map(_number, group["betas"])
    if kind in ("adadelta", "rmsprop"):
        settings["decay"] = _number(group["rho" if kind == "adadelta" else "alpha"])
    if "eps" in group:
        settings["epsilon"] = _number(group["eps"])
    settings["weight_decay"] = _number(group["weight_decay"])
    return settings


def _class_of(optimizer: torch.optim.Optimizer, mode: str) -> str:
    """The class's name, if servers have such an optimizer."""
    names = [kind.__name__ for kind in type(optimizer).__mro__]
    name = next((name for name in names if name in _FIXED), names[0])
    own = getattr(torch.optim, name, None)
    # The class whose step it takes; torch's AdamW takes that of its Adam.
    stepper = next(
        kind
        for kind in type(optimizer).__mro__
        if "step" in vars(kind) and not kind.__module__.startswith("ringside.")
    )
    has_own_step = not stepper.__module__.startswith("torch.optim.")
    if name not in _FIXED or own not in type(optimizer).__mro__ or has_own_step:
        raise UnsupportedError(
            f"in mode {mode} the job makes the updates, and has no {names[0]}: use {OWN_UPDATES}, "
            f"or one of {', '.join(_FIXED)}"
        )
    return name


def _check_group(name: str, group: dict[str, Any], mode: str) -> None:
    """Refuses settings that the job does not have."""
    for key, wanted in {**_FIXED[name], "maximize": False}.items():
        if group.get(key, wanted) != wanted:
            raise UnsupportedError(
                f"in mode {mode} the job makes the updates, and {name} has {key}={wanted} there, "
                f"not {group[key]}: use {OWN_UPDATES}"
            )
    for key in ("eps", "rho", "alpha"):
        if key in group and _number(group[key]) == 0:
            raise UnsupportedError(
                f"in mode {mode} the job makes the updates, and its {name} has no {key}=0, which "
                f"stands for the default there: give {key} a value above 0, or use {OWN_UPDATES}"
            )


def _describe(optimizer: torch.optim.Optimizer, mode: str) -> tuple[str, str]:
    """The class's name, and the job's name for it; refuses what the job has not."""
    name = _class_of(optimizer, mode)
    for group in optimizer.param_groups:
        _check_group(name, group, mode)
    kinds = {_kind_of(name, group) for group in optimizer.param_groups}
    if len(kinds) > 1:
        kinds.discard("sgd")  # which is any of the others without momentum
    if len(kinds) > 1:
        raise UnsupportedError(
            f"in mode {mode} the job has one optimizer for all groups of parameters, and some of "
            f"them have nesterov=True and others False: use {OWN_UPDATES}"
        )
    return name, kinds.pop()


def _first_rate(optimizer: torch.optim.Optimizer) -> float:
    """That of the first group that learns. A warm-up may begin at 0: then what it leads up to."""
    for group in optimizer.param_groups:
        for key in ("lr", "initial_lr"):
            if _number(group.get(key, 0)) > 0:
                return _number(group[key])
    return 0.0


def _text(value: float) -> str:
    return repr(int(value) if value.is_integer() else value)


def _is_close(value: float, other: float) -> bool:
    return math.isclose(value, other, rel_tol=1e-6, abs_tol=1e-12)


def check(optimizer: torch.optim.Optimizer, job: JobDescription) -> None:
    """Refuses an optimizer that makes other updates than the job's servers will make."""
    mode = job.mode.decode()
    name, kind = _describe(optimizer, mode)
    settings = _settings_of(kind, optimizer.param_groups[0])
    rate = _first_rate(optimizer)
    differs = kind != job.optimizer.decode()
    differs = differs or any(
        not _is_close(value, getattr(job, key)) for key, value in settings.items()
    )
    # With a schedule the job decides the rate; without servers the script tells it, whatever it is.
    is_rate_kept = not job.has_schedule and (job.servers_update or not job.may_set_rate)
    differs = differs or (is_rate_kept and not _is_close(rate, job.rate))
    if differs:
        options = [f"--optimizer {kind}", f"--lr {rate!r}"]
        options += [f"--{key.replace('_', '-')} {_text(value)}" for key, value in settings.items()]
        raise UnsupportedError(
            f"in mode {mode} the job makes the updates, and its options differ from the "
            f"script's {name}: launch the job with {' '.join(options)}"
        )


def agree(optimizer: torch.optim.Optimizer, job: Job) -> None:
    """Gives the job the script's optimizer, or compares the two, if its options name one."""
    if job.description.optimizer == OPEN:
        say(optimizer, job)
    check(optimizer, job.description)


def say(optimizer: torch.optim.Optimizer, job: Job) -> None:
    """Gives the job the script's optimizer, with its settings of now."""
    _, kind = _describe(optimizer, job.mode)
    settings = _settings_of(kind, optimizer.param_groups[0])
    job.set_optimizer(kind, _first_rate(optimizer), settings)


class GroupSettings:
    """The settings of the script's groups of parameters, as the job has them.

    What a scheduler changes travels with the gradients that are computed next. The job's own
    schedule, if it has one, rules over the rates.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, job: Job, parameters: list[torch.Tensor]):
        """After agree(), when the job knows the tensors: `parameters`, in their order."""
        self._optimizer, self._job = optimizer, job
        self._kind = job.description.optimizer.decode()
        self._count = len(optimizer.param_groups)
        self._told = self._read()  # that the job works with
        if self._count > 1:
            group_of = {
                id(parameter): index
                for index, group in enumerate(optimizer.param_groups)
                for parameter in group["params"]
            }
            rows = [
                {**row, "rate": _number(group["lr"])}
                for row, group in zip(self._told, optimizer.param_groups)
            ]
            job.set_groups(rows, [group_of[id(parameter)] for parameter in parameters])
        elif not job.description.has_schedule:
            rate = _number(optimizer.param_groups[0]["lr"])
            if not _is_close(rate, job.description.rate):
                self._told[0]["rate"] = job.description.rate

    def _read(self) -> list[_Settings]:
        groups = self._optimizer.param_groups[: self._count]  # others have nothing that learns
        if len(groups) < self._count:
            raise RingsideError(
                f"the optimizer had {self._count} groups of parameters, and has {len(groups)} now"
            )
        rows = []
        for group in groups:
            rate = -1.0 if self._job.description.has_schedule else _number(group["lr"])
            row = {"rate": rate, **_settings_of(self._kind, group)}
            if self._kind == "sgd":
                row["momentum"] = _number(group["momentum"])  # it has none, unless that changes
            rows.append(row)
        return rows

    def tell(self) -> None:
        """Before gradients are computed: what has changed since the last step."""
        rows = self._read()
        if rows != self._told:
            _, kind = _describe(self._optimizer, self._job.mode)
            if kind not in (self._kind, "sgd"):
                raise UnsupportedError(
                    f"in mode {self._job.mode} the job makes the updates, by {self._kind} from the "
                    f"first step on, and the script's optimizer is {kind} now: use {OWN_UPDATES}"
                )
            self._job.change_groups(rows)
            self._told = rows

    def check_unchanged(self) -> None:
        """In step(): gradients have left with the settings that were when they were computed."""
        for index, (told, row) in enumerate(zip(self._told, self._read())):
            for key, value in row.items():
                if value != told[key]:
                    raise RingsideError(
                        f"the {'learning rate' if key == 'rate' else key} of group {index} was "
                        f"changed from {told[key]:g} to {value:g} between backward() and step(), "
                        "when gradients were on their way: change it before backward(), or use "
                        f"{OWN_UPDATES}"
                    )
