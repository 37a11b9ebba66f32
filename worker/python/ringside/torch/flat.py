"""A model's parameters and gradients in the two flat vectors of libringside.

A parameter of 32-bit floats on the host becomes a view of the vectors, and so does its gradient,
into which autograd's is copied once. A parameter of 16 bits has copies there, and so has one on a
GPU, whose copies nobody waits for before they are needed.
"""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

import torch

from ringside._job import Job
from ringside._library import RingsideError, UnsupportedError
from ringside.torch import device_copies
from ringside.torch.device_copies import DeviceCopies

_COPIED = (torch.float16, torch.bfloat16)  # exchanged as float32


def _is_dense(tensor: torch.Tensor) -> bool:
    """Whether its values lie without gaps, in whatever order of dimensions (channels_last, too)."""
    pairs = sorted(zip(tensor.stride(), tensor.shape))
    expected = 1
    for stride, length in pairs:
        if length == 1:
            continue
        if stride != expected:
            return False
        expected *= length
    return True


def _check(name: str, parameter: torch.Tensor) -> None:
    if parameter.is_sparse:
        raise UnsupportedError(f"the parameter {name} is sparse, and gradients travel dense")
    if parameter.numel() == 0:
        raise UnsupportedError(f"the parameter {name} has no values: leave it out of the optimizer")
    if parameter.dtype != torch.float32 and parameter.dtype not in _COPIED:
        raise UnsupportedError(
            f"the parameter {name} is {parameter.dtype}, and gradients travel as float32: use "
            "model.float()"
        )
    if not _is_dense(parameter):
        raise UnsupportedError(
            f"the parameter {name} has gaps or overlaps (strides {tuple(parameter.stride())}): "
            "make it contiguous"
        )


def _describe(name: str, parameter: torch.Tensor) -> bytes:
    """What has to be alike in all processes: the name, the shape, and an unusual order."""
    text = f"{name} {list(parameter.shape)}"
    if not parameter.is_contiguous():
        text += f" strides {list(parameter.stride())}"
    return text.encode()


class _Slot:
    """The part of the vectors that a parameter has."""

    def __init__(self, name: str, parameter: torch.Tensor):
        self.name, self.parameter = name, parameter
        self.is_on_device = device_copies.is_on_device(parameter)
        self.is_view = parameter.dtype == torch.float32 and not self.is_on_device
        self.dtype = parameter.dtype
        self.values = self.gradient = torch.empty(0)  # by FlatVectors
        self.place = 0  # of the values, in memory
        self.given = torch.empty(0)  # bits of a copy, as the job has last given them
        self.given_version = 0  # of a copy on a GPU: how often PyTorch had seen it written then
        self.sent = -1  # the version of the parameter's gradient when it was sent; -1: it has none

    def move_to(self, params: torch.Tensor, grads: torch.Tensor, offset: int) -> None:
        """Takes its part of the vectors, with the parameter's values."""
        shape, strides = self.parameter.shape, self.parameter.stride()
        with torch.no_grad():
            self.values = params.as_strided(shape, strides, offset)
            self.gradient = grads.as_strided(shape, strides, offset)
            self.values.copy_(self.parameter)
            self.place = self.values.data_ptr()
            if self.is_view:
                self.parameter.data = self.values

    def copy_in(self) -> None:
        """The vector has the parameter's values, wherever the script has them."""
        if not self.is_view:
            self.values.copy_(self.parameter)
        elif self.parameter.data_ptr() != self.place:
            self.values.copy_(self.parameter)  # the script has replaced .data
            self.parameter.data = self.values

    def note_given(self) -> None:
        """A copy is as the job knows it."""
        self.given_version = self.parameter._version
        if not self.is_on_device:
            self.given = self.parameter.detach().view(torch.int16).clone()

    def is_written(self) -> bool:
        """Whether the script has written a copy since then."""
        if self.is_on_device:  # to compare values would wait for the GPU
            return bool(self.parameter._version != self.given_version)
        return not torch.equal(self.parameter.detach().view(torch.int16), self.given)


class FlatVectors:
    """The vectors of a job whose tensors are these parameters, in their order."""

    def __init__(self, job: Job, parameters: list[tuple[str, torch.Tensor]]):
        self._job = job
        self.slots = [_Slot(name, parameter) for name, parameter in parameters]
        names: dict[int, str] = {}
        for slot in self.slots:
            _check(slot.name, slot.parameter)
            other = names.setdefault(slot.parameter.data_ptr(), slot.name)
            if other != slot.name:
                raise UnsupportedError(
                    f"the parameters {other} and {slot.name} share their memory: make them one "
                    "torch.nn.Parameter"
                )
        job.describe(
            [(_describe(slot.name, slot.parameter), slot.parameter.numel()) for slot in self.slots]
        )
        self._places = (job.call_raw("params"), job.call_raw("grads"))
        count = sum(slot.parameter.numel() for slot in self.slots)
        self._params = self._vector("params", count)
        self._grads = self._vector("grads", count)
        for index, slot in enumerate(self.slots):
            slot.move_to(self._params, self._grads, int(job.call_raw("offset", index)))
        self._has_copies = any(not slot.is_view for slot in self.slots)
        self._copies = DeviceCopies()
        self._on_device = [slot for slot in self.slots if slot.is_on_device]
        self.coming: deque[tuple[int, Any, float]] = deque()  # gradients that are being copied
        if self._on_device:
            self._copies.lock(self._params)
            self._copies.lock(self._grads)

    def _vector(self, name: str, count: int) -> torch.Tensor:
        memory = (ctypes.c_float * count).from_address(self._job.call_raw(name))
        return torch.frombuffer(memory, dtype=torch.float32)

    @property
    def needs_lock(self) -> bool:
        """Whether hooks may run in several threads at once: autograd has one for each device."""
        return len({slot.parameter.device for slot in self.slots}) > 1

    def copy_in_parameters(self) -> None:
        """The vector has the parameters' values."""
        self.settle()
        with torch.no_grad():
            for slot in self.slots:
                slot.copy_in()

    def follow_parameters(self) -> None:
        """The script has made an update. Those on a GPU are only needed at the job's end, which has
        a digest of them."""
        if self._on_device:
            self._job.before_leave = self.copy_in_parameters
        for slot in self.slots:
            # Those in their place need nothing, and are most of them.
            if slot.is_view and slot.parameter.data_ptr() == slot.place:
                continue
            if not slot.is_on_device:
                with torch.no_grad():
                    slot.copy_in()

    def settle(self) -> None:
        """From here on the vectors may be written."""
        if self._on_device:
            self._copies.settle()

    def check_places(self) -> None:
        """Refuses what moves memory away from the vectors, or changes a parameter's type."""
        if (self._params.data_ptr(), self._grads.data_ptr()) != self._places:
            raise RingsideError(
                "the model's memory has moved, as share_memory() and queues of "
                "torch.multiprocessing do: give them a copy of the model"
            )
        for slot in self.slots:
            if slot.parameter.dtype != slot.dtype:
                raise RingsideError(
                    f"the parameter {slot.name} was {slot.dtype} in DistributedOptimizer, and is "
                    f"{slot.parameter.dtype} now: convert the model before"
                )

    def take_gradient(self, index: int, factor: float, keeps_none: bool) -> bool:
        """Copies the gradient, times factor, into the vector. A parameter without one gets zeros
        there, and in `.grad` unless keeps_none. False: the copy goes on; see come_gradients."""
        # Without no_grad(), which costs more than the rest: only create_graph gives gradients that
        # want gradients.
        slot = self.slots[index]
        gradient = slot.parameter.grad
        if gradient is not None and gradient.requires_grad:
            gradient = gradient.detach()
        if slot.is_on_device and gradient is not None and not gradient.is_sparse:
            event = self._copies.take(slot.gradient, gradient)
            self.coming.append((index, event, factor))
            slot.sent = gradient._version
            return False
        if gradient is None:
            slot.gradient.zero_()
        elif gradient.is_sparse:
            raise UnsupportedError(
                f"the gradient of {slot.name} is sparse: use torch.nn.Embedding(sparse=False)"
            )
        elif gradient.data_ptr() != slot.gradient.data_ptr() or not slot.is_view:
            slot.gradient.copy_(gradient)
        if factor != 1.0:
            slot.gradient.mul_(factor)
        has_gradient = gradient is not None or (slot.parameter.requires_grad and not keeps_none)
        if slot.is_view and has_gradient:
            slot.parameter.grad = slot.gradient.data  # with a version of its own
        gradient = slot.parameter.grad
        slot.sent = -1 if gradient is None else gradient._version
        return True

    def come_gradients(self, waits: bool) -> Iterator[int]:
        """Those whose copies have come, in their order. With waits: all."""
        while self.coming:
            index, event, factor = self.coming[0]
            if waits:
                event.synchronize()
            elif not event.query():
                return
            self.coming.popleft()
            if factor != 1.0:
                self.slots[index].gradient.mul_(factor)
            yield index

    def forget_gradients(self) -> None:
        """Those of a step that is over, or is not made."""
        for slot in self.slots:
            slot.parameter.grad = None
            slot.sent = -1

    def find_changed(self) -> str:
        """The name of a parameter whose gradient was written after it was sent; "" if none was."""
        for slot in self.slots:
            gradient = slot.parameter.grad
            if (-1 if gradient is None else gradient._version) != slot.sent:
                return slot.name
        return ""

    def give_gradients(self, factor: float) -> None:
        """The parameters' gradients are what the vector has, times factor."""
        with torch.no_grad():
            if factor != 1.0:
                self._grads.mul_(factor)
            for slot in self.slots if self._has_copies else ():
                if not slot.is_view and slot.parameter.requires_grad:
                    if slot.parameter.grad is None:
                        slot.parameter.grad = torch.empty_like(slot.parameter)
                    self._give(slot, slot.parameter.grad, slot.gradient)
            self._copies.end_giving()

    def _give(self, slot: _Slot, target: torch.Tensor, source: torch.Tensor) -> None:
        if slot.is_on_device:
            self._copies.give(target, source)
        else:
            target.copy_(source)

    def give_parameters(self) -> None:
        """Copies have what servers have made."""
        with torch.no_grad():
            for slot in self.slots if self._has_copies else ():
                self._give_parameter(slot)
            self._copies.end_giving()

    def give_parameter(self, index: int) -> None:
        """The same for one."""
        if self._has_copies:
            with torch.no_grad():
                self._give_parameter(self.slots[index])
                self._copies.end_giving()

    def _give_parameter(self, slot: _Slot) -> None:
        if not slot.is_view:
            self._give(slot, slot.parameter, slot.values)
            slot.note_given()

    def note_given(self) -> None:
        """Copies are as the job knows them."""
        for slot in self.slots if self._has_copies else ():
            if not slot.is_view:
                slot.note_given()

    def find_written(self) -> str:
        """The name of a parameter that the script has written since the job has given it, where
        the library does not see it: a copy, or memory of its own. On a GPU, what goes through
        `.data` is not seen. "" if there is none."""
        for slot in self.slots:
            # Without a call for views, which are most of them.
            has_left = slot.is_view and slot.parameter.data_ptr() != slot.place
            if has_left or (not slot.is_view and slot.is_written()):
                return slot.name
        return ""


def name_parameters(
    optimizer: torch.optim.Optimizer, named: Iterable[tuple[str, torch.Tensor]] | None
) -> list[tuple[str, torch.Tensor]]:
    """The optimizer's parameters that want gradients: in the order of their names, as forward uses
    them, or of the optimizer."""
    own = [p for group in optimizer.param_groups for p in group["params"]]
    if named is None:
        pairs = [(f"parameter.{i}", p) for i, p in enumerate(own)]
    else:
        pairs = list(named)
        if any(not isinstance(p, torch.Tensor) for _, p in pairs):
            raise ValueError("named_parameters is what model.named_parameters() returns")
        named_ids = {id(p) for _, p in pairs}
        missing = [i for i, p in enumerate(own) if id(p) not in named_ids]
        if missing:
            raise ValueError(
                f"named_parameters lacks {len(missing)} of the optimizer's {len(own)} parameters, "
                f"of which number {missing[0]} is the first"
            )
        repeated = len(pairs) - len({name for name, _ in pairs})
        if repeated:
            raise ValueError("named_parameters has one name more than once")
    own_ids = {id(p) for p in own}
    seen: set[int] = set()
    result = []
    for name, parameter in pairs:
        if id(parameter) in own_ids and id(parameter) not in seen and parameter.requires_grad:
            seen.add(id(parameter))
            result.append((name, parameter))
    if not result:
        raise ValueError("the optimizer has no parameter that wants a gradient")
    return result
