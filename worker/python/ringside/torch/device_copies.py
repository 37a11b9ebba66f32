"""Copies between a GPU and the flat vectors, beside what the host and the GPU do meanwhile.

The vectors are page-locked, so that a copy needs nobody on the host. Copies run on a stream of
their own for each GPU, behind all that the script's stream has been given until then:

    a gradient     is copied when autograd has it, and travels once its event has come: what comes
                   during backward is sent by the next hooks, the rest at the end of the step
    means, or      are copied when they are there. The script's stream waits for their event on the
    parameters     GPU, so the next forward comes behind them, and the host goes on

The host writes the vectors again when it has waited for the copies out of them (settle).

No GPU has run this yet: tests/worker/python/fake_cuda.py stands in for the few calls, with streams
that are as late as they may be; tests/gpu/first-hour has a part for a real one.
"""

from __future__ import annotations

import warnings
from typing import Any

import torch

cuda: Any = torch.cuda  # a test has another one


def is_on_device(tensor: torch.Tensor) -> bool:
    return bool(tensor.device.type == "cuda")


def _copy(target: torch.Tensor, source: torch.Tensor) -> None:
    """On the current stream. The host goes on."""
    target.copy_(source, non_blocking=True)


def _keep(tensor: torch.Tensor, stream: Any) -> None:
    """Its memory is not used for something else before the stream has come here."""
    tensor.record_stream(stream)


def _is_like(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether a copy from one to the other moves bytes as they lie."""
    return bool(one.dtype == other.dtype and one.stride() == other.stride())


class DeviceCopies:
    """The copies of a process. Host tensors are views of vectors that lock() was given."""

    def __init__(self) -> None:
        self._sides: dict[torch.device, Any] = {}  # streams
        self._giving: list[torch.device] = []
        self._given: list[Any] = []  # events of copies out of the vectors

    def lock(self, vector: torch.Tensor) -> None:
        """Locks the pages of a vector, which lives as long as the process. Without it copies are
        slower, and as right."""
        size = vector.numel() * vector.element_size()
        result = cuda.cudart().cudaHostRegister(vector.data_ptr(), size, 0)
        code = int(getattr(result, "value", result))
        if code != 0:
            warnings.warn(
                f"ringside: {size >> 20} MiB of parameters or gradients cannot be page-locked "
                f"(cudaHostRegister returns {code}): copies from and to the GPU are slower",
                stacklevel=2,
            )

    def _side(self, device: torch.device) -> Any:
        """The stream of copies, behind what the script's has been given."""
        side = self._sides.get(device)
        if side is None:
            side = self._sides[device] = cuda.Stream(device)
        side.wait_stream(cuda.current_stream(device))
        return side

    def take(self, target: torch.Tensor, source: torch.Tensor) -> Any:
        """Copies from the GPU. The event has come when target has the values."""
        side = self._side(source.device)
        with cuda.stream(side):
            packed = source
            if not _is_like(source, target):
                packed = torch.empty_strided(
                    target.shape, target.stride(), dtype=target.dtype, device=source.device
                )
                _copy(packed, source)
            _copy(target, packed)
            event = cuda.Event()
            event.record(side)
        _keep(source, side)
        return event

    def give(self, target: torch.Tensor, source: torch.Tensor) -> None:
        """Copies to the GPU. The script's stream has the values after end_giving()."""
        device = target.device
        if device not in self._giving:
            self._side(device)
            self._giving.append(device)
        side = self._sides[device]
        with cuda.stream(side):
            packed = source
            if not _is_like(source, target):
                packed = torch.empty_strided(
                    source.shape, source.stride(), dtype=source.dtype, device=device
                )
                _copy(packed, source)
            _copy(target, packed)
        _keep(target, side)

    def end_giving(self) -> None:
        """What the script's streams are given from here on has what give() has copied."""
        for device in self._giving:
            side = self._sides[device]
            event = cuda.Event()
            event.record(side)
            cuda.current_stream(device).wait_event(event)
            self._given.append(event)
        self._giving = []

    def settle(self) -> None:
        """Waits until nothing reads the vectors any more."""
        for event in self._given:
            event.synchronize()
        self._given = []
