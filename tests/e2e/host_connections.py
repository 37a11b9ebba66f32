"""Cases of check_hosts: connections that break between members that live."""
import os
import shutil
import time

from host_lab import PORTS, expect, run
from lab_folder import await_

STEADY = ["--model", "lenet5", "--data", "shapes", "--limit-train", "96", "--limit-test", "20", "--global-batch", "12",
          "--epochs", "6", "--threads", "1", "--device", "ref"]
SLOW = ["--straggler", "dist=exponential:mean=60ms,share=1"]


def output_of(process):
    with open(process.output, encoding="utf-8") as file:
        return file.read()


def break_connections(lab, host, other):
    """Kills those of TCP between the two, but for the launcher's, as a middlebox that resets them does. False: the
    kernel has no way to do so."""
    those = ("-H", "-n", "-t", "state", "established", "(", "dst", f"10.77.0.{other}", "and", "sport", "!=", ":22", ")")
    within = ("ip", "netns", "exec", lab.space(host), "ss")
    assert run(*within, *those).stdout.strip(), f"host{host} has no connection to host{other}"
    return run(*within, "-K", *those).stdout.strip() != ""


def a_connection_that_breaks_between_two_that_live_is_made_again(lab):
    """Nobody is lost or refused, and the bits are those of a job that nothing has happened to."""
    each_other = "do not reach each other: their connection was closed"
    for mode, more, other, who in (
            ("ring", ["--all-reduce", "ring"], 2, rf"worker 2 \(host host3\) and worker 1 \(host host2\) {each_other}"),
            ("ps-sync", ["-s", "2"], 2, rf"worker 2 \(host host3\) and server 1 \(host host2\) {each_other}"),
            ("ps-sync", ["-s", "2"], 1, r"worker 2 \(host host3\) did not reach the coordinator: their connection was")):
        _, plain, _ = lab.job("--mode", mode, "-n", "3", *more, *STEADY)
        out = lab.path("broken")
        shutil.rmtree(out, ignore_errors=True)
        process = lab.start("run", "--mode", mode, *more, "--out", out, "--port-range", PORTS, "-H",
                            "host1:1,host2:1,host3:1", "--coordinator", "host1", *STEADY, *SLOW)
        await_(lambda: process.poll() is not None or "epoch 1:" in output_of(process), "it trains")
        if not break_connections(lab, 3, other):
            print("    (not checked: the kernel lacks CONFIG_INET_DIAG_DESTROY)")
            lab.finish(process)
            return
        began = time.monotonic()
        await_(lambda: process.poll() is not None or "the job goes on from step" in output_of(process), "it goes on")
        print(f"    ({mode}: it goes on after {time.monotonic() - began:.2f} s)")
        said = lab.finish(process)
        expect(said, f"the job goes on: {who}")
        assert "was away" not in said, said
        assert "refused a connection" not in said, said
        summary = lab.summary(out)
        assert summary["params_digest"] == plain["params_digest"] and summary["outcome"] == "completed", summary
        assert summary["workers_lost"] == 0 and os.path.exists(os.path.join(out, "details.json")), summary
        lab.expect_nothing_left()
