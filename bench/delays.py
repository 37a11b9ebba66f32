"""Delays what a bench's hosts receive where the kernel has no netem: by bench/delay_line.c, to which
iptables hands packets."""
import json
import os
import shutil
import subprocess
import tempfile

from launching import Unavailable, run_tool

END_S = 5.0
# The first that works: a kernel may lack what one of them needs.
TOOLS = ("iptables", "iptables-legacy")


class DelayLine:
    """What each of these network namespaces receives over the interface comes so much later, until
    `end`. A line that ends before that has lost packets: `failure` says why."""

    def __init__(self, build, names, interface, delay_ms):
        program = os.path.join(build or "", "bench", "delay_line")
        tools = [tool for tool in TOOLS if shutil.which(tool)]
        if not tools:
            raise Unavailable("this kernel has no netem, and there is no iptables, which delays need "
                              "then; install it")
        if build is None or not os.path.exists(program):
            raise Unavailable(f"this kernel has no netem, and there is no {program}, which delays "
                              "need then; build it")
        self.counts = {}  # what the program counted, once it has ended
        self.has_ended = False
        self.errors = tempfile.TemporaryFile(mode="w+")  # pylint: disable=consider-using-with
        # In a session of its own Ctrl-C does not end it before those who need it.
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
        """Packets that a host receives wait for the program. There has to be one by then, as they
        are lost without."""
        for number, tool in enumerate(tools, 1):
            try:
                run_tool("ip", "netns", "exec", name, tool, "-w", "-t", "raw", "-A", "PREROUTING", "-i",
                         interface, "-j", "NFQUEUE", "--queue-num", "0")
                return
            except Unavailable:
                if number == len(tools):
                    raise

    def said(self):
        """Of its errors."""
        self.errors.seek(0)
        return self.errors.read().strip()

    def failure(self):
        """Why it has ended by itself. None: it has not."""
        if self.has_ended or self.process.poll() is None:
            return None
        return (f"what delays packets ended before the job, with exit status "
                f"{self.process.returncode}: {self.said() or 'it said nothing'}")

    def end(self):
        """Has it end, and returns why it had before, or None."""
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
