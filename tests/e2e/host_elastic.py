"""Cases of check_hosts: programs that go on from their commits, on several hosts."""
import os
import re
import sys

from host_lab import PORTS, expect, run
from lab_folder import await_

COMMIT = ["--on-loss", "commit", "--optimizer", "momentum", "--lr", "0.1", "--port-range", PORTS]


def committer(lab, *arguments):
    return ["--", os.path.join(lab.build, "tests", "worker", "library", "committer"), *arguments]


def ends(said):
    """What each process printed at its end, without the host."""
    return sorted(re.findall(r"\] (rank \d of \d after \d+ steps: .*)", said))


def a_worker_that_is_killed_on_another_host_is_done_without(lab):
    """With the bits of the same loss on one host."""
    for mode in ("ring", "ps-sync"):
        program = committer(lab, "20", "2", "job", "1")
        here, _, _ = lab.job("--mode", mode, "-n", "3", *COMMIT[:-2], *program)
        there, summary, _ = lab.job("--mode", mode, "-H", "host1:1,host2:1,host3:1", *COMMIT, *program)
        expect(there, "the job goes on from step 8, .*: worker 1 was killed by signal 9")
        assert ends(here) == ends(there) and len(ends(there)) == 2, here + there
        assert summary["workers_lost"] == 1 and summary["outcome"] == "completed", summary
    lab.expect_nothing_left()


def a_worker_that_is_killed_on_another_host_is_started_again(lab):
    for mode in ("ring", "ps-async"):
        said, summary, _ = lab.job("--mode", mode, "-H", "host1:1,host2:1,host3:1", "--restarts", "1", *COMMIT,
                                   *committer(lab, "20", "3", "job", "1"))
        expect(said, "the job goes on from step .*: worker 1 has come", r"\[host2 worker 1\] rank 2 of 3")
        assert [end.split(" after ")[0] for end in ends(said)] == [f"rank {rank} of 3" for rank in range(3)], said
        assert len({end.split(" of ")[1] for end in ends(said)}) == 1 and summary["outcome"] == "completed", said
    lab.expect_nothing_left()


def cut_off(lab, lost_after, *arguments):
    """Of a job whose commits go on, host3 is cut off once there is one. Output and summary. The launcher knows after 3 s,
    the coordinator after lost_after."""
    out = lab.path(f"run{lab.outputs + 1}")
    process = lab.start("run", "--out", out, "--link-timeout", "3", "--lost-after", lost_after, *COMMIT, *arguments)

    def said():
        with open(process.output, encoding="utf-8") as file:
            return file.read()

    await_(lambda: process.poll() is not None or "step 16:" in said(), "it has committed")
    run("ip", "-n", lab.space(0), "link", "set", "v3", "down")
    try:
        lab.finish(process)
        lab.expect_nothing_left()
    finally:
        run("ip", "-n", lab.space(0), "link", "set", "v3", "up")
    return said(), lab.summary(out)


def the_place_of_a_host_that_is_cut_off_is_taken_by_another(lab):
    """They make steps until they are three again, of which the third one is on host4."""
    said, summary = cut_off(lab, "2", "--mode", "ps-sync", "-n", "3", "-H", "host1:1,host2:1,host3:1,host4:1", "--restarts", "1",
                            *committer(lab, "400", "3", "job"))
    expect(said, "was lost with host3|worker 2 .*was lost", "worker 2 is started again, on host4", "worker 2 has come",
           r"\[host4 worker 2\] rank 2 of 3")
    assert len(ends(said)) == 3 and summary["workers_lost"] == 1, said


TORCH = """
import os, signal, sys
sys.path.insert(0, {package!r})
import torch
import ringside.torch as hvd
torch.set_num_threads(1)
hvd.init()
torch.manual_seed(1)
model = torch.nn.Linear(6, 3)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
state = hvd.elastic.TorchState(model=model, optimizer=optimizer, step=0)
first, resets = hvd.rank(), []
state.register_reset_callbacks([lambda: resets.append(hvd.size())])

@hvd.elastic.run
def train(state):
    while state.step < 20 or hvd.size() < 3:
        optimizer.zero_grad()
        model(torch.ones(2, 6) * (hvd.rank() + 1)).square().sum().backward()
        optimizer.step()
        state.step += 1
        if state.step % 2 == 0:
            state.commit()
        if first == 2 and state.step == 9 and not resets:
            os.kill(os.getpid(), signal.SIGKILL)

train(state)
print("rank", hvd.rank(), "of", hvd.size(), "after", state.step, "steps:", model.weight.double().sum().item())
"""


def a_script_goes_on_with_a_process_of_another_host_started_again(lab):
    package = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "worker", "python")
    python = next((path for path in ("/usr/bin/python3", sys.executable)
                   if run(path, "-c", "import torch", check=False).returncode == 0), None)
    if python is None:
        print("    (not checked: there is no PyTorch)")
        return
    script = lab.write("train.py", TORCH.format(package=os.path.abspath(package)))
    os.environ["RINGSIDE_LIBRARY"] = os.path.join(lab.build, "worker", "library", "libringside.so.1")
    try:
        said, summary, _ = lab.job("--mode", "ps-sync", "-H", "host1:1,host2:1,host3:1", "--on-loss", "commit", "--restarts",
                                   "1", "--port-range", PORTS, "--", python, script)
    finally:
        del os.environ["RINGSIDE_LIBRARY"]
    expect(said, "worker 2 has come", r"\[host3 worker 2\] rank 2 of 3")
    assert len(ends(said)) == 3 and len({end.split(" of ")[1] for end in ends(said)}) == 1, said
    assert summary["workers_lost"] == 1 and summary["outcome"] == "completed", summary
    lab.expect_nothing_left()


def a_host_that_is_cut_off_is_done_without(lab):
    """With the worker and the server that it has."""
    said, summary = cut_off(lab, "20", "--mode", "ps-sync", "-s", "2", "-H", "host1:1,host3:1",
                            *committer(lab, "20000", "1", "job"))
    expect(said, "was lost with host3", "the job goes on from step")
    assert [end.split(":")[0] for end in ends(said)] == ["rank 0 of 1 after 20000 steps"], said
    assert summary["outcome"] == "completed" and summary["workers_lost"] == 1, summary
