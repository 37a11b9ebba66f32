#!/usr/bin/env python3
"""Times all-reduces of one tensor, by ringside.torch or by torch.distributed over Gloo.

usage: pytorch_collectives.py --with ringside|gloo --sizes BYTES,... --rounds COUNT
                              [--rank RANK --workers COUNT --folder FOLDER]

Prints a line of JSON for each size: the median of the rounds, in microseconds. Every round is the sum of
float32 of all workers, in place; results are checked. Gloo meets in FOLDER. Run by bench/collectives.
"""
import argparse
import json
import statistics
import time

import torch


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--with", dest="way", choices=("ringside", "gloo"), required=True)
    parser.add_argument("--sizes", required=True)
    parser.add_argument("--rounds", type=int, required=True)
    parser.add_argument("--rank", type=int)
    parser.add_argument("--workers", type=int)
    parser.add_argument("--folder")
    return parser.parse_args()


def open_way(arguments):
    """This worker's rank, how many there are, and what adds up a tensor in place."""
    if arguments.way == "ringside":
        import ringside.torch as hvd
        hvd.init()
        return hvd.rank(), hvd.size(), lambda tensor: hvd.allreduce_(tensor, op=hvd.Sum)
    import torch.distributed as dist
    dist.init_process_group("gloo", f"file://{arguments.folder}/meeting", rank=arguments.rank,
                            world_size=arguments.workers)
    return arguments.rank, arguments.workers, dist.all_reduce


def main():
    arguments = parse_arguments()
    torch.set_num_threads(1)
    rank, size, add_up = open_way(arguments)
    for count in (int(text) // 4 for text in arguments.sizes.split(",")):
        times = []
        for number in range(arguments.rounds + 3):
            values = torch.full((count,), float(rank + 1))
            began = time.perf_counter()
            add_up(values)
            if number >= 3:
                times.append(time.perf_counter() - began)
            if not bool((values == size * (size + 1) / 2).all()):
                raise SystemExit(f"a sum of {4 * count} bytes is wrong")
        print(json.dumps({"rank": rank, "bytes": 4 * count,
                          "microseconds": 1e6 * statistics.median(times)}), flush=True)


main()
