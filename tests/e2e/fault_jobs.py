"""Kinds of job for check_faults: of every mode, and by every way to start one.

What a kind leaves open (workers, servers, transport) is drawn. Steps are slowed down by --straggler,
so that jobs last for seconds and cost little; that changes no bit of what is synchronous.
"""
STEPS = 60
COMMON = ["--model", "lenet5", "--data", "synthetic", "--limit-train", "240", "--limit-test", "1000",
          "--global-batch", "24", "--bucket-mb", "0.05", "--steps", str(STEPS), "--threads", "1",
          "--straggler", "dist=exponential:mean=15ms,share=1", "--report-every", "1",
          "--start-timeout", "20", "--lost-after", "5", "--on-loss", "fail", "--stall-warn", "3", "--stall-fail", "20",
          "--log-level", "info"]
TRANSPORTS = ("auto", "auto", "tcp", "ipc", "shm")

# Options; fewest workers; how many servers at most; whether the bits are those of all such jobs.
KINDS = {
    "local": (["--mode", "local"], 1, 0, True),
    "ring": (["--mode", "ring"], 2, 0, True),
    "ring-halving": (["--mode", "ring", "--all-reduce", "halving-doubling"], 2, 0, True),
    "ps-sync": (["--mode", "ps-sync"], 2, 1, True),
    "ps-sync-shards": (["--mode", "ps-sync"], 2, 3, True),
    "ps-ssp": (["--mode", "ps-ssp:2"], 2, 2, False),
    "ps-async": (["--mode", "ps-async"], 2, 2, False),
    "seeded": (["--mode", "ps-async", "--order", "seeded:uniform:0..3"], 2, 2, True),
    "phases": (["--mode", "ring", "--switch", "step:20=ps-sync", "--switch", "step:40=ring"], 2, 2,
               True),
    "backup": (["--mode", "ps-sync", "--backup", "1"], 3, 1, False),
    "local-steps": (["--mode", "ring", "--sync-every", "4"], 2, 0, True),
    "compressed": (["--mode", "ps-sync", "--compress", "int8"], 2, 2, True),
    "buckets-auto": (["--mode", "ring", "--bucket-mb", "auto"], 2, 0, False),
    "sweep": (["--grid", "mode=ring,ps-sync"], 2, 1, False),
    "compare": (["--modes", "ring,ps-async"], 2, 1, False),
    "by-hand": (["--mode", "ps-sync"], 2, 2, True),
    "two-agents": (["--mode", "ps-sync"], 2, 2, True),
}


class Job:
    """One job of a kind."""

    top_role = "launcher"
    is_launched = True

    def __init__(self, kind, workers, servers, transport):
        self.kind, self.workers, self.servers, self.transport = kind, workers, servers, transport
        self.is_many = kind in ("sweep", "compare")

    def __str__(self):
        return f"{self.workers} workers, {self.servers} servers, {self.transport}"

    def members(self):
        """Those that every phase of the job has."""
        servers = [f"server {index}" for index in range(max(1, self.servers))]
        return servers + [f"worker {rank}" for rank in range(self.workers)]

    def roles(self):
        """Whom a fault may hit. The launcher and its agents as often as each of the members."""
        return ["launcher", "agent", *self.members()]

    def options(self, lab):
        return [*COMMON, *KINDS[self.kind][0], *lab.device()]

    def makes_all_steps(self):
        """With backup workers, and where races decide, a worker may make fewer than others."""
        return KINDS[self.kind][3]

    def bits_of(self, summary):
        """A name for what it computes; None if that is not the same every time."""
        if not KINDS[self.kind][3]:
            return None
        is_mean = self.kind not in ("seeded", "local-steps", "compressed", "local")
        servers = f" {self.servers}" if self.kind == "compressed" else ""
        return f"{'mean' if is_mean else self.kind} of {summary['workers']}{servers}"

    def start(self, lab):
        """The pid of who gives the verdict."""
        command = self.kind if self.is_many else "run"
        hosts = ["-n", str(self.workers)]
        if self.kind == "two-agents":
            hosts = ["-H", f"node1:{(self.workers + 1) // 2},node2:{self.workers // 2}", "--ssh",
                     lab.path("ssh")]
        servers = ["--servers", str(self.servers)] if self.servers > 0 else []
        return lab.start("launcher", "deploy/ringside", command, *self.options(lab), *hosts, *servers,
                         "--transport", self.transport, "--out", lab.path("out"))


class JobByHand(Job):
    """The same without a launcher."""

    top_role = "server 0"
    is_launched = False

    def roles(self):
        return self.members()

    def start(self, lab):
        options = self.options(lab)
        keys = lab.keys(self.transport == "tcp")
        pid, endpoint = lab.start("server-0", "ps-server/ps", *options, "--workers",
                                  str(self.workers), "--servers", str(self.servers), "--transport",
                                  self.transport, "--out", lab.path("out"), *keys,
                                  announces=True)
        for index in range(1, self.servers):
            lab.start(f"server-{index}", "ps-server/ps", "--shard-index", str(index), "--server",
                      endpoint, "--log-level", "info", *keys)
        for rank in range(self.workers):
            lab.start(f"worker-{rank}", "worker/worker", "--rank", str(rank), "--server", endpoint,
                      "--log-level", "info", *keys)
        return pid


def make_job(kind, chance):
    _, fewest, most_servers, _ = KINDS[kind]
    workers = 1 if kind == "local" else chance.randint(fewest, 4)
    servers = chance.randint(1, most_servers) if most_servers > 0 else 0
    transport = chance.choice(TRANSPORTS)
    if kind == "local":
        transport = "auto"  # nothing is exchanged
    if kind == "two-agents" and transport in ("ipc", "shm"):
        transport = "tcp"  # what hosts have between them
    return (JobByHand if kind == "by-hand" else Job)(kind, workers, servers, transport)
