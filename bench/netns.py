"""Hosts of one machine: network namespaces joined by a bridge, each on a link of a given rate.

The bridge has a namespace of its own, so nothing of the machine's own network is touched. Both ends
of each link are shaped by tbf or htb: what a host sends on its side, what it receives on the
bridge's.
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

from delays import DelayLine
from launching import Failed, Host, Processes, Unavailable, run_tool

NETWORK = "10.77.0"
BRIDGE_ADDRESS = f"{NETWORK}.254"
INTERFACE = "eth0"  # of each host
HOSTS_MAX = 250
PREFIX = "rsb"  # of the names of namespaces; the pid of their bench follows

# What a link carries at once: what leaves in two milliseconds, since less would not reach the rate,
# and at least what the kernel sends as one (64 KiB and headers). tbf would cut that into packets,
# with a timer for each: at 250 Mbit/s four hosts spent half a second of a core on a step.
BURST_MS = 2
BURST_LEAST_KIB = 96

# On a link that peers share, each has a turn of so long, and its hosts send no more than that as
# one: htb gives a class its turn whatever that sent before, so who sends larger ones has more of
# the link. Smaller ones take more of the cores.
TURN_US = 256
TURN_MOST = 60000  # bytes; the kernel sends up to 64 KiB as one
STREAM_S = 2

# Connections are told apart by so many bits of a port; those that have them in common share a limit.
PORT_BITS = 7

ACKNOWLEDGEMENT_BYTES = 128  # more than any has
# Of TCP's flags, behind 20 bytes of IP: ACK alone. The end of a message, which may be as short, has
# PSH as well. It must not overtake what is before it.
FLAGS_PLACE, ACK_FLAG = 33, 0x10
STREAMS = 16  # enough to fill a link of such connections

# A stream of our own, where there is no iperf3: what arrives per second.
SINK = """
import socket, sys, time
server = socket.create_server((sys.argv[1], 5999))
stream, _ = server.accept()
buffer, count, start = bytearray(1 << 20), 0, None
while True:
    size = stream.recv_into(buffer)
    start = start or time.monotonic()
    if size == 0:
        break
    count += size
print('{"bits_per_second": %f}' % (8 * count / (time.monotonic() - start)))
"""
SOURCE = """
import socket, sys, time
deadline = time.monotonic() + float(sys.argv[2]) + 5
while True:
    try:
        stream = socket.create_connection((sys.argv[1], 5999))
        break
    except OSError:
        if time.monotonic() > deadline:
            raise
        time.sleep(0.05)
end, block = time.monotonic() + float(sys.argv[2]), bytes(1 << 20)
while time.monotonic() < end:
    stream.sendall(block)
"""


# A host with a name of its own, as timelines tell hosts apart by theirs.
NAMED = ("unshare", "--uts", "sh", "-c", 'echo "$0" > /proc/sys/kernel/hostname && exec "$@"')


def check_rights():
    if os.geteuid() != 0:
        raise Unavailable("network namespaces and tc need root")
    for tool in ("ip", "tc"):
        if shutil.which(tool) is None:
            raise Unavailable(f"there is no {tool}; install iproute2")


def burst_kib(mbit):
    """Of a link's token bucket."""
    return max(BURST_LEAST_KIB, mbit * BURST_MS * 128 // 1000)


def turn_bytes(mbit):
    """Of a peer on a link that peers share."""
    return min(TURN_MOST, mbit * TURN_US // 8)


def delete_namespace(name):
    """If it is still there. In a session of its own: a child of ours would get our signals, too."""
    subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False,
                   start_new_session=True)


class Links:
    """`with Links(count, mbit) as links`: links.hosts[i] is where process i runs. What was made is
    removed, whatever happens in between. With are_named, hosts have names of their own; with
    are_fair, a link has a queue for each peer of its host, and not one for all. Delays are made by
    netem, or by the delay line of a build where the kernel has none."""

    def __init__(self, count, mbit, flow_mbit=None, delay_ms=0, are_named=False, are_fair=False,
                 build=None):
        if count > HOSTS_MAX:
            raise Unavailable(f"{count} hosts are more than the {HOSTS_MAX} of one network")
        self.count, self.mbit, self.flow_mbit = count, mbit, flow_mbit
        self.delay_ms = delay_ms  # one way, between two hosts
        self.build = build
        self.has_netem = False
        self.delay_line = None
        self.are_fair = are_fair
        self.prefix = f"{PREFIX}{os.getpid()}n"
        self.switch = f"{self.prefix}sw"
        self.made = []
        self.hosts = [Host(("ip", "netns", "exec", self.name(i),
                            *((*NAMED, f"host{i}") if are_named else ())), f"{NETWORK}.{i + 1}")
                      for i in range(count)]
        self.bridge = Host(("ip", "netns", "exec", self.switch), BRIDGE_ADDRESS)

    def name(self, index):
        return f"{self.prefix}{index}"

    run = staticmethod(run_tool)

    def make_namespace(self, name):
        self.made.append(name)
        self.run("ip", "netns", "add", name)
        self.run("ip", "-n", name, "link", "set", "lo", "up")
        # Linux makes the window of a connection smaller that has not filled it for a while, as
        # those of workers that compute do not. What such a link carries is then of chance.
        self.run("ip", "netns", "exec", name, "sh", "-c",
                 "echo 0 > /proc/sys/net/ipv4/tcp_slow_start_after_idle")

    def shape(self, name, device, delay_ms=0):
        add = ["ip", "netns", "exec", name, "tc", "qdisc", "add", "dev", device]
        place = ["root"]
        if delay_ms > 0:
            self.run(*add, "root", "handle", "1:", "netem", "delay", f"{delay_ms}ms", "limit",
                     "100000")
            place = ["parent", "1:1"]
        if self.are_fair:
            self.run(*add, *place, "handle", "10:", "htb", "default", "2")
            self.share_fairly(name, device)
        else:
            self.run(*add, *place, "handle", "10:", "tbf", "rate", f"{self.mbit}mbit", "burst",
                     f"{burst_kib(self.mbit)}kb", "latency", "50ms")

    def share_fairly(self, name, device):
        """Peers share the link, and what is as short as an acknowledgement goes first: so do the
        fair queues that Linux hosts have by default (fq_codel). In one queue for all,
        acknowledgements of what a host receives wait behind what it sends, and it receives less.
        By long turns, a short message waits for one of each other peer: lenet5 in ps-async among 7
        over 250 Mbit/s made 1,900 images/s by turns of 60 KB, and 2,800 by short ones."""
        turn = turn_bytes(self.mbit)
        self.run("ip", "-n", name, "link", "set", device, "gso_max_size", str(turn))
        most = f"cburst {burst_kib(self.mbit)}kb quantum {turn}"

        def shared(number, priority):
            # All that it sends is of the link's bucket: with a rate of its own it would have a
            # burst beside.
            return (f"class add dev {device} parent 10:1 classid 10:{number:x} htb rate 1kbit "
                    f"burst 2kb ceil {self.mbit}mbit {most} prio {priority}")

        lines = [f"class add dev {device} parent 10: classid 10:1 htb rate {self.mbit}mbit "
                 f"burst {burst_kib(self.mbit)}kb {most}",
                 shared(2, 1),  # what is no peer's
                 shared(3, 0),
                 f"filter add dev {device} parent 10: protocol ip prio 1 u32 match ip protocol 6 "
                 f"0xff match u16 0 {0x10000 - ACKNOWLEDGEMENT_BYTES:#x} at 2 match "
                 f"u8 {ACK_FLAG:#x} 0xff at {FLAGS_PLACE} flowid 10:3"]
        side = "dst" if device == INTERFACE else "src"
        for number, host in enumerate(self.hosts, 4):
            lines.append(shared(number, 1))
            lines.append(f"filter add dev {device} parent 10: protocol ip prio 2 u32 match "
                         f"ip {side} {host.address}/32 flowid 10:{number:x}")
        self.run("ip", "netns", "exec", name, "tc", "-batch", "-", text="\n".join(lines))

    def shape_flows(self, name, device):
        """Connections borrow from the link up to a rate of their own. Their class is the port of who
        has connected, which for the kernel is an even one; those of listeners are odd."""
        def limited(number, ceiling, quantum):
            return (f"class add dev {device} parent 1:1 classid 1:{number:x} htb rate 1mbit "
                    f"ceil {ceiling}mbit quantum {quantum}")

        lines = [f"qdisc add dev {device} root handle 1: htb default 2",
                 f"class add dev {device} parent 1: classid 1:1 htb rate {self.mbit}mbit "
                 "quantum 60000",
                 limited(2, self.mbit, 1600)]  # what is no connection
        count = 1 << PORT_BITS
        for side, port in enumerate(("sport", "dport")):
            for bits in range(count):
                number = 3 + side * count + bits
                lines.append(limited(number, self.flow_mbit, 1600))
                lines.append(f"filter add dev {device} parent 1: protocol ip prio {1 + side} u32 "
                             f"match ip {port} {bits << 1:#x} {2 * count - 1:#x} "
                             f"flowid 1:{number:x}")
        self.run("ip", "netns", "exec", name, "tc", "-batch", "-", text="\n".join(lines))

    def make_host(self, index):
        name, device = self.name(index), f"v{index}"
        self.make_namespace(name)
        self.run("ip", "link", "add", device, "netns", self.switch, "type", "veth", "peer", "name",
                 INTERFACE, "netns", name)
        self.run("ip", "-n", self.switch, "link", "set", device, "master", "br0", "up")
        self.run("ip", "-n", name, "addr", "add", f"{self.hosts[index].address}/24", "dev", INTERFACE)
        self.run("ip", "-n", name, "link", "set", INTERFACE, "up")
        if self.flow_mbit is None:
            self.shape(name, INTERFACE, self.delay_ms if self.has_netem else 0)
        else:
            self.shape_flows(name, INTERFACE)
        self.shape(self.switch, device)

    def __enter__(self):
        check_rights()
        self.remove_dead()
        try:
            self.make_namespace(self.switch)
            self.has_netem = self.delay_ms > 0 and self.finds_netem()
            self.run("ip", "-n", self.switch, "link", "add", "br0", "type", "bridge")
            self.run("ip", "-n", self.switch, "addr", "add", f"{BRIDGE_ADDRESS}/24", "dev", "br0")
            self.run("ip", "-n", self.switch, "link", "set", "br0", "up")
            for index in range(self.count):
                self.make_host(index)
            if self.delay_ms > 0 and not self.has_netem:
                self.delay_line = DelayLine(self.build, [self.name(i) for i in range(self.count)],
                                            INTERFACE, self.delay_ms)
        except BaseException:
            self.remove()
            raise
        return self

    def remove_dead(self):
        """Removes what a bench left that was killed: nobody has its pid, and nothing runs there."""
        names = [line.split()[0] for line in self.run("ip", "netns", "list").splitlines()]
        for name in names:
            owner = re.fullmatch(PREFIX + r"(\d+)n\w+", name)
            if (owner is None or os.path.exists(f"/proc/{owner[1]}")
                    or self.run("ip", "netns", "pids", name)):
                continue
            print(f"network namespace {name} is removed: its bench was killed", file=sys.stderr)
            delete_namespace(name)

    def finds_netem(self):
        """Whether the kernel has netem: tries it where no packets go."""
        try:
            self.run("ip", "netns", "exec", self.switch, "tc", "qdisc", "add", "dev", "lo", "root",
                     "netem")
        except Unavailable:
            return False
        return True

    def __exit__(self, kind, error, trace):
        failure = self.remove()
        if failure is not None and (kind is None or issubclass(kind, Failed)):
            raise Failed(failure) from error

    def remove(self):
        """A second Ctrl-C does not interrupt it. Returns why the delay line had ended by then, or
        None."""
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        failure = self.delay_line.end() if self.delay_line is not None else None
        for name in reversed(self.made):
            delete_namespace(name)
        self.made = []
        signal.signal(signal.SIGINT, before)
        return failure

    def measure_mbit(self):
        """What one stream carries from the second host to the first, or several where each has a
        limit of its own, and what measured it."""
        if shutil.which("iperf3") is None and self.flow_mbit is not None:
            return self.mbit, "nothing: there is no iperf3"
        if shutil.which("iperf3") is not None:
            return self.measure_by_iperf3(), "iperf3"
        with Processes(STREAM_S + 20, delay_line=self.delay_line) as processes:
            target = self.hosts[0]
            processes.start([sys.executable, "-c", SINK, target.address], target)
            processes.start([sys.executable, "-c", SOURCE, target.address, STREAM_S], self.hosts[1])
            processes.wait()
            return processes.results()[0]["bits_per_second"] / 1e6, "a socket"

    @staticmethod
    def call(command):
        """Runs a command. Fails if it does not end in time, as where no packets arrive."""
        try:
            return subprocess.run(command, capture_output=True, text=True, check=False,
                                  timeout=STREAM_S + 20)
        except subprocess.TimeoutExpired as expired:
            raise Failed(f"still running after {STREAM_S + 20} s: {' '.join(command)}") from expired

    def measure_by_iperf3(self):
        target = self.hosts[0]
        with Processes(STREAM_S + 20, delay_line=self.delay_line) as processes:
            processes.start(["iperf3", "-s", "-1", "-B", target.address], target)
            streams = 1 if self.flow_mbit is None else STREAMS
            command = [*self.hosts[1].prefix, "iperf3", "-c", target.address, "-t", str(STREAM_S),
                       "-P", str(streams), "-J"]
            for _ in range(50):
                done = self.call(command)
                # It may exit with 0 and an error in its JSON.
                total = done.stdout.startswith("{") and json.loads(done.stdout).get("end", {})
                if total and "sum_received" in total:
                    return total["sum_received"]["bits_per_second"] / 1e6
                time.sleep(0.1)  # the other side does not listen yet
        raise Failed(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
