"""What bench/links compares: which process is on which host, and what bounds its time."""
import argparse
import collections
import re


class System(collections.namedtuple("System", "name mode servers is_beside")):
    """name: as --systems has it; servers: 0 in mode ring; is_beside: servers share the hosts of
    workers."""

    @property
    def is_peer(self):
        return self.mode is None

    @property
    def own_hosts(self):
        """Hosts beyond those of the workers."""
        return 0 if self.is_beside else self.servers

    def place(self, hosts, workers):
        """The hosts of `ps` processes; the first one coordinates, in mode ring that alone."""
        if self.servers == 0:
            return hosts[:1]
        first = 0 if self.is_beside else workers
        return hosts[first:first + self.servers]

    def bound_share(self, workers):
        """Bytes that the busiest link carries in its busier direction, over those of the vector."""
        if self.servers == 0:
            return 2 * (workers - 1) / workers
        if self.is_beside:
            return max(1 if self.servers < workers else 0,
                       (self.servers + workers - 2) / self.servers)
        return max(workers / self.servers, 1)


def parse_system(text):
    match = re.fullmatch(r"ps-sync:([1-9]\d?)(\+?)", text)
    if match:
        return System(text, "ps-sync", int(match.group(1)), match.group(2) == "+")
    if text == "ring":
        return System(text, "ring", 0, False)
    if text in ("gloo", "mpi"):
        return System(text, None, 0, False)
    raise argparse.ArgumentTypeError(f"there is no system '{text}'; there are ring, ps-sync:K, "
                                     "ps-sync:K+, gloo, mpi")
