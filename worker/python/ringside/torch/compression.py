"""Compression, as Horovod has it: types that travel in the place of float32.

allreduce() casts what it sends, and casts the result back, as Horovod does. The gradients of a
DistributedOptimizer are encoded by the job's exchange instead, as --compress says it: in every
mode, and what an encoding loses is added to the next gradient.
"""

from __future__ import annotations

from typing import Any

import torch

from ringside._library import UnsupportedError


class Compressor:
    """What a tensor becomes before it is sent, and after. The base of others, too."""

    codec: str | None = None  # the same as a value of the job's --compress; None: there is none

    @staticmethod
    def compress(tensor: torch.Tensor) -> tuple[torch.Tensor, Any]:
        """What is sent, and what decompress needs of the tensor."""
        raise NotImplementedError

    @staticmethod
    def decompress(tensor: torch.Tensor, context: Any) -> torch.Tensor:
        raise NotImplementedError


class NoneCompressor(Compressor):
    """Everything as it is."""

    codec = "none"

    @staticmethod
    def compress(tensor: torch.Tensor) -> tuple[torch.Tensor, Any]:
        return tensor, None

    @staticmethod
    def decompress(tensor: torch.Tensor, context: Any) -> torch.Tensor:
        return tensor


class _CastCompressor(Compressor):
    """Floats as another type, and back."""

    kind: torch.dtype

    @classmethod
    def compress(cls, tensor: torch.Tensor) -> tuple[torch.Tensor, Any]:
        is_float = isinstance(tensor, torch.Tensor) and tensor.is_floating_point()
        return (tensor.to(cls.kind), tensor.dtype) if is_float else (tensor, None)

    @staticmethod
    def decompress(tensor: torch.Tensor, context: Any) -> torch.Tensor:
        return tensor if context is None else tensor.to(context)


class FP16Compressor(_CastCompressor):
    """Floats as halves."""

    codec, kind = "fp16", torch.float16


class BF16Compressor(_CastCompressor):
    """Floats as bfloat16. Horovod has none of it."""

    codec, kind = "bf16", torch.bfloat16


class Compression:
    """The values of `compression`."""

    none = NoneCompressor
    fp16 = FP16Compressor
    bf16 = BF16Compressor


def codec_of(compression: type[Compressor]) -> str:
    """By which the exchange of gradients does the same; "" if it is to do nothing."""
    codec = getattr(compression, "codec", None)
    if codec is None:
        raise UnsupportedError(
            f"compression={compression!r}: gradients travel by the job's exchange, which has "
            "Compression.fp16 and bf16, and by the job's options also int8 and topk "
            "(`ringside run --compress topk:0.01`); one of your own goes with allreduce()"
        )
    return "" if codec == "none" else codec
