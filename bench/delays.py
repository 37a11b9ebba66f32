"""Delays what the hosts of a bench receive, where the kernel has no netem: iptables hands the packets
to bench/programs/delay_line.c."""
import json
import os
import shutil
import subprocess
import tempfile

from launching import Unavailable, run_tool

END_S = 5.0  # that the program has to end, before it is killed
# The first that works: a kernel may lack what one of them needs.
TOOLS = ("iptables", "iptables-legacy")


class DelayLine:
    """Delays what each of these network namespaces receives over an interface, until `end`. If the
    program ends before that, packets are lost, and `failure` says why it did."""

    def __init__(self, build, names, interface, delay_ms):
        program = os.path.join(build or "", "bench", "delay_line")
        tools = [tool for tool in TOOLS if shutil.which(tool)]
        if not tools:
            raise Unavailable("this kernel has no netem, and there is no iptables, which delays need "
                              "without it; install iptables")
        if build is None or not os.path.exists(program):
            raise Unavailable(f"this kernel has no netem, and there is no {program}, which delays "
                              "need without it; build it")
        self.counts = {}  # what the program counted, once it has ended
        self.has_ended = False
        self.errors = tempfile.TemporaryFile(mode="w+")  # pylint: disable=consider-using-with
        # It has a session of its own, so that Ctrl-C does not end it before the processes that need it.
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with
            [program, str(round(1000 * delay_ms)), *names], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=self.errors, text=True, start_new_session=True)
        try:
            if self.process.stdout.readline() != "ready\n":
                raise Unavailable(f"this kernel has no netem, and packets cannot be delayed "
                                  f"otherwise: {self.said()}")
            for name in names:
                self.divert(tools, name, interface)
        except BaseException:
            self.end()
            raise

    @staticmethod
    def divert(tools, name, interface):
        """Has the packets that a host receives wait for the program, which has to run by then:
        without it they are lost."""
        for number, tool in enumerate(tools, 1):
            try:
                run_tool("ip", "netns", "exec", name, tool, "-w", "-t", "raw", "-A", "PREROUTING", "-i",
                         interface, "-j", "NFQUEUE", "--queue-num", "0")
                return
            except Unavailable:
                if number == len(tools):
                    raise

    def said(self):
        """Which errors the program has printed."""
        self.errors.seek(0)
        return self.errors.read().strip()

    def failure(self):
        """Why the program has ended by itself. None: it has not."""
        if self.has_ended or self.process.poll() is None:
            return None
        return (f"what delays packets ended before the job, with exit status "
                f"{self.process.returncode}: {self.said() or 'it said nothing'}")

    def end(self):
        """Ends the program. Returns why it had ended before, or None."""
        failure = self.failure()
        if not self.has_ended:
            self.has_ended = True
            self.process.stdin.close()
            try:
                self.process.wait(END_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            lines = [line for line in self.process.stdout if line.startswith("{")]
            self.counts = json.loads(lines[-1]) if lines else {}
            self.process.stdout.close()
            self.errors.close()
        return failure
