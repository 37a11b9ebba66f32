"""The peers of bench/training-peers: what of each is searched, and how its workers are started."""
import os
import socket

from launching import LOCAL, ROOT, Failed, Processes
from netns import INTERFACE
from peer_python import MALLOCS, PeerPython, cores
from pytorch_peer import LAYOUT, OPTIMIZER

PINNING = {"cores": ("own", "shared")}  # each worker bound to a core, or left to the kernel
MALLOC = {"malloc": MALLOCS}
WARMUP = 10
TIMEOUT_S = 300  # of one measurement; what hangs is left out of a search


def free_ports(count):
    """TensorFlow has to be told its ports before it has them."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


class WorkerPeer:
    """One that trains with several workers of one thread each. A subclass says how."""

    library = None  # as bench/install-peers names it
    stages = ()

    def __init__(self, arguments, folder):
        self.workers, self.batch, self.folder = arguments.workers, arguments.batch, folder
        links = getattr(arguments, "links", None)
        self.hosts = links.hosts if links else [LOCAL] * self.workers  # of workers, then of servers
        self.is_on_links = links is not None
        self.python = PeerPython(self.library, getattr(arguments, self.library))
        self.version = self.python.version

    def commands(self, configuration, options):
        """Of its processes: pairs of a worker's rank, None for what is not one, and a command."""
        raise NotImplementedError

    def prefix(self, configuration, rank):
        """What comes before a command: variables, and the core."""
        variables = {"TORCHINDUCTOR_CACHE_DIR": self.folder, "TMPDIR": self.folder,
                     **self.python.environment(configuration, 1)}
        if "cycle-ms" in configuration:
            variables["HOROVOD_CYCLE_TIME"] = configuration["cycle-ms"]
        prefix = ["env", *(f"{name}={value}" for name, value in variables.items())]
        if configuration["cores"] == "own" and rank is not None:
            own = cores(self.workers)
            prefix += ["taskset", "-c", own[rank % len(own)]]
        return prefix

    def measure(self, model, configuration, blocks, steps):
        """Images per second of all workers in each block, and the model's parameters."""
        with Processes(TIMEOUT_S) as processes:
            options = [model, self.batch, "--warmup", WARMUP, "--steps", steps, "--blocks", blocks,
                       "--folder", processes.folder.name]
            if self.is_on_links:
                options += ["--interface", INTERFACE]
            for rank, command in self.commands(configuration, options):
                processes.start([*self.prefix(configuration, rank), self.python.path, *command],
                                self.hosts[rank or 0])
            processes.wait()
            lines = processes.results()
        ranks = {}
        for line in lines:
            ranks.setdefault(line["rank"], []).append(line["images_per_second"])
        if not lines or {len(of) for of in ranks.values()} != {blocks}:
            raise Failed(f"workers printed {len(lines)} results for {blocks} blocks")
        rates = [sum(of) for of in zip(*ranks.values())]
        return rates, lines[0]["parameters"]


def script(name):
    return os.path.join(ROOT, "bench", "peers", name)


def flags(configuration, *names):
    return [word for name in names if name in configuration
            for word in (f"--{name}", configuration[name])]


class Ddp(WorkerPeer):
    """PyTorch's DistributedDataParallel over Gloo."""

    library = "pytorch"
    stages = [LAYOUT, MALLOC, OPTIMIZER,
              {"bucket-mb": ("25", "4", "1"), "gradients": ("fresh", "kept")},
              {"static-graph": ("on", "off"), "bucket-view": ("on", "off")}, PINNING]
    way = "ddp"

    def commands(self, configuration, options):
        return [(rank, [script("pytorch_workers.py"), "--with", self.way, "--rank", rank,
                        "--workers", self.workers, *options,
                        *flags(configuration, "layout", "execution", "optimizer", "bucket-mb",
                               "gradients", "static-graph", "bucket-view")]) for rank in range(self.workers)]


class Horovod(Ddp):
    """On the PyTorch that it still builds with. It refuses gradients in channels_last."""

    library = "horovod"
    stages = [{"gradients": ("fresh", "kept")}, MALLOC, {"optimizer": ("default", "foreach")},
              {"cycle-ms": ("1", "0.1", "5")}, PINNING]
    way = "horovod"

    def __init__(self, arguments, folder):
        super().__init__(arguments, folder)
        if self.is_on_links:
            raise Failed("horovod is not measured over links: its Gloo connects to what the host's name "
                         "stands for, whatever interface it is given; leave out --mbit")


class MultiWorker(WorkerPeer):
    """TensorFlow's MultiWorkerMirroredStrategy, over its rings."""

    library = "tensorflow"
    stages = [{"xla": ("off", "on")}, MALLOC, {"inter-op": ("2", "1")}, PINNING]

    def commands(self, configuration, options):
        addresses = ",".join(f"127.0.0.1:{port}" for port in free_ports(self.workers))
        return [(rank, [script("tensorflow_workers.py"), "--strategy", "multiworker", "--role",
                        "worker", "--index", rank, "--cluster", f"worker={addresses}", *options,
                        *flags(configuration, "xla", "inter-op")])
                for rank in range(self.workers)]


class ParameterServer(WorkerPeer):
    """TensorFlow's ParameterServerStrategy: one server, and a chief that schedules steps."""

    library = "tensorflow"
    stages = [{"xla": ("off", "on")}, MALLOC, {"inter-op": ("2", "1")},
              {"steps-per-call": ("10", "1")}, PINNING]

    def commands(self, configuration, options):
        roles = [("worker", rank) for rank in range(self.workers)] + [("ps", 0), ("chief", 0)]
        addresses = [f"127.0.0.1:{port}" for port in free_ports(len(roles))]
        cluster = []
        for role in ("worker", "ps", "chief"):
            of = [address for (name, _), address in zip(roles, addresses) if name == role]
            cluster += ["--cluster", f"{role}={','.join(of)}"]
        return [(index if role == "worker" else None,
                 [script("tensorflow_workers.py"), "--strategy", "parameter-server", "--role", role,
                  "--index", index, *cluster, *options,
                  *flags(configuration, "xla", "inter-op", "steps-per-call")])
                for role, index in roles]


PEERS = {"ddp": Ddp, "tf-multiworker": MultiWorker, "tf-ps": ParameterServer, "horovod": Horovod}
