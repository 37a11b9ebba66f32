"""The cells of bench/predict: which jobs are measured and predicted."""
import collections
import fnmatch
import random

MODELS = ("cnn", "resnet20", "lenet5")
CALIBRATION_STEPS = {"cnn": 200, "resnet20": 120, "lenet5": 2000}
CALIBRATION_RUNS = ("local", "ring", "ring-apart", "ring-small-buckets", "ps-sync", "ps-sync-compress",
                    "ring-apart-again", "local-again", "ring-few-cores", "local-long-steps",
                    "ring-few-cores-long-steps")
LINK_RUNS = {"ring": ["--mode", "ring"],
             "ring-small-buckets": ["--mode", "ring", "--bucket-mb", "0.0625"],
             "ps-sync": ["--mode", "ps-sync", "--servers", "1"]}
DESIGNS = ("ring:ring", "ring:halving-doubling", "ring:direct", "ring:auto", "ps-sync:1", "ps-sync:2",
           "ps-sync:4", "ps-ssp:2", "ps-async")
STRAGGLERS = {"straggler": "rank=1,factor=1.5"}
CODECS = {"fp16": "fp16", "int8": "int8"}
NETWORKS = ("tcp", "shm", "1gbit", "250mbit", "delay2ms")
BLIND_WORKERS = (3, 4, 5, 6, 7, 8)

# What a network is: megabits of each host's link, and a delay one way, in milliseconds. Of the two
# that have neither, all processes are on one host.
Network = collections.namedtuple("Network", "mbit delay_ms")
LINKS = {"1gbit": Network(1000, 0), "250mbit": Network(250, 0), "delay2ms": Network(1000, 2)}


class Cell(collections.namedtuple("Cell", "model network design workers extra")):
    """One job. Its name is "cnn/tcp/ring:ring/n4", with "/straggler" or "/fp16" behind it."""

    @property
    def name(self):
        words = [self.model, self.network, self.design, f"n{self.workers}"]
        return "/".join(words + ([self.extra] if self.extra else []))

    @property
    def mode(self):
        """As --mode has it."""
        kind = self.design.split(":")[0]
        return self.design if kind == "ps-ssp" else kind

    @property
    def servers(self):
        """0 in ring; ps-ssp and ps-async have one."""
        kind, _, number = self.design.partition(":")
        return 0 if kind == "ring" else int(number) if kind == "ps-sync" else 1

    @property
    def options(self):
        """Of the job, which run, ps and predict take alike."""
        words = ["--mode", self.mode]
        if self.servers > 0:
            words += ["--servers", str(self.servers)]
        elif self.network != "shm":
            words += ["--all-reduce", self.design.split(":")[1]]
        if self.extra in STRAGGLERS:
            words += ["--straggler", STRAGGLERS[self.extra]]
        elif self.extra:
            words += ["--compress", CODECS[self.extra]]
        return words


def calibration(cell):
    """What names the costs and the network that a cell is predicted from: its model, its network, and
    its codes."""
    return ([cell.model] + ([cell.network] if cell.network != "tcp" else [])
            + ([cell.extra] if cell.extra in CODECS else []))


def groups(cells):
    """Lists of cells with the same calibration: models one after the other, and their networks."""
    found = {}
    for cell in sorted(cells, key=lambda cell: (MODELS.index(cell.model),
                                                NETWORKS.index(cell.network), cell.extra in CODECS)):
        found.setdefault("-".join(calibration(cell)), []).append(cell)
    return list(found.values())


def planned():
    """Every design over tcp among 4 and 8 workers, and a choice of the others for each model."""
    cells = []
    for model in MODELS:
        for workers in (4, 8):
            cells += [Cell(model, "tcp", design, workers, "") for design in DESIGNS]
            cells += [Cell(model, "shm", design, workers, "") for design in ("ring:auto", "ps-sync:1")]
        for network in LINKS:
            cells += [Cell(model, network, design, 4, "")
                      for design in ("ring:ring", "ps-sync:2", "ps-async")]
        cells += [Cell(model, "1gbit", "ring:auto", 8, ""), Cell(model, "250mbit", "ps-sync:4", 8, "")]
        cells += [Cell(model, "tcp", design, 4, "straggler")
                  for design in ("ring:ring", "ps-sync:1", "ps-ssp:2")]
        cells += [Cell(model, "250mbit", "ring:ring", 4, "fp16"),
                  Cell(model, "tcp", "ps-sync:1", 4, "int8")]
    return cells


def quick():
    """A few that show whether all of it works."""
    return [Cell("lenet5", "tcp", "ring:ring", 4, ""), Cell("lenet5", "tcp", "ps-sync:2", 4, ""),
            Cell("lenet5", "tcp", "ps-async", 4, "straggler"), Cell("lenet5", "shm", "ring:auto", 4, ""),
            Cell("lenet5", "250mbit", "ring:ring", 3, ""), Cell("lenet5", "1gbit", "ps-sync:2", 3, "")]


def blind(seed, count, networks=NETWORKS):
    """Drawn from all that may be combined, with other numbers of workers, too; none twice."""
    draw = random.Random(seed)
    cells = []
    while len(cells) < count:
        cell = Cell(draw.choice(MODELS), draw.choice(networks), draw.choice(DESIGNS),
                    draw.choice(BLIND_WORKERS), draw.choice(("", "", "straggler", *CODECS)))
        if cell.network == "shm" and cell.servers == 0:
            cell = cell._replace(design="ring:auto")  # by messages there would be no shared memory
        if cell not in cells:
            cells.append(cell)
    return cells


def select(cells, patterns):
    """Those whose name is like one of the patterns of a shell; all of them without any."""
    return [cell for cell in cells
            if not patterns or any(fnmatch.fnmatch(cell.name, pattern) for pattern in patterns)]
