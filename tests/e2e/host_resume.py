"""Cases of check_hosts: jobs that are resumed on another number of hosts."""
import glob
import os
import signal

from host_lab import PORTS
from lab_folder import await_

JOB = ["--model", "lenet5", "--data", "shapes", "--limit-train", "96", "--limit-test", "20", "--global-batch", "12",
       "--epochs", "4", "--threads", "1", "--device", "ref", "--checkpoint-every", "3",
       "--straggler", "dist=exponential:mean=40ms,share=1"]
TWO = ["-H", "host1:2,host2:2"]
# Hosts, and processes for the four ranks.
OTHERS = {
    "four hosts": ["-H", "host1:1,host2:1,host3:1,host4:1"],
    "three hosts": ["-H", "host1:1,host2:1,host3:1", "--processes", "3"],
    "one host": ["-H", "host1:4"],
}


def checkpoints(out):
    return glob.glob(os.path.join(out, "checkpoint", "step-*"))


def interrupt(lab, out, *options):
    """A job on two hosts that is interrupted once it has a checkpoint."""
    process = lab.start("run", "--out", out, *TWO, *options, *JOB)
    await_(lambda: process.poll() is not None or checkpoints(out), "it has a checkpoint")
    process.send_signal(signal.SIGINT)
    lab.finish(process, 130)
    lab.expect_nothing_left()
    return lab.summary(out)


def a_job_is_resumed_on_another_number_of_hosts(lab):
    """With the bits of the undisturbed job, on more hosts and on fewer, and with as many processes or with others."""
    for mode in (["--mode", "ring"], ["--mode", "ps-sync", "--servers", "2"]):
        options = ["-n", "4", "--coordinator", "host1", "--port-range", PORTS, *mode]
        _, plain, _ = lab.job(*TWO, *options, *JOB)
        for name, hosts in OTHERS.items():
            out = lab.path(f"resumed-{mode[1]}-{name.replace(' ', '-')}")
            broken = interrupt(lab, out, *options)
            assert broken["outcome"] == "failed", broken
            said = lab.finish(lab.start("run", "--out", out, "--resume", out, *hosts, *options, *JOB))
            summary = lab.summary(out)
            assert summary["outcome"] == "completed" and summary["workers"] == 4 and summary["restarts"] == 1, said
            assert summary["params_digest"] == plain["params_digest"], f"{mode[1]} on {name}:\n{said}"
    lab.expect_nothing_left()
