"""PyTorch in one process, as bench/train has it: finds its best configuration, and measures it."""
import os
import statistics

import search
from launching import ROOT, Failed, run_lines
from peer_python import MALLOCS, OPENMPS, find_python

LAYOUT = {"layout": ("default", "channels_last"),
          "execution": ("eager", "compile", "compile-cpp")}
OPTIMIZER = {"optimizer": ("default", "fused", "foreach")}
STAGES = {"cpu": [LAYOUT, {"malloc": MALLOCS}, {"openmp": OPENMPS}, OPTIMIZER],
          "cuda": [{"layout": ("channels_last", "default"),
                    "execution": ("eager", "reduce-overhead", "max-autotune")}, OPTIMIZER]}

# Two threads that are less than this many times as fast as one are the sign of a hobbled peer.
LEAST_SCALING = 1.2
CELL_KEYS = ("model", "batch", "size", "threads")


class PytorchPeer:
    """`folder` is for what it compiles, so that a configuration is compiled once, and leaves behind."""

    def __init__(self, arguments, folder):
        self.device, self.precision = arguments.device, arguments.precision
        self.may_differ = arguments.allow_nondeterministic
        self.python = find_python("pytorch", arguments.python, self.device == "cuda")
        if self.device == "cuda" and not self.python.has_gpu:
            raise Failed(f"that PyTorch has no GPU: {self.python.path}; --python names another")
        self.folder = folder
        search.check_tries(arguments.tries, STAGES[self.device])
        self.stages = search.restrict(STAGES[self.device], arguments.tries,
                                      self.python.why_missing)
        self.kept = search.Kept(arguments.reuse, {"precision": self.precision,
                                                  "device": self.device,
                                                  "bits": "any" if self.may_differ else "same"},
                                CELL_KEYS)

    def measure(self, cell, configuration, rounds, threads=None):
        """The lines of so many rounds, in a process of their own."""
        threads = threads or cell["threads"]
        command = [self.python.path, os.path.join(ROOT, "bench", "peers", "pytorch_train.py"),
                   cell["model"], cell["batch"], threads, "--size", cell["size"], "--rounds",
                   rounds, "--precision", self.precision, "--device", self.device]
        if self.device == "cuda" and not self.may_differ:
            command.append("--deterministic")
        for name in ("layout", "execution", "optimizer"):
            command += [f"--{name}", configuration[name]]
        return run_lines(command, {"CUBLAS_WORKSPACE_CONFIG": ":4096:8", "TORCHINDUCTOR_CACHE_DIR": self.folder, "TMPDIR": self.folder,
                                   **self.python.environment(configuration, threads)})

    def rates(self, cell, configuration, rounds, threads=None):
        return [line["images_per_second"]
                for line in self.measure(cell, configuration, rounds, threads)]

    def find_best(self, cell):
        """What is kept of a search: the configuration, how threads scale, and all that was tried."""
        kept = self.kept.find(cell, self.python.version)
        if kept is not None:
            return kept
        best, tried = search.Search("PyTorch", self.stages, lambda configuration, rounds: self.rates(
            cell, configuration, rounds)).run()
        found = {"configuration": best, "version": self.python.version, "tried": tried}
        if self.device == "cpu" and cell["threads"] > 1:
            found.update(self.find_scaling(cell, best))
        return found

    def find_scaling(self, cell, configuration):
        """How many times as fast as one thread its threads are, in turn."""
        ones, alls = [], []
        for _ in range(search.FINAL_ROUNDS):
            ones += self.rates(cell, configuration, search.FINAL_BLOCKS, 1)
            alls += self.rates(cell, configuration, search.FINAL_BLOCKS)
        scaling = statistics.median(alls) / statistics.median(ones)
        return {"scaling": scaling, "is_hobbled": scaling < LEAST_SCALING}
