"""Reads Fashion-MNIST and CIFAR-10, as their authors publish them, for the examples of this folder.

Images stay bytes, one to a pixel, until a batch of them is used: `to_floats`.
"""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import torch
from torch.utils.data import TensorDataset

_IDX_KIND = 8  # of bytes without sign, in the third byte of an IDX file
_CIFAR_SHAPE = (3, 32, 32)


def _find_folder(name: str, given: str | None) -> Path:
    """The folder of --data, or the one of that name in $RINGSIDE_DATA."""
    around = os.environ.get("RINGSIDE_DATA")
    if given is None and not around:
        raise FileNotFoundError(
            f"where is {name}? give its folder by --data, or the folder that has {name}/ by the "
            "variable RINGSIDE_DATA"
        )
    folder = Path(given) if given is not None else Path(around or "") / name
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} is no folder: give that of {name} by --data")
    return folder


def _read(path: Path, count: int) -> bytearray:
    """The first `count` bytes of a file, plain or .gz."""
    packed = path.with_name(path.name + ".gz")
    if path.exists():
        with path.open("rb") as file:
            data = bytearray(file.read(count))
    elif packed.exists():
        with gzip.open(packed) as file:
            data = bytearray(file.read(count))
    else:
        raise FileNotFoundError(f"{path} is missing, and {packed.name} too: see --data")
    if len(data) < count:
        raise ValueError(f"{path} ends after {len(data)} bytes of {count}: fetch it again")
    return data


def _read_idx(path: Path, dimensions: int, limit: int) -> torch.Tensor:
    """The first rows of an IDX file: its sizes, 4 bytes each, and what they are sizes of."""
    header = _read(path, 4 + 4 * dimensions)
    if header[:4] != bytes((0, 0, _IDX_KIND, dimensions)):
        raise ValueError(f"{path} is no IDX file of bytes in {dimensions} dimensions")
    shape = [int.from_bytes(header[begin : begin + 4], "big") for begin in range(4, len(header), 4)]
    shape[0] = min(shape[0], limit) if limit > 0 else shape[0]
    count = 1
    for size in shape:
        count *= size
    data = _read(path, len(header) + count)
    return torch.frombuffer(data, dtype=torch.uint8, offset=len(header)).reshape(shape)


def fashion_mnist(folder: str | None, is_training: bool, limit: int = 0) -> TensorDataset:
    """Images (N, 1, 28, 28) and labels (N); the first `limit` of them, or all for 0."""
    place, part = _find_folder("fashion-mnist", folder), "train" if is_training else "t10k"
    pixels = _read_idx(place / f"{part}-images-idx3-ubyte", 3, limit)
    labels = _read_idx(place / f"{part}-labels-idx1-ubyte", 1, limit)
    if len(pixels) != len(labels):
        raise ValueError(f"{place} has {len(pixels)} images of {part}, and {len(labels)} labels")
    return TensorDataset(pixels.unsqueeze(1), labels.long())


def cifar10(folder: str | None, is_training: bool, limit: int = 0) -> TensorDataset:
    """Images (N, 3, 32, 32) and labels (N); the first `limit` of them, or all for 0."""
    place = _find_folder("cifar10", folder)
    names = [f"data_batch_{i}.bin" for i in range(1, 6)] if is_training else ["test_batch.bin"]
    record, per_file = 1 + 3 * 32 * 32, 10_000  # a label, then red, green and blue
    wanted = min(limit, per_file * len(names)) if limit > 0 else per_file * len(names)
    parts = []
    for begin, name in zip(range(0, wanted, per_file), names):
        count = min(per_file, wanted - begin)
        data = _read(place / name, count * record)
        parts.append(torch.frombuffer(data, dtype=torch.uint8).reshape(count, record))
    records = torch.cat(parts)
    return TensorDataset(records[:, 1:].reshape(-1, *_CIFAR_SHAPE), records[:, 0].long())


def share(dataset: TensorDataset, rank: int, size: int) -> TensorDataset:
    """Every size-th image, for a test of which each process makes its part, and no image twice."""
    return TensorDataset(*(tensor[rank::size] for tensor in dataset.tensors))


def to_floats(pixels: torch.Tensor) -> torch.Tensor:
    """A batch as a network likes it: around 0, between -1 and 1."""
    return pixels.float().div_(127.5).sub_(1.0)
