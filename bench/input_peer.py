"""PyTorch's DataLoader with torchvision, as bench/input has it: finds its best configuration, and measures it."""
import os
import subprocess

import search
from launching import ROOT, Failed
from peer_python import MALLOCS, find_python

# Of workers, those for each core; one process reads by itself.
STAGES = [{"decoder": ("pil", "draft", "tensor"), "workers": ("0", "1x", "2x")},
          {"prefetch": ("2", "8")}, {"malloc": MALLOCS}]
CELL_KEYS = ("size", "batch", "threads")


class InputPeer:
    """run_side(threads, command, variables) runs a command on so many cores, and gives its lines. `folder` is for what
    PyTorch leaves behind."""

    def __init__(self, arguments, run_side, folder):
        self.python = find_python("pytorch", arguments.python)
        self.caches = {"TORCHINDUCTOR_CACHE_DIR": folder, "TMPDIR": folder}
        done = subprocess.run([self.python.path, "-c", "import torchvision, PIL"], capture_output=True,
                              text=True, check=False, env={**os.environ, **self.caches})
        if done.returncode != 0:
            packages = os.path.join(ROOT, "bench", "peers", "pytorch.txt")
            raise Failed(f"{self.python.path} has no torchvision: {self.python.path} -m pip install -r {packages}")
        self.seconds, self.run_side = arguments.seconds, run_side
        search.check_tries(arguments.tries, STAGES)
        self.stages = search.restrict(STAGES, arguments.tries, self.python.why_missing)
        images = arguments.images or "mosaics"
        self.kept = search.Kept(arguments.reuse, {"images": images}, CELL_KEYS)

    def measure(self, cell, configuration, rounds):
        """The lines of so many rounds, in a process of their own and its workers."""
        workers = int(configuration["workers"].rstrip("x")) * cell["threads"]
        command = [self.python.path, os.path.join(ROOT, "bench", "peers", "pytorch_input.py"),
                   cell["kind"], cell["folder"], cell["size"], cell["batch"], "--decoder",
                   configuration["decoder"], "--workers", workers, "--prefetch",
                   configuration["prefetch"], "--rounds", rounds, "--seconds", self.seconds]
        return self.run_side(cell["threads"], command, {
            **self.caches, **self.python.environment(configuration, cell["threads"])})

    def find_best(self, cell):
        """What is kept of a search: the configuration, and all that was tried."""
        kept = self.kept.find(cell, self.python.version)
        if kept is not None:
            return kept

        def rates(configuration, rounds):
            return [line["images_per_second"] for line in self.measure(cell, configuration, rounds)]

        # Images in memory are not decoded: `draft` is the same as `pil`.
        stages = [{name: tuple(value for value in values if cell["kind"] != "cifar" or value != "draft")
                   for name, values in stage.items()} for stage in self.stages]
        if not all(values for stage in stages for values in stage.values()):
            raise Failed("--try decoder=draft: CIFAR-10 has no JPEG files")
        best, tried = search.Search("PyTorch", stages, rates).run()
        return {"configuration": best, "version": self.python.version, "tried": tried}
