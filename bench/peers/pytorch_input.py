#!/usr/bin/env python3
"""The same input in PyTorch: a DataLoader with the transforms of torchvision.

usage: pytorch_input.py cifar|images FOLDER SIZE BATCH [--decoder pil|draft|tensor] [--workers COUNT]
                        [--prefetch BATCHES] [--rounds COUNT] [--seconds SECONDS]

cifar: the binary files of CIFAR-10, in memory; images are flipped and moved by up to 4 pixels. images: FOLDER/train,
whose short side is scaled to SIZE, the middle of the long side kept, and flipped. Pixels are normalised. A sample
is a PIL image (pil), for JPEG files decoded at a smaller scale where that is enough (draft), or a tensor from the
beginning (tensor: torchvision decodes JPEG files). --workers 0: this process reads.

Prints a line of JSON for each round. Every sample is drawn at random, and there is no end of an epoch, at which
workers would start anew.
"""
import argparse
import glob
import json
import os
import sys
import time

import numpy
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset, RandomSampler
from torchvision import io
from torchvision.transforms import v2

MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
SAMPLES = 10 ** 9  # more than are ever drawn
WARMUP_S = 1.0


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=("cifar", "images"))
    parser.add_argument("folder")
    parser.add_argument("size", type=int)
    parser.add_argument("batch", type=int)
    parser.add_argument("--decoder", default="pil", choices=("pil", "draft", "tensor"))
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--prefetch", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.5)
    return parser.parse_args()


def to_floats(is_tensor):
    """What both kinds end with."""
    begin = [] if is_tensor else [v2.PILToTensor()]
    return [*begin, v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, DEVIATION)]


class Cifar(Dataset):
    def __init__(self, folder, is_tensor):
        records = numpy.concatenate([
            numpy.fromfile(os.path.join(folder, f"data_batch_{i}.bin"), numpy.uint8).reshape(-1, 3073)
            for i in range(1, 6)])
        self.labels = records[:, 0].astype(int)
        planes = records[:, 1:].reshape(-1, 3, 32, 32)
        self.images = torch.from_numpy(planes.copy()) if is_tensor else planes.transpose(0, 2, 3, 1).copy()
        self.is_tensor = is_tensor
        self.transform = v2.Compose([v2.RandomCrop(32, 4), v2.RandomHorizontalFlip(),
                                     *to_floats(is_tensor)])

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        image = self.images[index] if self.is_tensor else Image.fromarray(self.images[index])
        return self.transform(image), self.labels[index]


class Images(Dataset):
    def __init__(self, folder, size, decoder):
        self.paths = sorted(glob.glob(os.path.join(folder, "train", "*", "*")))
        if not self.paths:
            sys.exit(f"{folder}/train has no images")
        names = sorted({os.path.basename(os.path.dirname(path)) for path in self.paths})
        self.labels = [names.index(os.path.basename(os.path.dirname(path))) for path in self.paths]
        self.size, self.decoder = size, decoder
        self.transform = v2.Compose([v2.Resize(size), v2.CenterCrop(size), v2.RandomHorizontalFlip(),
                                     *to_floats(decoder == "tensor")])

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        if self.decoder == "tensor":
            image = io.decode_image(io.read_file(self.paths[index]), mode=io.ImageReadMode.RGB)
        else:
            image = Image.open(self.paths[index])
            if self.decoder == "draft":
                image.draft("RGB", (self.size, self.size))
            image = image.convert("RGB")
        return self.transform(image), self.labels[index]


def main():
    arguments = parse_arguments()
    torch.set_num_threads(1 if arguments.workers else len(os.sched_getaffinity(0)))
    dataset = (Cifar(arguments.folder, arguments.decoder == "tensor") if arguments.kind == "cifar"
               else Images(arguments.folder, arguments.size, arguments.decoder))
    loader = DataLoader(dataset, arguments.batch, num_workers=arguments.workers, drop_last=True,
                        sampler=RandomSampler(dataset, num_samples=SAMPLES),
                        prefetch_factor=arguments.prefetch if arguments.workers else None)
    batches = iter(loader)
    # What workers have read ahead by then counts for nobody.
    for _ in range(2 * max(1, arguments.workers) * arguments.prefetch):
        next(batches)
    start = time.perf_counter()
    while time.perf_counter() - start < min(WARMUP_S, arguments.seconds):
        next(batches)
    for _ in range(arguments.rounds):
        start, images = time.perf_counter(), 0
        while time.perf_counter() - start < arguments.seconds:
            pixels, _ = next(batches)
            images += len(pixels)
        print(json.dumps({"side": "pytorch", "size": arguments.size, "batch": arguments.batch,
                          "workers": arguments.workers, "decoder": arguments.decoder,
                          "images_per_second": images / (time.perf_counter() - start)}), flush=True)


if __name__ == "__main__":
    main()
