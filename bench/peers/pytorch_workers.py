#!/usr/bin/env python3
"""One of several workers that train in PyTorch together: by DDP over Gloo (on GPUs: over NCCL), Horovod
over Gloo, or ringside.torch. Or beside each other, plain.

usage: pytorch_workers.py --with ddp|horovod|ringside|plain [--rank RANK] [--workers COUNT]
                          [--folder FOLDER] MODEL BATCH
                          [--layout default|channels_last] [--execution eager|compile|compile-cpp]
                          [--optimizer default|foreach|fused] [--gradients fresh|kept]
                          [--bucket-mb MB] [--static-graph on|off] [--bucket-view on|off]
                          [--cores own|shared] [--updates script|job] [--overlap]
                          [--interface NAME]
                          [--warmup STEPS] [--steps STEPS] [--blocks COUNT]
                          [--size PIXELS] [--device cpu|cuda] [--precision fp32|tf32|bf16]
                          [--deterministic]

BATCH is that of each worker, which computes with one thread, or on the GPU that has its rank. FOLDER is
where DDP and Horovod meet; it is theirs alone. DDP talks through the network interface NAME. Rank and
number of workers may come from torchrun, too. `ringside run` says who the workers of ringside.torch are;
--updates and --overlap are theirs: who makes the updates, and whether forward begins before all parameters
are there. Gradients are memory of their own in each step (fresh), or kept and zeroed. Batches for a GPU
lie in page-locked memory, and go up in every step. Each prints a line of JSON for each block of so many
steps. Run by bench/training-peers, bench/torch and tests/gpu/first-hour.
"""
import argparse
import json
import os
import sys
import time

import torch

sys.dont_write_bytecode = True

import pytorch_models as models  # noqa: E402


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", choices=models.MODELS)
    parser.add_argument("batch", type=int)
    parser.add_argument("--with", dest="library", choices=tuple(JOINS), required=True)
    parser.add_argument("--rank", type=int, default=int(os.environ.get("RANK", "0")))
    parser.add_argument("--workers", type=int, default=int(os.environ.get("WORLD_SIZE", "1")))
    parser.add_argument("--folder")
    parser.add_argument("--layout", default="default", choices=("default", "channels_last"))
    parser.add_argument("--execution", default="eager", choices=("eager", "compile", "compile-cpp"))
    parser.add_argument("--optimizer", default="default", choices=("default", "foreach", "fused"))
    parser.add_argument("--gradients", default="fresh", choices=("fresh", "kept"))
    parser.add_argument("--bucket-mb", type=float, default=25)
    parser.add_argument("--static-graph", default="on", choices=("on", "off"))
    parser.add_argument("--bucket-view", default="on", choices=("on", "off"))
    parser.add_argument("--cores", default="shared", choices=("own", "shared"))
    parser.add_argument("--updates", choices=("script", "job"))
    parser.add_argument("--overlap", action="store_true")
    parser.add_argument("--interface", default="lo")
    parser.add_argument("--warmup", type=int, default=10)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--blocks", type=int, default=1)
    parser.add_argument("--size", type=int, default=0, help="of images")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"),
                        help="cuda: with ddp or plain")
    parser.add_argument("--precision", default="fp32", choices=("fp32", "tf32", "bf16"),
                        help="on a GPU; bf16 is autocast")
    parser.add_argument("--deterministic", action="store_true",
                        help="on a GPU: the same bits in every run")
    arguments = parser.parse_args()
    if arguments.device == "cuda" and arguments.library not in ("ddp", "plain"):
        parser.error(f"--device cuda is for --with ddp and plain, not {arguments.library}")
    return arguments


def join_ddp(arguments, model):
    """The model whose gradients are averaged, and its optimizer."""
    os.environ.setdefault("GLOO_SOCKET_IFNAME", arguments.interface)
    torch.distributed.init_process_group(
        "nccl" if arguments.device == "cuda" else "gloo",
        init_method=f"file://{arguments.folder}/store", rank=arguments.rank,
        world_size=arguments.workers)
    together = torch.nn.parallel.DistributedDataParallel(
        model, device_ids=[arguments.rank] if arguments.device == "cuda" else None,
        static_graph=arguments.static_graph == "on",
        gradient_as_bucket_view=arguments.bucket_view == "on", bucket_cap_mb=arguments.bucket_mb)
    return together, models.make_optimizer(model, arguments.optimizer)


def meet_horovod(arguments):
    """Rank 0 serves the place where they meet, and writes its port into the folder."""
    path = os.path.join(arguments.folder, "port")
    if arguments.rank == 0:
        # pylint: disable=import-outside-toplevel
        from horovod.runner.common.util.hosts import get_host_assignments, parse_hosts
        from horovod.runner.http.http_server import RendezvousServer
        server = RendezvousServer()
        port = server.start()
        server.init(get_host_assignments(parse_hosts(f"localhost:{arguments.workers}"),
                                         arguments.workers))
        with open(f"{path}.part", "w", encoding="utf-8") as file:
            file.write(str(port))
        os.rename(f"{path}.part", path)
    while not os.path.exists(path):
        time.sleep(0.01)
    with open(path, encoding="utf-8") as file:
        port = file.read()
    rank, count = str(arguments.rank), str(arguments.workers)
    os.environ.update({
        "HOROVOD_RANK": rank, "HOROVOD_SIZE": count, "HOROVOD_LOCAL_RANK": rank,
        "HOROVOD_LOCAL_SIZE": count, "HOROVOD_CROSS_RANK": "0", "HOROVOD_CROSS_SIZE": "1",
        "HOROVOD_HOSTNAME": "localhost", "HOROVOD_CONTROLLER": "gloo",
        "HOROVOD_CPU_OPERATIONS": "gloo", "HOROVOD_GLOO_IFACE": "lo",
        "HOROVOD_GLOO_RENDEZVOUS_ADDR": "127.0.0.1", "HOROVOD_GLOO_RENDEZVOUS_PORT": port})


def join_horovod(arguments, model):
    meet_horovod(arguments)
    import horovod.torch as horovod  # pylint: disable=import-outside-toplevel
    horovod.init()
    horovod.broadcast_parameters(model.state_dict(), root_rank=0)
    return model, horovod.DistributedOptimizer(
        models.make_optimizer(model, arguments.optimizer),
        named_parameters=model.named_parameters())


def join_ringside(arguments, model):
    import ringside.torch as ringside  # pylint: disable=import-outside-toplevel
    ringside.init()
    arguments.rank = ringside.rank()
    if arguments.cores == "own":
        own = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {own[ringside.rank() % len(own)]})
    ringside.broadcast_parameters(model.state_dict(), root_rank=0)
    return model, ringside.DistributedOptimizer(
        models.make_optimizer(model, arguments.optimizer),
        named_parameters=model.named_parameters(), updates=arguments.updates,
        overlap_forward=arguments.overlap)


def join_nobody(arguments, model):
    return model, models.make_optimizer(model, arguments.optimizer)


JOINS = {"ddp": join_ddp, "horovod": join_horovod, "ringside": join_ringside, "plain": join_nobody}


def leave(arguments):
    # pylint: disable=import-outside-toplevel
    if arguments.library == "ddp":
        torch.distributed.destroy_process_group()
    elif arguments.library == "horovod":
        import horovod.torch as horovod
        horovod.shutdown()
    elif arguments.library == "ringside":
        import ringside.torch as ringside
        ringside.shutdown()


def make_batches(arguments):
    batches = models.make_batches(arguments.model, arguments.batch, arguments.size,
                                  arguments.layout == "channels_last")
    if arguments.device == "cuda":
        batches = [(x.pin_memory(), y.pin_memory()) for x, y in batches]
    return batches


def main():
    arguments = parse_arguments()
    torch.set_num_threads(1)
    torch.manual_seed(1 + arguments.rank)
    if arguments.device == "cuda":
        torch.cuda.set_device(arguments.rank)
        models.set_precision(arguments.precision, arguments.deterministic)
    batches = make_batches(arguments)
    model = models.make_model(arguments.model, arguments.size,
                              arguments.layout == "channels_last").to(arguments.device)
    together, optimizer = JOINS[arguments.library](arguments, model)
    loss_of = models.compile_loss(together, arguments.execution)
    is_bf16 = arguments.precision == "bf16"

    def step(index):
        x, y = (part.to(arguments.device, non_blocking=True)
                for part in batches[index % len(batches)])
        model.zero_grad(set_to_none=arguments.gradients == "fresh")
        with torch.autocast(arguments.device, torch.bfloat16, enabled=is_bf16):
            loss = loss_of(x, y)
        loss.backward()
        optimizer.step()
        return loss.item()

    for index in range(arguments.warmup):
        step(index)
    for _ in range(arguments.blocks):
        start = time.perf_counter()
        for index in range(arguments.steps):
            step(index)
        seconds = time.perf_counter() - start
        print(json.dumps({"rank": arguments.rank, "parameters": models.count_parameters(model),
                          "images_per_second": arguments.steps * arguments.batch / seconds}),
              flush=True)
    leave(arguments)


if __name__ == "__main__":
    main()
