"""Sizes as people write them, quantiles, and what the memory of this machine allows."""
import argparse
import ctypes
import os
import re
import shlex
import statistics
import time

from launching import ROOT, SECURITIES

GIB = float(1 << 30)
UNITS = {"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
MEMCPY_BYTES = 64 << 20


def parse_size(text):
    match = re.fullmatch(r"(\d+) ?(B|KiB|MiB|GiB|)", text)
    size = int(match.group(1)) * UNITS[match.group(2)] if match else 0
    if size < 4 or size % 4 != 0:
        raise argparse.ArgumentTypeError(f"'{text}' is not a size: a multiple of 4 such as 4, 64KiB, "
                                         "1MiB, 1GiB")
    return size


def parse_count(text):
    if not re.fullmatch(r"[1-9]\d{0,6}", text):
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number of at least 1")
    return int(text)


def list_of(parse):
    """For argparse: values separated by commas."""
    def parse_list(text):
        return [parse(item.strip()) for item in text.split(",")]
    return parse_list


def parser_for(documentation):
    """--help begins with the whole docstring, which has the usage, too."""
    return argparse.ArgumentParser(description=documentation, usage=argparse.SUPPRESS,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)


def add_common(parser, repeat):
    """What all of them have."""
    parser.add_argument("--rounds", type=parse_count, help="timed in a measurement; without it "
                        "many, less for long vectors")
    parser.add_argument("--repeat", type=parse_count, default=repeat)
    parser.add_argument("--job", type=shlex.split, default="", help="more options of our jobs, in "
                        "one argument: --job='--bucket-mb 2 --stall-fail 30'")
    parser.add_argument("--security", choices=SECURITIES, default="none", help="what keys are used "
                        "for on our tcp connections; none: there are none")
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--json", help="write the cells to this file as well")


def choices_of(names):
    def parse(text):
        if text not in names:
            raise argparse.ArgumentTypeError(f"there is no '{text}'; there are {', '.join(names)}")
        return text
    return list_of(parse)


def format_size(size):
    for unit in ("GiB", "MiB", "KiB"):
        if size % UNITS[unit] == 0:
            return f"{size // UNITS[unit]} {unit}"
    return f"{size} B"


def rounds_for(size, rounds):
    """`rounds` if it was given; otherwise fewer the longer one takes."""
    return rounds or max(5, min(1000, (256 << 20) // size))


def warmup_for(size):
    """Short ones need longer: the kernel takes milliseconds to give each process a core."""
    return 1000 if size <= (64 << 10) else 20 if size < (16 << 20) else 1


def memcpy_gbps(repeats=5):
    """libc's memcpy of 64 MiB on one thread, bytes copied per second, in GB/s: the median."""
    source = ctypes.create_string_buffer(MEMCPY_BYTES)
    target = ctypes.create_string_buffer(MEMCPY_BYTES)
    ctypes.memmove(target, source, MEMCPY_BYTES)  # page faults
    rates = []
    for _ in range(repeats):
        start = time.perf_counter()
        ctypes.memmove(target, source, MEMCPY_BYTES)
        rates.append(MEMCPY_BYTES / (time.perf_counter() - start) / 1e9)
    return statistics.median(rates)


def allreduce_figures(size, workers, microseconds):
    """algbw and busbw in GB/s, as nccl-tests define them."""
    algbw = size / microseconds / 1e3
    return algbw, algbw * 2 * (workers - 1) / workers
