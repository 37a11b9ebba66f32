"""DistributedOptimizer: a Keras optimizer that is given the mean gradients of all processes.

In ring, and in ps-sync with --server-optimizer none, the Keras optimizer makes the update. In the
ps modes servers make it, by the rule of SGD, with momentum or without: the one that Keras and the
job's servers write alike.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import keras
import torch

from ringside._library import RingsideError, UnsupportedError
from ringside.torch import optimizer as torch_optimizer
from ringside.torch.collectives import Average, ReduceOp
from ringside.torch.compression import Compression, Compressor

# Settings of Keras optimizers by which an update differs from that of the job's servers.
_UNSET: dict[str, Any] = {
    "weight_decay": None,
    "clipnorm": None,
    "clipvalue": None,
    "global_clipnorm": None,
    "use_ema": False,
    "loss_scale_factor": None,
    "gradient_accumulation_steps": None,
}


class _KerasStep(torch.optim.Optimizer):  # type: ignore[misc]
    """Stands in for the Keras optimizer where the script makes the updates: has its parameters, and
    makes its update."""

    def __init__(self, owner: _Distributed, values: list[torch.Tensor]):
        super().__init__(values, {})
        self._owner = owner

    def step(self, closure: Any = None) -> None:
        self._owner.apply_here()


class _Distributed:
    """What DistributedOptimizer adds to the class of a Keras optimizer, which comes behind it.

    Attributes are set past Keras, which tracks what an optimizer has.
    """

    learning_rate: Any
    iterations: Any
    _ringside_keywords: dict[str, Any]
    _ringside_step: torch.optim.Optimizer
    _ringside_variables: list[Any]

    def build(self, variables: list[Any]) -> None:
        """Keras calls it once the model has its variables, before the first batch."""
        if hasattr(self, "_ringside_step"):
            return
        super().build(variables)  # type: ignore[misc]
        pairs = [(variable.path, variable.value) for variable in variables]
        values = [value for _, value in pairs]
        makes_updates = torch_optimizer.updates_are_own(None)
        plain = _KerasStep(self, values) if makes_updates else _as_torch(self, values)
        step = torch_optimizer.DistributedOptimizer(plain, pairs, **self._ringside_keywords)
        object.__setattr__(self, "_ringside_variables", list(variables))
        object.__setattr__(self, "_ringside_makes_updates", makes_updates)
        object.__setattr__(self, "_ringside_step", step)

    def apply(self, grads: list[Any], trainable_variables: list[Any] | None = None) -> None:
        """Waits for the gradients of all, or for new parameters."""
        own = {id(variable) for variable in self._ringside_variables}
        given = trainable_variables or self._ringside_variables
        if {id(variable) for variable in given} != own:
            raise RingsideError(
                f"the optimizer was built for {len(own)} variables and is given {len(given)}: "
                "freeze layers before compile(), and compile again after"
            )
        if self._ringside_makes_updates:  # type: ignore[attr-defined]
            self._ringside_step.step()
            return
        self._ringside_step.param_groups[0]["lr"] = float(self.learning_rate)
        self._ringside_step.step()
        self.iterations.assign_add(1)

    def apply_here(self) -> None:
        """The update of Keras, from the mean gradients."""
        variables = self._ringside_variables
        grads = [variable.value.grad for variable in variables]
        super().apply(grads, variables)  # type: ignore[misc]


def _as_torch(optimizer: Any, values: list[torch.Tensor]) -> torch.optim.Optimizer:
    """The optimizer of torch, and so of the servers, that makes the same updates."""
    kind = type(optimizer).__mro__[2]  # behind the mixed class and _Distributed
    if not issubclass(kind, keras.optimizers.SGD) or not kind.__module__.startswith("keras."):
        name = kind.__name__
        raise UnsupportedError(
            f"servers make the updates, and Keras writes {name} in another way than they do: use "
            "keras.optimizers.SGD, or --mode ring, or --mode ps-sync with --server-optimizer none, "
            "where Keras makes the updates"
        )
    for key, unset in _UNSET.items():
        value = getattr(optimizer, key, unset)
        if value != unset and value:
            raise UnsupportedError(
                f"servers make the updates, and do not know {key}={value!r}: leave it out, or use "
                "--mode ring, or --mode ps-sync with --server-optimizer none, where Keras makes "
                "the updates"
            )
    return torch.optim.SGD(
        values,
        lr=float(optimizer.learning_rate),
        momentum=float(optimizer.momentum),
        nesterov=bool(optimizer.nesterov) and float(optimizer.momentum) > 0,
    )


def _check_backend() -> None:
    backend = keras.backend.backend()
    if backend != "torch":
        raise UnsupportedError(
            f"Keras runs on {backend}, whose training step is compiled as a whole, without a place "
            "between a gradient and its update: set KERAS_BACKEND=torch"
        )


def DistributedOptimizer(
    optimizer: Any,
    name: str | None = None,
    compression: type[Compressor] = Compression.none,
    sparse_as_dense: bool = False,
    gradient_predivide_factor: float = 1.0,
    op: ReduceOp = Average,
    backward_passes_per_step: int = 1,
    groups: Any = None,
    process_set: Any = None,
) -> Any:
    """The Keras optimizer, which takes part in the job's exchange from its first batch on.

    It is the same object, of a class that inherits from its own. `name` is there for Horovod's
    sake.
    """
    _check_backend()
    if not isinstance(optimizer, keras.optimizers.Optimizer):
        raise ValueError(f"{optimizer!r} is no keras.optimizers.Optimizer")
    if isinstance(optimizer, _Distributed):
        raise RingsideError("this optimizer is a DistributedOptimizer already")
    if optimizer.built:
        raise RingsideError(
            "the optimizer has variables already: give it to DistributedOptimizer before compile()"
        )
    if backward_passes_per_step != 1:
        raise UnsupportedError(
            "backward_passes_per_step: Keras makes an update after each batch; use larger batches"
        )
    keywords = {
        "compression": compression,
        "sparse_as_dense": sparse_as_dense,
        "gradient_predivide_factor": gradient_predivide_factor,
        "op": op,
        "groups": groups,
        "process_set": process_set,
    }
    kind = type(optimizer)
    mixed = type(kind.__name__, (_Distributed, kind), {"__module__": kind.__module__})
    object.__setattr__(optimizer, "_ringside_keywords", keywords)
    object.__setattr__(optimizer, "__class__", mixed)
    return optimizer


def tensors_of(variables: Iterable[Any]) -> list[tuple[str, torch.Tensor]]:
    """Names and values of Keras variables."""
    return [(f"{i} {variable.path}", variable.value) for i, variable in enumerate(variables)]
