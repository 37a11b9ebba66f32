"""Grouped and async forms of collectives: of several tensors, and with a handle.

A grouped call is one for each tensor. An async one has its result at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from ringside.torch.collectives import (
    Handle,
    allgather,
    alltoall,
    grouped_allreduce,
    grouped_allreduce_,
    reducescatter,
)


def grouped_allreduce_async(tensors: Iterable[torch.Tensor], *args: Any, **keywords: Any) -> Handle:
    return Handle(grouped_allreduce(tensors, *args, **keywords))


def grouped_allreduce_async_(
    tensors: Iterable[torch.Tensor], *args: Any, **keywords: Any
) -> Handle:
    return Handle(grouped_allreduce_(tensors, *args, **keywords))


def grouped_allgather(
    tensors: Iterable[torch.Tensor], name: str | None = None
) -> list[torch.Tensor]:
    return [allgather(tensor) for tensor in tensors]


def grouped_allgather_async(tensors: Iterable[torch.Tensor], name: str | None = None) -> Handle:
    return Handle(grouped_allgather(tensors))


def reducescatter_async(tensor: torch.Tensor, *args: Any, **keywords: Any) -> Handle:
    return Handle(reducescatter(tensor, *args, **keywords))


def grouped_reducescatter(
    tensors: Iterable[torch.Tensor], *args: Any, **keywords: Any
) -> list[torch.Tensor]:
    return [reducescatter(tensor, *args, **keywords) for tensor in tensors]


def grouped_reducescatter_async(
    tensors: Iterable[torch.Tensor], *args: Any, **keywords: Any
) -> Handle:
    return Handle(grouped_reducescatter(tensors, *args, **keywords))


def alltoall_async(tensor: torch.Tensor, *args: Any, **keywords: Any) -> Handle:
    return Handle(alltoall(tensor, *args, **keywords))
