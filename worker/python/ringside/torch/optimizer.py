"""DistributedOptimizer: a torch optimizer whose step takes the gradients of all processes.

Each parameter's gradient travels while backward computes the next ones. step() waits for them. In
ring, and in ps-sync with --server-optimizer none, the script's own optimizer then makes the update,
from their mean; in the ps modes servers make it, and step() brings the new parameters. With
updates="job", or RINGSIDE_UPDATES=job, the job's optimizer makes it in ring, too: then ring and
ps-sync end with the same bits. overlap_forward lets the next forward wait for the parameters in the
place of step() (arrivals.py).

zero_grad() sets gradients to None, whatever set_to_none says: the next backward writes them anew.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Callable

import torch

from ringside import _job, _library
from ringside._library import RingsideError, UnsupportedError
from ringside.torch import compression as compressions
from ringside.torch import job_optimizers
from ringside.torch.arrivals import Arrivals
from ringside.torch.collectives import Average, ReduceOp, Sum
from ringside.torch.compression import Compression, Compressor
from ringside.torch.flat import FlatVectors, name_parameters
from ringside.torch.job_optimizers import OWN_UPDATES


class Exchange:
    """The steps of a job, driven by the hooks of parameters and by the optimizer's calls."""

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        parameters: list[tuple[str, torch.Tensor]],
        passes: int,
        find_factors: Callable[[], tuple[float, float]],
        makes_updates: bool,
        overlaps: bool,
    ):
        self._job = _job.current()
        self._optimizer = optimizer
        self.passes_per_step = passes
        self._find_factors = find_factors
        self._before, self._after = find_factors()  # of gradients, around the exchange
        self.makes_updates = makes_updates  # the script's optimizer does
        self._says_optimizer = self._job.description.optimizer == job_optimizers.OPEN
        if not self.makes_updates:
            job_optimizers.agree(optimizer, self._job)
        self._vectors = FlatVectors(self._job, parameters)
        self._arrivals = Arrivals(self._job, self._vectors) if overlaps else None
        self._job.settle = self.settle
        self._settings: job_optimizers.GroupSettings | None = None
        if self.makes_updates:
            self._job.call("keep_gradients")
        else:
            self._say_groups()
        self._known = {id(parameter) for _, parameter in parameters}
        count = len(parameters)
        self._passes = [0] * count  # backward passes of each parameter in this step
        self._is_ready = [False] * count
        self._job_started = False
        self._step_begun = False
        self._job_over = False  # it has had its steps
        self.is_synchronized = False  # the mean gradients are there, and step() has not been
        self.skips = False  # within skip_synchronize()
        self._nodes: list[Any] = []  # torch drops the hooks of a node that nobody holds
        self._lock = threading.RLock() if self._vectors.needs_lock else None
        for index, (_, parameter) in enumerate(parameters):
            self._add_hooks(index, parameter)

    def begin_again(self) -> None:
        """The job goes on with other processes, from a step that is yet to be begun."""
        self.give_up()
        count = len(self._passes)
        self._before, self._after = self._find_factors()
        self._passes = [0] * count
        self._is_ready = [False] * count
        self._job_started = self._step_begun = self._job_over = False
        self.is_synchronized = self.skips = False
        self._vectors.forget_gradients()

    def settle(self) -> None:
        """All parameters of the last step are there."""
        if self._arrivals is not None:
            self._arrivals.settle()

    def give_up(self) -> None:
        """Those that are not there will not come."""
        if self._arrivals is not None:
            self._arrivals.give_up()

    def _say_groups(self) -> None:
        parameters = [slot.parameter for slot in self._vectors.slots]
        self._settings = job_optimizers.GroupSettings(self._optimizer, self._job, parameters)

    def agree_again(self) -> None:
        """Before the start, all have the same settings, which may be others than at first."""
        if self._says_optimizer and not self.makes_updates and not self._job_started:
            job_optimizers.say(self._optimizer, self._job)
            self._say_groups()

    def take_committed(self) -> None:
        """All have committed: servers' parameters of now, where the script has copies of them."""
        if self._servers_update and self._job_started:
            self._vectors.give_parameters()

    def _add_hooks(self, index: int, parameter: torch.Tensor) -> None:
        """One before a gradient is written, and one after."""
        before, note = self._before_gradient, self._note_gradient
        if self._lock is not None:
            before, note = self._before_gradient_locked, self._note_gradient_locked
        parameter.register_hook(before)
        node = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
        node.register_hook(partial(note, index))
        self._nodes.append(node)

    def _before_gradient_locked(self, _: torch.Tensor) -> None:
        assert self._lock is not None
        with self._lock:
            self._before_gradient(_)

    def _note_gradient_locked(self, index: int, *_: Any) -> None:
        assert self._lock is not None
        with self._lock:
            self._note_gradient(index)

    def _before_gradient(self, _: torch.Tensor) -> None:
        if not self._step_begun:
            self._begin()

    def _start(self) -> None:
        self._vectors.copy_in_parameters()
        try:
            self._job.start()
        except RingsideError as error:
            if "first parameters differ" in str(error):
                raise RingsideError(
                    f"{error}: call broadcast_parameters(model.state_dict(), root_rank=0) before "
                    "training (Keras: give fit a BroadcastGlobalVariablesCallback(0)), or seed all "
                    "processes alike",
                    error.status,
                ) from None
            raise
        self._job_started = True
        # In the midst of the first backward pass, which needs the parameters as they are.
        self._begin_next(gives=False)

    def _next_step(self) -> None:
        """The parameters of the last step are there, or under way, and there is another one, or
        not."""
        self._begin_next(gives=not self.makes_updates)

    def _begin_next(self, gives: bool) -> None:
        self._job_over = self._job.call("begin_step") == _library.END
        if gives and self._arrivals is not None and self._may_overlap:
            self._vectors.forget_gradients()
            self._arrivals.expect()
            return
        if not self._job_over:
            self._job.call("await", _library.ALL)
        if gives:
            self._vectors.give_parameters()
        elif not self.makes_updates:
            self._vectors.note_given()

    @property
    def _may_overlap(self) -> bool:
        """Whether parameters come one after the other, and are not there already."""
        job = self._job.description
        return job.size > 1 and not job.is_unsynchronised and not self._job_over

    @property
    def _servers_update(self) -> bool:
        return bool(self._job.description.servers_update)

    def _begin(self) -> None:
        """From here on gradients may be written."""
        if self.is_synchronized:
            self.finish_step()  # the script has left out an update, as torch's GradScaler does
        self.settle()
        self._vectors.check_places()
        if not self._job_started:
            self._start()
        if self._job_over:
            raise RingsideError(
                f"the job has made its {self._job.description.steps} steps (--steps), and the "
                "script computes another gradient: without --steps there are as many as it makes"
            )
        if self._settings is not None:
            self._settings.tell()
        self._vectors.settle()
        self._job.call("begin_gradients")
        self._step_begun = True

    def _note_gradient(self, index: int, *_: Any) -> None:
        self._passes[index] += 1
        if self._is_ready[index]:
            raise RingsideError(
                f"the gradient of {self._vectors.slots[index].name} was computed more than "
                f"{self.passes_per_step} times before step(): to add up K passes, give "
                "DistributedOptimizer backward_passes_per_step=K; else use torch.autograd.grad"
            )
        if self._passes[index] == self.passes_per_step:
            self._send(index)

    def _send(self, index: int) -> None:
        slot = self._vectors.slots[index]
        if not self.makes_updates and not slot.parameter.requires_grad:
            raise RingsideError(
                f"the parameter {slot.name} wants no gradient any more, and the job's optimizer "
                f"would go on with it: freeze it before DistributedOptimizer, or use {OWN_UPDATES}"
            )
        is_alone = self.makes_updates and self._job.description.size == 1
        is_there = self._vectors.take_gradient(index, self._before, is_alone)
        self._is_ready[index] = True
        if is_there:
            self._job.ready(index)
        if self._vectors.coming:
            self._send_come(waits=False)

    def _send_come(self, waits: bool) -> None:
        """Sends the gradients whose copies from a GPU have come."""
        for index in self._vectors.come_gradients(waits):
            self._job.ready(index)

    def synchronize(self) -> None:
        """Sends what is left, and waits for the gradients, or new parameters, of all."""
        if not self._step_begun:
            self._begin()
        for index in reversed(range(len(self._is_ready))):
            if not self._is_ready[index]:
                self._send(index)  # the loss does not depend on it
        self._check_all()
        self._send_come(waits=True)
        self._job.call("end_step")
        self._passes = [0] * len(self._passes)
        self._is_ready = [False] * len(self._is_ready)
        self._step_begun = False
        if self.makes_updates:
            self._vectors.give_gradients(self._after)
        else:
            self._next_step()
        self.is_synchronized = True

    def _check_all(self) -> None:
        """Refuses what would make the processes differ in silence."""
        if self._settings is not None:
            self._settings.check_unchanged()
        written = "" if self.makes_updates else self._vectors.find_written()
        if written:
            raise RingsideError(
                f"{written} was written after the first step, and that is lost: in mode "
                f"{self._job.mode} the job makes the updates; write parameters before it, or use "
                f"{OWN_UPDATES}"
            )
        changed = self._vectors.find_changed()
        if changed:
            way = (
                "call optimizer.synchronize() before, and step() within skip_synchronize()"
                if self.makes_updates
                else f"use {OWN_UPDATES}, where optimizer.synchronize() comes before"
            )
            raise RingsideError(
                f"the gradient of {changed} was changed between backward() and step(), on its way "
                f"to the other processes: {way}"
            )
        for group in self._optimizer.param_groups:
            for parameter in group["params"]:
                if parameter.requires_grad and id(parameter) not in self._known:
                    raise RingsideError(
                        f"a parameter of shape {list(parameter.shape)} wants a gradient, and was "
                        "frozen, or not there, in DistributedOptimizer: it has to be there from "
                        "the beginning"
                    )

    def finish_step(self) -> None:
        """The update is made, or left out."""
        if self.makes_updates:
            self._vectors.follow_parameters()
            self._next_step()
        self.is_synchronized = False

    @property
    def is_sending(self) -> bool:
        return any(self._is_ready)


class _Distributed:
    """What DistributedOptimizer adds to the class of an optimizer, which comes behind this one."""

    _ringside: Exchange
    param_groups: list[dict[str, Any]]

    def synchronize(self) -> None:
        """Waits for the mean gradients, which may then be changed, to clip them, before step()."""
        exchange = self._ringside
        if not exchange.makes_updates:
            raise UnsupportedError(
                "synchronize(): the job makes the updates, and takes gradients as they come: use "
                f"{OWN_UPDATES}"
            )
        if not exchange.is_synchronized:
            exchange.synchronize()

    @contextmanager
    def skip_synchronize(self) -> Iterator[None]:
        """Around a step() that follows synchronize()."""
        self._ringside.skips = True
        try:
            yield
        finally:
            self._ringside.skips = False

    def set_backward_passes_per_step(self, passes: int) -> None:
        self._ringside.passes_per_step = _check_passes(passes)

    def zero_grad(self, *args: Any, **keywords: Any) -> None:
        if self._ringside.is_sending:
            raise RingsideError(
                "zero_grad() between backward() and step(): gradients are on their way already; "
                "every backward() needs its step()"
            )
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.grad = None

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Waits for the other processes, and makes the update."""
        exchange = self._ringside
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        if exchange.skips and not exchange.is_synchronized:
            raise RingsideError("skip_synchronize(): call synchronize() before it")
        if not exchange.is_synchronized:
            exchange.synchronize()
        if exchange.makes_updates:
            super().step()  # type: ignore[misc]
        exchange.finish_step()
        self._note_step()
        return loss

    # As torch's schedulers mark a step that they have wrapped, to count its calls (1.x, 2.x).
    step._with_counter = step._wrapped_by_lr_sched = True  # type: ignore[attr-defined]

    def _note_step(self) -> None:
        """For schedulers, which warn if they are called before the optimizer is."""
        self._step_count = getattr(self, "_step_count", 0) + 1
        self._opt_called = True


def _check_passes(passes: int) -> int:
    if not isinstance(passes, int) or passes < 1:
        raise ValueError(f"backward_passes_per_step is {passes}, and must be at least 1")
    return passes


def updates_are_own(updates: str | None) -> bool:
    """Whether the script's optimizer makes them."""
    job = _job.current()
    servers_update = job.description.servers_update
    usual = "job" if servers_update else "script"
    chosen = updates or os.environ.get("RINGSIDE_UPDATES") or usual
    if chosen not in ("script", "job"):
        raise ValueError(
            f"updates (RINGSIDE_UPDATES) are made by 'script' or 'job', not {chosen!r}"
        )
    if chosen == "script" and servers_update:
        raise UnsupportedError(
            f"updates='script': in mode {job.mode} servers make the updates; use {OWN_UPDATES}"
        )
    return chosen == "script"


def _factors(op: ReduceOp, predivide: float, makes_updates: bool) -> tuple[float, float]:
    """What gradients are multiplied by before and after their mean is taken."""
    size = _job.current().description.size
    if op not in (Average, Sum):
        raise UnsupportedError(f"op={op}: DistributedOptimizer has Average and Sum")
    if op is Sum and _job.current().description.is_unsynchronised:
        raise UnsupportedError(
            f"op=Sum: in mode {_job.current().mode} each gradient is an update of its own; leave "
            "it out"
        )
    if predivide == 1.0:
        return (1.0 if op is Average else float(size)), 1.0
    if op is not Average:
        raise ValueError("gradient_predivide_factor is for op=Average")
    if not makes_updates:
        raise UnsupportedError(
            "gradient_predivide_factor: the job makes the updates; leave it out, or use "
            f"{OWN_UPDATES}"
        )
    return 1.0 / predivide, predivide


def DistributedOptimizer(
    optimizer: torch.optim.Optimizer,
    named_parameters: Iterable[tuple[str, torch.Tensor]] | None = None,
    compression: type[Compressor] = Compression.none,
    backward_passes_per_step: int = 1,
    op: ReduceOp = Average,
    gradient_predivide_factor: float = 1.0,
    num_groups: int = 0,
    groups: Any = None,
    sparse_as_dense: bool = False,
    process_set: Any = None,
    updates: str | None = None,
    overlap_forward: bool = False,
) -> torch.optim.Optimizer:
    """The optimizer, whose step() takes part in the job's exchange from now on.

    Its parameters become views of the vectors that are exchanged, in the order of
    named_parameters. Gradients of several backward passes per step are added up. A parameter
    without a gradient in a step has zeros. It is the same object, of a class that inherits from
    its own, so schedulers and state stay.

    With overlap_forward, step() does not wait for parameters that the job updates: each is waited
    for when it is first used. A script that reads them through memory it has from before step(),
    such as `p.data`, has to leave it out. step() sets gradients to None then.
    """
    if hasattr(optimizer, "_ringside"):
        raise RingsideError("this optimizer is a DistributedOptimizer already")
    if _job.current().optimizer is not None:
        raise UnsupportedError(
            "a second DistributedOptimizer: a process has one; give one optimizer the parameters "
            "of both models, as groups"
        )
    codec = compressions.codec_of(compression)
    if num_groups or groups is not None:
        raise UnsupportedError("groups: the job's --bucket-mb says how gradients travel together")
    if sparse_as_dense:
        raise UnsupportedError("sparse_as_dense: use torch.nn.Embedding(sparse=False)")
    if process_set is not None:
        raise UnsupportedError("process_set: all processes of the job take part")
    if isinstance(optimizer, torch.optim.LBFGS):
        raise UnsupportedError("LBFGS computes gradients within its step: use another optimizer")
    passes = _check_passes(backward_passes_per_step)
    makes_updates = updates_are_own(updates)

    def find_factors() -> tuple[float, float]:
        return _factors(op, gradient_predivide_factor, makes_updates)

    find_factors()  # refuses, before anything is changed
    pairs = name_parameters(optimizer, named_parameters)
    if codec:
        _job.current().call("set_compression", codec.encode())
    exchange = Exchange(optimizer, pairs, passes, find_factors, makes_updates, overlap_forward)
    _job.current().optimizer = optimizer
    optimizer._ringside = exchange
    optimizer.__dict__.pop("step", None)  # a scheduler's, which counts calls of the class's own
    kind = type(optimizer)
    optimizer.__class__ = type(kind.__name__, (_Distributed, kind), {"__module__": kind.__module__})
    return optimizer
