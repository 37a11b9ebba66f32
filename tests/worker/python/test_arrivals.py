"""Which parameters that are under way a script waits for, by what it does: ringside.torch.arrivals."""

from __future__ import annotations

import copy
import io
import pickle
import threading
from types import SimpleNamespace
from typing import Any, Callable

import pytest
import torch
from ringside import _library
from ringside._library import RingsideError
from ringside.torch.arrivals import Arrivals
from torch import nn

ALL = _library.ALL


class Way:
    """A model whose parameters are under way, and come when they are waited for: all become 2."""

    def __init__(self, model: nn.Module, *more: torch.Tensor):
        self.parameters = [*model.parameters(), *more]
        self.kinds = [type(parameter) for parameter in self.parameters]
        self.waited: list[int] = []  # for which, in order
        self.fails = False
        vectors: Any = SimpleNamespace(slots=[SimpleNamespace(parameter=p) for p in self.parameters],
                                       give_parameter=lambda index: None)
        self.arrivals = Arrivals(self, vectors)  # type: ignore[arg-type]
        self.arrivals.expect()

    def call(self, name: str, index: int) -> None:
        assert name == "await"
        self.waited.append(index)
        if self.fails:
            raise RingsideError("worker 1 is lost")
        with torch._C.DisableTorchFunction(), torch.no_grad():
            for place, parameter in enumerate(self.parameters):
                if index in (place, ALL):
                    parameter.fill_(2)

    def expect_own_classes(self) -> None:
        assert [type(parameter) for parameter in self.parameters] == self.kinds
        assert not nn.modules.module._global_forward_pre_hooks


@pytest.fixture(autouse=True)
def _no_hook_stays() -> Any:
    yield
    nn.modules.module._global_forward_pre_hooks.clear()


def test_forward_waits_in_the_order_of_need() -> None:
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Flatten(), nn.Linear(18, 3))
    way = Way(model)
    result = model(torch.ones(1, 1, 5, 5).repeat(2, 1, 1, 1))
    assert way.waited == [0, 1, 2, 3, 4, 5] and result.sub(74).abs().max() < 0.01
    way.expect_own_classes()
    result.sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_parameters_without_a_module_are_waited_for_too() -> None:
    weight, scale = nn.Parameter(torch.ones(3, 3)), torch.ones(3, requires_grad=True)
    way = Way(nn.Linear(1, 1), weight, scale)
    result = nn.functional.layer_norm(torch.eye(3) @ weight, [3], weight=scale)  # by its keyword
    assert way.waited == [2, 3] and result.shape == (3, 3)
    assert type(weight) is nn.Parameter and type(scale) is torch.Tensor
    assert float(torch.stack(list(way.parameters[:1])).sum()) == 2 and way.waited == [2, 3, 0]


USES: dict[str, Callable[[nn.Linear], Any]] = {
    "state_dict": lambda model: model.state_dict()["weight"],
    "data": lambda model: model.weight.data,
    "detach": lambda model: model.weight.detach().numpy(),
    "pointer": lambda model: model.weight.data_ptr() and model.weight,
    "print": lambda model: str(model.weight).count("2.") and model.weight,
    "deepcopy": lambda model: copy.deepcopy(model).weight,
    "copy": lambda model: copy.copy(model.weight),
    "another": lambda model: type(model.weight)(torch.full([2, 3], 2.0)),
    "parameter": lambda model: nn.Parameter(model.weight),
    "pickle": lambda model: pickle.loads(pickle.dumps(model.weight)),
    "save": lambda model: torch.save(model, io.BytesIO()) or model.weight,
    "vector": lambda model: nn.utils.parameters_to_vector(model.parameters()),
    "norm": lambda model: nn.utils.clip_grad_norm_(model.parameters(), 1.0) * 0 + model.weight,
    "item": lambda model: torch.tensor(model.weight[0, 0].item()),
    "compare": lambda model: (model.weight == 2) * 2,
    "iterate": lambda model: torch.stack(list(model.weight)),
    "list": lambda model: torch.tensor(model.weight.tolist()),
    "clone": lambda model: [parameter.clone() for parameter in model.parameters()][0],
    "deep": lambda model: torch.einsum("ij->ij", [model.weight]),
    "to": lambda model: model.to(torch.float64).weight,
    "version": lambda model: model.weight._version + 1 and model.weight,
    "load": lambda model: model.load_state_dict(model.state_dict()) and model.weight,
    "init": lambda model: nn.init.constant_(model.weight, 2.0),
}


@pytest.mark.parametrize("use", USES)
def test_whatever_reads_a_parameter_waits_for_it(use: str) -> None:
    model = nn.Linear(3, 2)
    way = Way(model)
    read = torch.as_tensor(USES[use](model))
    assert torch.equal(read.float(), torch.full_like(read, 2.0).float()), use
    way.arrivals.settle()
    way.expect_own_classes()
    assert type(read) in (torch.Tensor, nn.Parameter)


@pytest.mark.parametrize("wants", [True, False])
def test_a_new_parameter_of_one_that_is_under_way_shares_its_memory(wants: bool) -> None:
    model = nn.Linear(3, 2)
    way = Way(model)
    tied = nn.Parameter(model.weight, requires_grad=wants)
    assert way.waited == [0] and type(tied) is nn.Parameter and tied is not model.weight
    assert tied.requires_grad == wants and tied.is_leaf and tied.data_ptr() == model.weight.data_ptr()
    assert type(model.bias.detach()) is torch.Tensor
    way.expect_own_classes()


def test_what_says_nothing_of_values_waits_for_nothing() -> None:
    model = nn.Linear(3, 2)
    way = Way(model)
    assert (model.weight.shape, model.weight.numel(), model.weight.size(0)) == ((2, 3), 6, 2)
    assert isinstance(model.weight, nn.Parameter) and model.weight.requires_grad
    assert type(model.weight).__name__ == "Parameter" and model.weight in {model.weight: 1}
    model.zero_grad()
    model.weight.grad = None
    model.train()
    assert not way.waited
    way.arrivals.settle()
    assert way.waited == [ALL]
    way.expect_own_classes()


def test_modules_whose_forward_is_not_pythons_wait_for_all_they_have() -> None:
    scripted = torch.jit.script(nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2)))
    model = nn.ModuleList([nn.Linear(3, 3), scripted])
    way = Way(model)
    assert float(scripted(torch.ones(1, 3))[0, 0]) == 50 and way.waited == [2, 3, 4, 5]
    assert float(model[0](torch.ones(1, 3))[0, 0]) == 8
    way.expect_own_classes()


def test_an_evaluation_is_as_without_parameters_under_way() -> None:
    """Attention has a fast way, which it takes for parameters of PyTorch's own classes."""
    model = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True).eval()
    way = Way(model)
    with torch.no_grad():
        model(torch.ones(1, 2, 4))
    assert way.waited == list(range(len(way.parameters)))
    way.expect_own_classes()


def test_lists_of_parameters_that_modules_keep_are_waited_for() -> None:
    model = nn.LSTM(3, 4)
    way = Way(model)
    model(torch.ones(2, 1, 3))
    assert way.waited == [0, 1, 2, 3]
    way.expect_own_classes()


def test_a_wait_that_fails_is_told_once() -> None:
    model = nn.Linear(3, 2)
    way = Way(model)
    way.fails = True
    with pytest.raises(RingsideError, match="worker 1 is lost"):
        model(torch.ones(1, 3))
    way.expect_own_classes()
    model.load_state_dict(model.state_dict())  # as after a loss
    assert way.waited == [0]


def test_threads_wait_for_what_another_waits_for() -> None:
    model = nn.Linear(3, 2)
    way = Way(model)
    call, entered, may_go = way.call, threading.Event(), threading.Event()

    def slow(name: str, index: int) -> None:
        entered.set()
        may_go.wait()
        call(name, index)

    way.call = slow  # type: ignore[method-assign]
    read: list[float] = []
    threads = [threading.Thread(target=lambda: read.append(float(model.weight.sum()))) for _ in range(3)]
    for thread in threads:
        thread.start()
    entered.wait()
    may_go.set()
    for thread in threads:
        thread.join()
    assert read == [12, 12, 12] and way.waited == [0]


def test_parameters_of_other_classes_are_waited_for_at_once() -> None:
    class Own(nn.Parameter):
        pass

    own = Own(torch.ones(2))
    way = Way(nn.Linear(3, 2), own)
    assert way.waited == [2] and type(own) is Own
