"""Cases of check_hosts: programs of one's own in the place of `worker`, on several hosts."""
import os
import signal

from host_lab import PORTS, expect, run
from lab_folder import await_

OWN_RATE = ["--optimizer", "sgd", "--lr", "0.25", "--port-range", PORTS]


def own_length(lab):
    return os.path.join(lab.build, "tests", "worker", "library", "own_length")


def a_program_of_ones_own_trains_on_several_hosts(lab):
    for mode in ("ring", "ps-sync"):
        _, here, _ = lab.job("--mode", mode, "-n", "3", *OWN_RATE, "--", own_length(lab), "20")
        said, there, out = lab.job("--mode", mode, "-H", "host2:1,host3:1,host4:1", *OWN_RATE, "--",
                                   own_length(lab), "20")
        expect(said, "completed: 20 steps", r"\[host4 worker 2\] rank 2 of 3, " + mode)
        assert here["params_digest"] == there["params_digest"], said
        with open(os.path.join(out, "logs", "worker-1.log"), encoding="utf-8") as file:
            expect(file.read(), "rank 1 of 3")
    lab.job("--mode", "ps-async", "-H", "host1:2,host3:1", *OWN_RATE, "--", own_length(lab), "20")
    lab.expect_nothing_left()


def a_program_that_another_host_lacks_is_named(lab):
    place = lab.path("bin")
    os.mkdir(place)
    os.symlink(own_length(lab), os.path.join(place, "mine"))
    path, out = os.environ["PATH"], lab.path("refused")
    os.environ["PATH"] = place + ":" + path  # of the launcher's host alone
    try:
        lab.job("--mode", "ring", "-n", "1", "--", "mine", "3")
        said = lab.finish(lab.start("run", "--mode", "ring", "--out", out, "-H", "host1:1,host3:1", "--", "mine", "3"), 1)
    finally:
        os.environ["PATH"] = path
    expect(said, "preflight: 1 problem; nothing was started", "host3 .*there is no program mine in the folders",
           "install it there")
    assert not os.path.exists(out)


def hangs(lab, out, ranks):
    logs = [os.path.join(out, "logs", f"worker-{rank}.log") for rank in range(ranks)]
    return all(os.path.exists(log) and "hangs" in open(log, encoding="utf-8").read() for log in logs)


def a_program_of_ones_own_does_not_outlive_its_job(lab):
    program = [own_length(lab), "3"]
    said, summary, _ = lab.job("--mode", "ps-sync", "-H", "host1:1,host2:1,host3:1", "--", *program, "quit", expected=1)
    assert "worker 1 ended before the job did" in summary["reason"], said
    out = lab.path(f"run{lab.outputs + 1}")
    process = lab.start("run", "--mode", "ring", "-H", "host1:1,host2:1,host3:1", "--out", out, "--", *program, "hang")
    await_(lambda: hangs(lab, out, 3), "all have trained")
    process.send_signal(signal.SIGINT)
    expect(lab.finish(process, 130), "interrupted by SIGINT")
    assert f"{program[0]} 3 hang" not in run("ps", "-eo", "args").stdout
    lab.expect_nothing_left()
