"""Parts 5 and 6 of first-hour: several workers of one GPU or of several, and PyTorch scripts."""
import json
import os
import shutil
import statistics
import sys
import tempfile

from hour import ROOT, Failed, NotRun


# Part 5 ------------------------------------------------------------------------------------------------

def several_workers(hour, mode, workers, *options):
    model = ["--model", "lenet5", "--batch", 4 * workers, "--steps", "4"] if hour.is_fake else [
        "--model", "resnet50v2", "--image-size", "128", "--batch", 64 * workers, "--steps", "40",
        "--precision", "bf16", "--lr", "0.001"]
    summary = hour.job("-".join([f"{mode}-{workers}", *(option.lstrip("-") for option in options)]),
                       "--mode", mode, "-n", workers, "--eval", "none", *options, *model)
    return {key: summary[key] for key in ("images_per_second", "ms_per_step", "transport",
                                          "params_digest", "bits_of")}


def same_digest(hour, workers):
    digests = [step["figures"]["params_digest"] for step in hour.report["steps"]
               if step["step"].endswith(f" of {workers} workers") and step["state"] == "passed"]
    if len(digests) < 2:
        raise NotRun("there are not two jobs to compare")
    if len(set(digests)) != 1:
        raise Failed(f"the bits differ: {digests}")
    return {}


def sums_on_gpus(hour, workers):
    figures = several_workers(hour, "ring", workers, "--log-level", "info")
    if workers > 1 and figures["transport"] != "gpu":
        whys = [line for line in hour.log.splitlines() if "by way of the host" in line]
        raise Failed("\n".join([f"gradients were summed by way of {figures['transport']}, not on the GPUs",
                                *whys[:workers]]))
    if workers > 1:
        beside = [line for line in hour.log.splitlines() if "launched beside CUDA graphs" in line]
        figures["sums"] = beside[0] if beside else "in the CUDA graph of backward"
    return figures


def exchange_alone(hour, way, workers):
    """An all-reduce without training, for some sizes: microseconds, and what nccl-tests call busbw."""
    rows = []
    for size in ("4096", "262144") if hour.is_fake else ("4096", "1048576", "16777216", "268435456"):
        said = hour.run([hour.program("bench/bench_gpu_exchange"), "--by", way, "--workers", workers,
                         "--bytes", size, "--warmup", "5", "--rounds", "50"])
        lines = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
        first = next(line for line in lines if line["rank"] == 0)
        rows.append({"bytes": int(size), "us_median": first["us_median"], "us_p90": first["us_p90"],
                     "busbw_gbps": int(size) / first["us_median"] / 1e3 * 2 * (workers - 1) / workers})
    return rows


def need_nccl(hour, workers):
    about = json.loads(hour.run([hour.program("bench/bench_gpu_exchange"), "--list"]))
    if about["gpus"] < workers:
        raise NotRun(f"NCCL takes one worker for each GPU, and this machine has {about['gpus']}")
    if about["nccl"] is None:
        raise NotRun("there is no libnccl.so.2 (pip install nvidia-nccl-cu13)")


def exchange_by_nccl(hour, workers):
    need_nccl(hour, workers)
    return exchange_alone(hour, "nccl", workers)


def ring_by_nccl(hour, workers):
    need_nccl(hour, workers)
    figures = several_workers(hour, "ring", workers, "--all-reduce", "nccl")
    if (figures["transport"], figures["bits_of"]) != ("nccl", "nccl"):
        raise Failed(f"the job does not say that NCCL added up: {figures}")
    return figures


def ddp(hour, workers):
    """The same training by PyTorch's DistributedDataParallel, at what usually is its best."""
    need_torch(hour)
    gpus = int(hour.run([sys.executable, "-c", "import torch; print(torch.cuda.device_count())"]))
    if gpus < workers:
        raise NotRun(f"DDP takes one worker for each GPU, and PyTorch sees {gpus}")
    said = hour.run([
        sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", workers,
        os.path.join(ROOT, "bench", "peers", "pytorch_workers.py"), "resnet50v2", 64, "--size", 128,
        "--with", "ddp", "--device", "cuda", "--precision", "bf16", "--layout", "channels_last",
        "--optimizer", "fused", "--deterministic", "--warmup", 20, "--steps", 40, "--blocks", 3, "--folder",
        tempfile.mkdtemp(dir=hour.folder)], variables={"CUBLAS_WORKSPACE_CONFIG": ":4096:8", "TMPDIR": hour.folder})
    ranks = {}
    for line in (json.loads(line) for line in said.splitlines() if line.startswith("{")):
        ranks.setdefault(line["rank"], []).append(line["images_per_second"])
    if len(ranks) != workers:
        raise Failed(f"{len(ranks)} of {workers} workers said how fast they were:\n{said[-500:]}")
    rates = [sum(of) for of in zip(*ranks.values())]
    return {"images_per_second": statistics.median(rates), "least": min(rates), "most": max(rates)}


def part_5(hour):
    for workers in (1, 2, 4):
        hour.step(f"ring of {workers} workers", sums_on_gpus, hour, workers)
        if workers > 1:
            hour.step(f"ring by the host of {workers} workers", several_workers, hour, "ring", workers,
                      "--no-cuda-peers")
        hour.step(f"ps-sync of {workers} workers", several_workers, hour, "ps-sync", workers)
        hour.step(f"ps-sync on the GPU of {workers} workers", several_workers, hour, "ps-sync", workers,
                  "--server-device", "cuda")
        hour.step(f"the same bits from {workers}", same_digest, hour, workers)
        if workers > 1:
            hour.step(f"all-reduce of {workers} GPUs' workers", exchange_alone, hour, "peers", workers)
            hour.step(f"all-reduce by NCCL among {workers}", exchange_by_nccl, hour, workers)
            hour.step(f"ring of {workers} by NCCL", ring_by_nccl, hour, workers)
            hour.step(f"PyTorch's DDP on {workers} GPUs", ddp, hour, workers)


# Part 6 ------------------------------------------------------------------------------------------------

def torch_script(hour, mode, workers, updates="script"):
    """What rank 0 printed; mode None: the script without a job."""
    script = [sys.executable, os.path.join(ROOT, "tests", "gpu", "train_torch.py")]
    variables = {"RINGSIDE_LIBRARY": hour.program("worker/library/libringside.so.1"),
                 "RINGSIDE_UPDATES": updates, "PYTHONPATH": os.path.join(ROOT, "worker", "python")}
    if mode is None:
        return json.loads(hour.run([*script, "--alone"], variables=variables).splitlines()[-1])
    out = os.path.join(hour.folder, "script")
    shutil.rmtree(out, ignore_errors=True)
    if mode.startswith("ps-"):
        variables.pop("RINGSIDE_UPDATES")
    hour.run([hour.program("deploy/ringside"), "run", "-n", workers, "--mode", mode, "--out", out, "--",
              *script], variables=variables)
    with open(os.path.join(out, "logs", "worker-0.log"), encoding="utf-8") as log:
        said = json.loads([line for line in log if line.startswith("{")][-1])
    if said["warnings"]:
        raise Failed("\n".join(said["warnings"]))
    return said


def need_torch(hour):
    hour.need_gpu()
    check = "import sys, torch; sys.exit(not torch.cuda.is_available())"
    try:
        hour.run([sys.executable, "-c", check])
    except Failed as failed:
        raise NotRun(f"{sys.executable} has no PyTorch that sees the GPU") from failed


def scripts_alike(hour, ways):
    """Ends with the same parameters, whatever moves them."""
    need_torch(hour)
    found = {str(way): torch_script(hour, *way) for way in ways}
    if len({figures["digest"] for figures in found.values()}) != 1:
        raise Failed(f"the bits differ: {found}")
    return found


def scripts_beside(hour):
    """How many images a second all processes train together, over those of one without a job."""
    need_torch(hour)
    alone = torch_script(hour, None, 1)["images_per_second"]
    rates = {f"{mode} of {workers}": torch_script(hour, mode, workers)
             for mode, workers in (("ring", 1), ("ring", 2), ("ps-sync", 2), ("ps-async", 2))}
    return {"alone": alone, **{way: {"ratio_of_each": of["images_per_second"] / alone, **of}
                               for way, of in rates.items()}}


def part_6(hour):
    hour.step("scripts: one process is plain PyTorch", scripts_alike, hour,
              ((None, 1), ("ring", 1)))
    hour.step("scripts: both designs alike", scripts_alike, hour,
              (("ring", 2, "job"), ("ps-sync", 2)))
    hour.step("scripts: beside plain PyTorch", scripts_beside, hour)
