"""Callbacks for model.fit, by Horovod's names, and one that tells the job how training goes."""

from __future__ import annotations

from typing import Any

import keras
import torch

from ringside.keras.optimizer import tensors_of
from ringside.torch import process
from ringside.torch.collectives import Average, allreduce, broadcast_parameters


class BroadcastGlobalVariablesCallback(keras.callbacks.Callback):  # type: ignore[misc]
    """Before the first batch, all processes get the variables of one: those of the model and of its
    optimizer."""

    def __init__(self, root_rank: int, device: str = ""):
        super().__init__()
        self.root_rank = root_rank
        self._is_done = False

    def on_train_begin(self, logs: Any = None) -> None:
        if self._is_done:
            return
        own = list(self.model.variables)
        seen = {id(variable) for variable in own}
        own += [v for v in self.model.optimizer.variables if id(v) not in seen]
        broadcast_parameters(tensors_of(own), self.root_rank)
        self._is_done = True


class MetricAverageCallback(keras.callbacks.Callback):  # type: ignore[misc]
    """At the end of an epoch its metrics become the means of all processes. It comes before
    callbacks that use them."""

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        for name, value in sorted((logs or {}).items()):
            if isinstance(value, (int, float)) and logs is not None:
                logs[name] = float(allreduce(torch.tensor(float(value)), op=Average))


class LearningRateWarmupCallback(keras.callbacks.Callback):  # type: ignore[misc]
    """Over the first epochs the rate rises from initial_lr / size to initial_lr, batch by batch."""

    def __init__(
        self, initial_lr: float, warmup_epochs: float = 5, steps_per_epoch: int | None = None
    ):
        super().__init__()
        if warmup_epochs <= 0:
            raise ValueError(f"warmup_epochs is {warmup_epochs}, and must be above 0")
        self.initial_lr, self.warmup_epochs = initial_lr, warmup_epochs
        self.steps_per_epoch = steps_per_epoch
        self._epoch = 0

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._epoch = epoch

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        steps = self.steps_per_epoch or self.params.get("steps")
        if not steps:
            raise ValueError(
                "LearningRateWarmupCallback: fit does not know how many steps an epoch has: give "
                "steps_per_epoch"
            )
        share = (self._epoch + batch / steps) / self.warmup_epochs
        start = 1 / process.size()
        if share <= 1 + 1 / (steps * self.warmup_epochs):  # once more at its end
            rate = self.initial_lr * (start + (1 - start) * min(1.0, share))
            self.model.optimizer.learning_rate = rate


class ReportCallback(keras.callbacks.Callback):  # type: ignore[misc]
    """After each epoch tells the job its loss and the validation's accuracy and loss, for progress,
    metrics and reports. `images` of an epoch of this process, if the job shall count them."""

    def __init__(self, images: int | None = None, accuracy: str = "val_accuracy"):
        super().__init__()
        self.images, self.accuracy = images, accuracy

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        logs = logs or {}
        told: dict[str, Any] = {"loss": logs.get("loss"), "images": self.images}
        if self.accuracy in logs:
            told.update(accuracy=logs[self.accuracy], test_loss=logs.get("val_loss"))
        process.report(**told)
