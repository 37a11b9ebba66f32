"""Cases of check_hosts: coordinators on other hosts that go on from their mirrors."""
import os

from host_lab import expect, run
from lab_folder import await_, has_steps

JOB = ["--mode", "ps-sync", "--model", "lenet5", "--data", "shapes", "--limit-train", "96", "--limit-test", "20",
       "--global-batch", "12", "--epochs", "6", "--threads", "1", "--device", "ref", "--seed", "3"]
SLOW = ["--straggler", "dist=exponential:mean=60ms,share=1", "-H", "host1:1,host2:1", "--coordinator", "host3"]


def digest_of(lab):
    """Of the job that nothing happens to, on one host."""
    return lab.job("-n", "2", *JOB)[1]["params_digest"]


def check(lab, said, summary, mirror):
    expect(said, "the job goes on from the checkpoint of step [1-9]", "completed")
    assert summary["restarts"] == 1 and summary["params_digest"] == digest_of(lab), f"{summary}\n{said}"
    assert not os.path.exists(mirror), "the mirror of a completed job is left"
    lab.expect_nothing_left()


def a_coordinator_that_is_killed_on_another_host_goes_on_from_its_mirror_there(lab):
    mirror = lab.path("mirror")
    said, summary, _ = lab.job("--mirror", mirror, "--restarts", "1", "--fault", "shard=0,step=40,kill", *JOB, *SLOW)
    check(lab, said, summary, mirror)


def a_job_whose_coordinator_is_lost_with_its_host_goes_on_from_a_mirror_that_hosts_share(lab):
    mirror, out = lab.path("mirror"), lab.path("shared")
    process = lab.start("run", "--out", out, "--mirror", mirror, "--restarts", "2", "--link-timeout", "3",
                        "--lost-after", "2", *JOB, *SLOW)
    await_(lambda: has_steps(mirror), "a copy")
    run("ip", "-n", lab.space(0), "link", "set", "v3", "down")
    try:
        said = lab.finish(process)
        lab.expect_nothing_left()
    finally:
        run("ip", "-n", lab.space(0), "link", "set", "v3", "up")
    expect(said, "was lost with host3")
    check(lab, said, lab.summary(out), mirror)


CASES = [
    a_coordinator_that_is_killed_on_another_host_goes_on_from_its_mirror_there,
    a_job_whose_coordinator_is_lost_with_its_host_goes_on_from_a_mirror_that_hosts_share,
]
