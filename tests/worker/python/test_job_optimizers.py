"""Which optimizers of torch the job's options can stand for."""

from __future__ import annotations

from typing import cast

import pytest
import torch
from ringside import UnsupportedError
from ringside._job import Job
from ringside._library import JobDescription
from ringside.torch import job_optimizers


def job(optimizer: str, rate: float, **settings: float) -> JobDescription:
    return JobDescription(mode=b"ps-sync", servers_update=True, optimizer=optimizer.encode(), rate=rate, **settings)


def parameters() -> list[torch.nn.Parameter]:
    return [torch.nn.Parameter(torch.zeros(2)), torch.nn.Parameter(torch.zeros(3))]


SAME = [
    (torch.optim.SGD, {"lr": 0.1}, job("sgd", 0.1)),
    (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9}, job("momentum", 0.1, momentum=0.9)),
    (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True},
     job("nesterov", 0.1, momentum=0.9)),
    (torch.optim.Adam, {"betas": (0.8, 0.99), "eps": 1e-7},
     job("adam", 0.001, beta1=0.8, beta2=0.99, epsilon=1e-7)),
    (torch.optim.AdamW, {}, job("adamw", 0.001, beta1=0.9, beta2=0.999, epsilon=1e-8,
                                weight_decay=0.01)),
    (torch.optim.Adagrad, {}, job("adagrad", 0.01, epsilon=1e-10)),
    (torch.optim.Adadelta, {}, job("adadelta", 1.0, decay=0.9, epsilon=1e-6)),
    (torch.optim.RMSprop, {}, job("rmsprop", 0.01, decay=0.99, epsilon=1e-8)),
]


@pytest.mark.parametrize(("kind", "settings", "description"), SAME)
def test_the_same_optimizer_is_taken(kind: type, settings: dict[str, object],
                                     description: JobDescription) -> None:
    job_optimizers.check(kind(parameters(), **settings), description)


@pytest.mark.parametrize(("kind", "settings", "description"), SAME)
def test_each_setting_that_differs_is_refused(kind: type, settings: dict[str, object],
                                              description: JobDescription) -> None:
    optimizer = kind(parameters(), **settings)
    names = ["rate", "weight_decay"]
    names += [name for name in ("momentum", "beta1", "beta2", "decay", "epsilon")
              if getattr(description, name) > 0]
    for name in names:
        value = getattr(description, name)
        setattr(description, name, value * 1.01 + 1e-3)
        with pytest.raises(UnsupportedError, match="launch the job with --optimizer "):
            job_optimizers.check(optimizer, description)
        setattr(description, name, value)
    job_optimizers.check(optimizer, description)


@pytest.mark.parametrize(("optimizer", "sentence"), [
    (torch.optim.Rprop(parameters()), "has no Rprop"),
    (type("Signs", (torch.optim.SGD,), {"step": lambda self: None})(parameters(), lr=0.1),
     "has no Signs"),
    (torch.optim.SGD(parameters(), lr=0.1, momentum=0.9, dampening=0.5), "dampening=0 there"),
    (torch.optim.Adam(parameters(), amsgrad=True), "amsgrad=False there"),
    (torch.optim.RMSprop(parameters(), momentum=0.5), "momentum=0 there"),
    (torch.optim.SGD(parameters(), lr=0.1, maximize=True), "maximize=False there"),
    (torch.optim.SGD([{"params": parameters(), "nesterov": True}, {"params": parameters()}],
                     lr=0.1, momentum=0.9), "some of them have nesterov=True and others False"),
])
def test_what_the_job_does_not_have_is_named(optimizer: torch.optim.Optimizer,
                                             sentence: str) -> None:
    with pytest.raises(UnsupportedError, match=sentence):
        job_optimizers.check(optimizer, job("sgd", 0.1))


class OpenJob:
    """A job whose options leave the optimizer to the script."""

    mode = "ps-sync"
    description = job("auto", 0.0)

    def set_optimizer(self, *said: object) -> None:
        pytest.fail(f"the job was told {said}")


@pytest.mark.parametrize(("kind", "settings", "sentence"), [
    (torch.optim.Adam, {"eps": 0}, "its Adam has no eps=0, which stands for the default"),
    (torch.optim.Adadelta, {"rho": 0}, "its Adadelta has no rho=0"),
    (torch.optim.RMSprop, {"alpha": 0}, "its RMSprop has no alpha=0"),
])
def test_a_zero_that_means_the_default_is_refused_first(
    kind: type, settings: dict[str, float], sentence: str
) -> None:
    with pytest.raises(UnsupportedError, match=sentence):
        job_optimizers.agree(kind(parameters(), **settings), cast(Job, OpenJob()))


def test_a_schedule_of_the_job_rules_over_the_rate() -> None:
    description = job("sgd", 0.001, has_schedule=True)
    job_optimizers.check(torch.optim.SGD(parameters(), lr=0.1), description)


def test_a_warm_up_from_0_has_the_rate_that_it_leads_up_to() -> None:
    optimizer = torch.optim.SGD(parameters(), lr=0.1)
    torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: step / 5)
    assert optimizer.param_groups[0]["lr"] == 0
    job_optimizers.check(optimizer, job("sgd", 0.1))
