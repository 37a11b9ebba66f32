"""Lets step() return before the new parameters are there, and waits for each when it is needed.

How PyTorch lets us. While a parameter is under way it is of a class whose __torch_function__ waits
for it. PyTorch calls that before any function, method or attribute of its own gets the parameter,
wherever the script uses it: in forward, state_dict(), copies, evaluation. Forward thereby waits in
the order of need. A parameter that has come is of its own class again, and costs nothing more.

Compiled code does not ask: TorchScript, and extensions in C++. So while something is under way a
hook before each module's forward waits for what the module has.

Nothing waits where the script reads memory that it has held since before step(): `p.data`,
`p.detach()`, a state_dict() or an array of NumPy. That is why this is an option.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable
from typing import Any

import torch
from torch.nn.modules.module import register_module_forward_pre_hook

from ringside import _library
from ringside._job import Job
from ringside._library import RingsideError
from ringside.torch.flat import FlatVectors

# Within it, PyTorch asks no __torch_function__ of a class (in 1.x and 2.x).
_unguarded: Any = (
    getattr(torch._C, "DisableTorchFunctionSubclass", None) or torch._C.DisableTorchFunction
)

_GUARDED = (torch.Tensor, torch.nn.Parameter)  # classes whose place another one can take

# What says nothing of values. Gradients are others from here on: step() has left none.
_HARMLESS = {
    torch.Tensor.numel,
    torch.Tensor.size,
    *(
        getattr(getattr(torch.Tensor, name), way)
        for name, way in (
            ("device", "__get__"),
            ("dtype", "__get__"),
            ("grad", "__get__"),
            ("grad", "__set__"),
            ("is_leaf", "__get__"),
            ("ndim", "__get__"),
            ("requires_grad", "__get__"),
            ("requires_grad", "__set__"),
            ("shape", "__get__"),
        )
    ),
}


# nn.Parameter(tensor) asks a tensor of an unknown class to detach() to one of its own class.
_NEW_PARAMETER = getattr(torch.nn.Parameter.__new__, "__code__", None)

_COMPILED = (torch.jit.ScriptModule, torch.nn.DataParallel)  # forward is not Python's


def _tensors_in(values: Iterable[Any]) -> Iterable[Any]:
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from _tensors_in(value)
        else:
            yield value


class Arrivals:
    """The parameters of a step that are under way."""

    def __init__(self, job: Job, vectors: FlatVectors):
        self._job, self._vectors = job, vectors
        self._lock = threading.RLock()
        self._own = {id(slot.parameter) for slot in vectors.slots}
        self._waiting: dict[int, int] = {}  # indices, by the ids of the parameters
        self._classes = {kind: self._guard(kind) for kind in _GUARDED}
        self._hook: Any = None

    def _guard(self, kind: type) -> type:
        """A class in the place of `kind`."""
        arrivals = self

        def __torch_function__(
            cls: type, function: Any, types: Any, arguments: Any = (), keywords: Any = None
        ) -> Any:
            keywords = keywords or {}
            if function in _HARMLESS:
                with _unguarded():
                    return function(*arguments, **keywords)
            arrivals._take_among([*arguments, *keywords.values()])
            result = function(*arguments, **keywords)
            detaches = function is torch.Tensor.detach and type(arguments[0]) is torch.nn.Parameter
            if detaches and sys._getframe(1).f_code is _NEW_PARAMETER:
                return torch.Tensor._make_subclass(torch.nn.Parameter, result)
            return result

        def __deepcopy__(self: torch.Tensor, memo: dict[int, Any]) -> torch.Tensor:
            arrivals._take_among([self])
            return self.__deepcopy__(memo)  # of its own class now

        def __new__(cls: type, *arguments: Any, **keywords: Any) -> Any:
            return kind(*arguments, **keywords)  # of code that makes another like it

        return type(kind)(
            kind.__name__,
            (kind,),
            {
                "__torch_function__": classmethod(__torch_function__),
                "__deepcopy__": __deepcopy__,
                "__new__": __new__,
                "__module__": kind.__module__,
            },
        )

    def expect(self) -> None:
        """All parameters are under way."""
        with self._lock:
            for index, slot in enumerate(self._vectors.slots):
                self._waiting[id(slot.parameter)] = index
                guard = self._classes.get(type(slot.parameter))
                if guard is None:
                    self._take(index)
                else:
                    slot.parameter.__class__ = guard
            if self._waiting and self._hook is None:
                self._hook = register_module_forward_pre_hook(self._before_forward)

    def settle(self) -> None:
        """Waits for all."""
        with self._lock:
            if self._waiting:
                self._wait(_library.ALL)
                for index in list(self._waiting.values()):
                    self._release(index)

    def give_up(self) -> None:
        """Nobody waits any more: the job goes on from other parameters, or has ended."""
        with self._lock:
            for index in list(self._waiting.values()):
                self._drop(index)

    def _take_among(self, values: Iterable[Any]) -> None:
        """Waits for those that a function is called with."""
        with self._lock:
            own = [id(value) for value in _tensors_in(values) if id(value) in self._own]
            for key in own:
                if key in self._waiting:  # no other thread has waited for it meanwhile
                    self._take(self._waiting[key])
            if not own:
                self.settle()  # they are somewhere deeper

    def _take(self, index: int) -> None:
        with self._lock:
            if id(self._vectors.slots[index].parameter) in self._waiting:
                self._wait(index)
                self._release(index)

    def _wait(self, index: int) -> None:
        try:
            self._job.call("await", index)
        except RingsideError:
            self.give_up()  # as step() leaves them when it fails
            raise

    def _release(self, index: int) -> None:
        """It has come."""
        with _unguarded():
            self._vectors.give_parameter(index)
        self._drop(index)

    def _drop(self, index: int) -> None:
        parameter = self._vectors.slots[index].parameter
        for kind, guard in self._classes.items():
            if type(parameter) is guard:
                parameter.__class__ = kind
        self._waiting.pop(id(parameter), None)
        if not self._waiting and self._hook is not None:
            self._hook.remove()
            self._hook = None

    def _before_forward(self, module: torch.nn.Module, _: Any) -> None:
        """Waits for what a module has: where it cannot be seen what forward reads, or PyTorch may
        choose another way for parameters of an unknown class, with all modules in it."""
        if hasattr(module, "_orig_mod"):  # of torch.compile, whose code looks at hooks
            self.settle()
            return
        is_whole = isinstance(module, _COMPILED) or not module.training
        for parameter in module.parameters() if is_whole else module._parameters.values():
            index = self._waiting.get(id(parameter))
            if index is not None:
                self._take(index)
