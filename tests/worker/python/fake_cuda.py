"""A double of the few calls of torch.cuda that ringside.torch makes, on a machine without a GPU.

Tensors stay where they are. What the script computes is done at once, as if its stream never
waited. Copies are as late as they may be: each is done when somebody waits for its event, or, by
chance, when somebody asks for one. So a copy that nobody waits for shows in the results.

Before `import ringside.torch`'s first use of it: `import fake_cuda; fake_cuda.install("all")`.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch


class Event:
    def __init__(self) -> None:
        self.stream: Stream | None = None
        self.has_come = False

    def record(self, stream: Stream) -> None:
        self.stream = stream
        stream.add(self._come)

    def _come(self) -> None:
        self.has_come = True

    def query(self) -> bool:
        if self.stream is not None and not self.has_come and generator.random() < 0.3:
            self.stream.work()
        return self.has_come

    def synchronize(self) -> None:
        while not self.has_come:
            assert self.stream is not None and self.stream.work(), "an event that never comes"


class Stream:
    """What is to be done, in its order."""

    def __init__(self, device: Any = None):
        self.device = device
        self.todo: deque[Callable[[], None]] = deque()
        self.is_behind_main = False  # what the script's stream had been given is done before

    def add(self, what: Callable[[], None]) -> None:
        self.todo.append(what)

    def work(self) -> bool:
        """Does the next thing."""
        if not self.todo:
            return False
        self.todo.popleft()()
        return True

    def wait_stream(self, other: Stream) -> None:
        assert other is main and self is not main
        self.is_behind_main = True

    def wait_event(self, event: Event) -> None:
        assert self is main
        event.synchronize()


class Runtime:
    """What torch.cuda.cudart() returns."""

    def __init__(self, code: int = 0):
        self.code = code
        self.locked: list[tuple[int, int]] = []

    def cudaHostRegister(self, place: int, size: int, flags: int) -> int:  # noqa: N802
        assert flags == 0 and size > 0
        self.locked.append((place, size))
        return self.code


class Cuda:
    """What torch.cuda is."""

    Event = Event
    Stream = Stream

    def __init__(self) -> None:
        self.runtime = Runtime()

    def cudart(self) -> Runtime:
        return self.runtime

    def current_stream(self, device: Any = None) -> Stream:
        return current[-1]

    @contextmanager
    def stream(self, stream: Stream) -> Iterator[None]:
        current.append(stream)
        try:
            yield
        finally:
            current.pop()
            stream.is_behind_main = False  # the script's stream may go on


generator = random.Random(3)
main = Stream()
current = [main]
copies = 0  # that were made


def copy(target: torch.Tensor, source: torch.Tensor) -> None:
    """In the place of Tensor.copy_ with non_blocking."""
    stream = current[-1]
    assert stream is not main, "a copy on the script's stream"
    assert stream.is_behind_main or stream.todo, "a copy that does not wait for the script's stream"

    def move() -> None:
        global copies
        with torch.no_grad():
            target.data.copy_(source)
        copies += 1

    stream.add(move)


def keep(tensor: torch.Tensor, stream: Stream) -> None:
    """In the place of Tensor.record_stream: what is to be done holds the tensor anyway."""
    assert stream is not main


def install(which: str) -> Cuda:
    """From here on parameters count as being on a GPU: "all", or "matrices", and the others not."""
    from ringside.torch import device_copies

    def is_on_device(tensor: torch.Tensor) -> bool:
        return which == "all" or tensor.dim() > 1

    cuda = Cuda()
    device_copies.cuda = cuda
    device_copies.is_on_device = is_on_device
    device_copies._copy = copy
    device_copies._keep = keep
    return cuda
