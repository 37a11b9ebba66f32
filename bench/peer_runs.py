"""Runs the peers of bench/peers/, as BENCH_PEERS names them: each gives a line for each variant."""
import json
import os
import shutil
import sys

from launching import LOCAL, TIMEOUT_S, Failed, Processes, run_lines

NAMES = ("gloo", "mpi", "mpi-tcp", "mpi-tuned")
GPU_NAMES = ("nccl",)

GLOO_ALGORITHMS = ("ring", "ring_chunked", "halving_doubling", "new_ring", "new_bcube")
# Gives a wrong result, or none, now and then: it has a run of its own, which may fail.
GLOO_UNSURE = "bcube"

MPIRUN = ("mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "--mca",
          "oob_tcp_if_include")
MPI_TCP = ("--mca", "pml", "ob1", "--mca", "btl", "self,tcp", "--mca", "btl_tcp_if_include")
# Open MPI's ring in segments: the best that it has for long vectors.
MPI_TUNED = ("--mca", "coll_tuned_use_dynamic_rules", "1", "--mca",
             "coll_tuned_allreduce_algorithm", "5", "--mca",
             "coll_tuned_allreduce_algorithm_segmentsize")
SEGMENTS = (32 << 10, 128 << 10, 512 << 10, 2 << 20)


def program_of(build, name):
    program = "gloo_allreduce" if name == "gloo" else "mpi_allreduce"
    return os.path.join(build, "bench", "peers", program)


def gpu_program_of(build):
    return os.path.join(build, "bench", "bench_gpu_exchange")


def why_no_nccl(build, workers):
    program = gpu_program_of(build)
    if not os.access(program, os.X_OK):
        return (f"{build} was built without CUDA: install its toolkit (deploy/install-dependencies --cuda), "
                f"then build anew: ninja -C {build}")
    about = run_lines([program, "--list"])[0]
    if about["nccl"] is None:
        return ("there is no libnccl.so.2 that can be used: install libnccl2, or `pip install "
                "nvidia-nccl-cu13`, and let LD_LIBRARY_PATH name its folder")
    if about["gpus"] < workers:
        return f"it takes one worker for each GPU, and there are {about['gpus']} GPUs for {workers} workers"
    return None


def why_missing(build, name, workers=0):
    """What it lacks, and what to do about it; None if it is there."""
    if name in GPU_NAMES:
        return why_no_nccl(build, workers)
    if not os.access(program_of(build, name), os.X_OK):
        package = "libgloo-dev and g++" if name == "gloo" else "libopenmpi-dev"
        return (f"{build} was built without it; install {package} (deploy/install-dependencies --bench), "
                f"then build anew: ninja -C {build}")
    if name != "gloo" and shutil.which("mpirun") is None:
        return "there is no mpirun; install openmpi-bin (deploy/install-dependencies --bench)"
    return None


def installed(build, names, were_named, workers=0):
    """Those that can run, with so many workers. One that the command line names has to be there; of others that are not, a
    line says so."""
    found = []
    for name in names:
        why = why_missing(build, name, workers)
        if why is None:
            found.append(name)
        elif were_named:
            raise Failed(f"the peer {name} cannot run: {why}")
        else:
            print(f"{name} skipped: {why}", file=sys.stderr)
    return found


def merge(lines, workers):
    """Rank 0's line of each algorithm, with the CPU seconds of all ranks."""
    merged = {}
    for line in sorted(lines, key=lambda line: line["rank"]):
        algorithm = line.get("algorithm", "")
        if not line["verified"]:
            raise Failed(f"a wrong result: {json.dumps(line)}")
        if line["rank"] == 0:
            merged[algorithm] = {**line, "ranks": 1}
        elif algorithm in merged:
            merged[algorithm]["cpu_seconds"] += line["cpu_seconds"]
            merged[algorithm]["ranks"] += 1
    return [line for line in merged.values() if line.pop("ranks") == workers]


def run_gpus(build, way, size, workers, warmup, rounds, buckets=1):
    """The GPUs of this host: in each other's memory ("peers"), which is ours, or by NCCL ("nccl")."""
    with Processes(TIMEOUT_S) as processes:
        processes.start([gpu_program_of(build), "--by", way, "--workers", workers, "--bytes", size,
                         "--warmup", warmup, "--rounds", rounds, "--buckets", buckets])
        processes.wait()
        return merge(processes.results(), workers)


def run_gloo_once(build, size, hosts, warmup, rounds, algorithms, timeout_s):
    with Processes(timeout_s) as processes:
        store = os.path.join(processes.folder.name, "store")
        os.mkdir(store)
        for rank, host in enumerate(hosts):
            processes.start([program_of(build, "gloo"), store, host.address, rank, len(hosts), size,
                             warmup, rounds, ",".join(algorithms)], host)
        processes.wait()
        return merge(processes.results(), len(hosts))


def run_gloo(build, size, hosts, warmup, rounds, algorithms=GLOO_ALGORITHMS, has_unsure=True):
    lines = run_gloo_once(build, size, hosts, warmup, rounds, algorithms, TIMEOUT_S)
    if has_unsure and len(hosts) & (len(hosts) - 1) == 0:
        try:
            lines += run_gloo_once(build, size, hosts, warmup, rounds, [GLOO_UNSURE],
                                   max(10, 4 * lines[0]["seconds"]))
        except Failed as failed:
            print(f"gloo's {GLOO_UNSURE} left out, {len(hosts)} workers, {size} bytes: "
                  f"{str(failed).splitlines()[0]}", file=sys.stderr)
    return lines


def run_mpirun(build, arguments, size, workers, warmup, rounds):
    with Processes(TIMEOUT_S) as processes:
        processes.start([*MPIRUN, "lo", *arguments, "-n", workers, program_of(build, "mpi"), size,
                         warmup, rounds])
        processes.wait()
        return merge(processes.results(), workers)


def run_mpi_on(build, size, links, workers, warmup, rounds):
    """Over the links of netns.py. mpirun is at the bridge, where all hosts can reach it, and each
    rank goes to a host of its own."""
    enter = f'exec ip netns exec {links.prefix}$OMPI_COMM_WORLD_RANK "$0" "$@"'
    with Processes(TIMEOUT_S) as processes:
        processes.start(["env", "PMIX_MCA_ptl_base_if_include=br0", *MPIRUN, "br0", *MPI_TCP,
                         "eth0", "-n", workers, "sh", "-c", enter, program_of(build, "mpi"), size, warmup,
                         rounds], links.bridge)
        processes.wait()
        return merge(processes.results(), workers)


def run_mpi(build, name, size, workers, warmup, rounds):
    if name == "mpi":
        return run_mpirun(build, [], size, workers, warmup, rounds)
    if name == "mpi-tcp":
        return run_mpirun(build, [*MPI_TCP, "lo"], size, workers, warmup, rounds)
    lines = []
    for segment in SEGMENTS:
        # One segment or none is the same as without.
        if segment * workers <= 2 * size:
            for line in run_mpirun(build, [*MPI_TUNED, str(segment)], size, workers, warmup,
                                   rounds):
                lines.append({**line, "algorithm": f"ring in {segment >> 10} KiB"})
    return lines


def run_peer(build, name, size, workers, warmup, rounds):
    """Lines as bench_exchange prints them, one for each variant, with the peer's name."""
    if name == "gloo":
        lines = run_gloo(build, size, [LOCAL] * workers, warmup, rounds)
    else:
        lines = run_mpi(build, name, size, workers, warmup, rounds)
    return [{**line, "library": name} for line in lines]
