"""Which Python has a peer, and the settings of its process: malloc, OpenMP, the cores that it has."""
import ctypes.util
import json
import os
import shutil
import subprocess
import sys

from launching import ROOT, Failed

NAMES = ("pytorch", "tensorflow", "horovod")

# Keep large buffers: otherwise half of the time of one thread goes to page faults.
TUNED = {"MALLOC_MMAP_THRESHOLD_": "1073741824", "MALLOC_TRIM_THRESHOLD_": "1073741824",
         "MALLOC_TOP_PAD_": "268435456"}
JEMALLOC = ("oversize_threshold:1,background_thread:true,metadata_thp:auto,dirty_decay_ms:-1,"
            "muzzy_decay_ms:-1")
MALLOCS = ("tuned", "huge-pages", "tcmalloc", "jemalloc")
MALLOC_LIBRARIES = {"tcmalloc": "tcmalloc_minimal", "jemalloc": "jemalloc"}
OPENMPS = ("gomp", "gomp-pinned", "intel", "intel-1ms")

DESCRIBE = """
import importlib, json, os, sys
module = importlib.import_module(sys.argv[1])
openmp = os.path.join(sys.prefix, "lib", "libiomp5.so")
print(json.dumps({"version": module.__version__, "openmp": os.path.exists(openmp) and openmp,
                  "has_gpu": sys.argv[1] == "torch" and module.cuda.is_available()}))
"""
MODULES = {"pytorch": "torch", "tensorflow": "tensorflow", "horovod": "horovod"}


def default_python(name):
    """Of the virtual environment that bench/install-peers makes."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(
        os.environ.get("HOME") or "/var/tmp", ".cache")
    with open(os.path.join(ROOT, "bench", "peers", f"{name}.txt"), encoding="utf-8") as file:
        folder = file.readline().strip().replace("==", "-")
    return os.path.join(cache, "ringside-python", folder, "bin", "python")


class PeerPython:
    """An interpreter that has the peer. Raises Failed, which says how to get it, if it has not."""

    def __init__(self, name, python):
        self.path = python or default_python(name)
        how = f"bench/install-peers {name} installs it, and so does deploy/install-dependencies --bench"
        if not os.access(self.path, os.X_OK):
            raise Failed(f"{name} is not installed: there is no {self.path}; {how}")
        done = subprocess.run([self.path, "-c", DESCRIBE, MODULES[name]], capture_output=True,
                              text=True, check=False)
        if done.returncode != 0:
            said = (done.stderr.strip().splitlines() or ["no output"])[-1]
            raise Failed(f"{self.path} has no {MODULES[name]} ({said}); {how}")
        found = json.loads(done.stdout.splitlines()[-1])
        self.version, self.openmp, self.has_gpu = (found["version"], found["openmp"],
                                                   found["has_gpu"])

    def why_missing(self, setting, value):
        """Of a value of `malloc` or `openmp`; None if it can be had."""
        if setting == "malloc" and value in MALLOC_LIBRARIES:
            if ctypes.util.find_library(MALLOC_LIBRARIES[value]) is None:
                return (f"the library {MALLOC_LIBRARIES[value]} is not installed "
                        "(deploy/install-dependencies --bench)")
        if setting == "openmp" and value.startswith("intel") and not self.openmp:
            return f"that of {self.path} has no package intel-openmp"
        return None

    def environment(self, configuration, threads):
        """Variables of a process that is to run with these settings."""
        preloads, openmp = [], configuration.get("openmp", "gomp")
        variables = {name: str(threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS",
                                                     "OPENBLAS_NUM_THREADS")}
        malloc = configuration.get("malloc", "tuned")
        if malloc in MALLOC_LIBRARIES:
            preloads.append(ctypes.util.find_library(MALLOC_LIBRARIES[malloc]))
            variables.update({"MALLOC_CONF": JEMALLOC, "TCMALLOC_RELEASE_RATE": "0"})
        else:
            variables.update(TUNED)
        if malloc == "huge-pages":
            variables["GLIBC_TUNABLES"] = "glibc.malloc.hugetlb=1"
        if openmp == "gomp-pinned":
            variables["GOMP_CPU_AFFINITY"] = " ".join(map(str, cores(threads)))
        if openmp.startswith("intel"):
            preloads.append(self.openmp)
            variables.update({"KMP_AFFINITY": "granularity=fine,compact,1,0",
                              "KMP_BLOCKTIME": "1" if openmp == "intel-1ms" else "200"})
        if preloads:
            variables["LD_PRELOAD"] = " ".join(preloads)
        return variables


def find_python(name, python, needs_gpu=False):
    """The interpreter that was asked for; else that of bench/install-peers; else one that runs here and
    has the peer, as machines with a GPU come with one. With needs_gpu the first that sees a GPU, if one
    does."""
    if python is not None:
        return PeerPython(name, python)
    blind = None
    for path in dict.fromkeys((None, sys.executable, shutil.which("python3"), shutil.which("python"))):
        try:
            found = PeerPython(name, path)
        except Failed:
            continue
        if found.has_gpu or not needs_gpu:
            return found
        blind = blind or found
    return blind or PeerPython(name, None)


def cores(count):
    """The first ones that this process may use."""
    return sorted(os.sched_getaffinity(0))[:count]
