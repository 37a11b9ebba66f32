"""Scripts that go on after a loss: ringside.torch.elastic."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from jobs import Ended, run

SCRIPT = """
import os, signal
model = make_model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
state = hvd.elastic.TorchState(model=model, optimizer=optimizer, step=0)
first = rank
resets = []
state.register_reset_callbacks([lambda: resets.append(hvd.size())])

@hvd.elastic.run
def train(state):
    while state.step < {last}:
        optimizer.zero_grad()
        loss_of(model, hvd.rank(), hvd.size()).backward()
        optimizer.step()
        state.step += 1
        if state.step % 2 == 0:
            state.commit()
        {strike}

train(state)
print("sizes", *resets, "rank", hvd.rank(), "of", hvd.size(), "step", state.step, digest(model), flush=True)
hvd.shutdown()
"""

KILL = "if first == {rank} and state.step == 9 and size == 3 and not resets: os.kill(os.getpid(), signal.SIGKILL)"
LINE = re.compile(r"sizes ([\d ]*)rank (\d) of (\d) step 20 (\w{16})")


def train(folder: Path, strike: str, *options: str, mode: str = "ring", last: str = "20") -> Ended:
    script = SCRIPT.replace("{strike}", strike).replace("{last}", last)
    return run(folder, script, "--optimizer", "sgd", "--lr", "0.1", "--on-loss", "commit", *options,
               workers=3, mode=mode)


def ends(ended: Ended) -> list[Any]:
    """What each process said at its end: sizes after resets, rank, size, digest."""
    return sorted((match.groups() for match in LINE.finditer(ended.text)), key=lambda found: found[1])


@pytest.mark.parametrize("rank, mode", [(0, "ring"), (1, "ring"), (0, "ps-sync"), (1, "ps-ssp:2"), (2, "ps-async")])
def test_the_others_go_on_from_the_last_commit(tmp_path: Path, rank: int, mode: str) -> None:
    ended = train(tmp_path, KILL.format(rank=rank), mode=mode)
    assert ended.code == 0 and ended.summary["outcome"] == "completed", ended.text
    assert ended.summary["workers_lost"] == 1 and ended.summary["steps"] == 20
    found = ends(ended)
    assert [(sizes.split(), of) for sizes, _, of, _ in found] == [(["2"], "2")] * 2, ended.text
    assert [place for _, place, _, _ in found] == ["0", "1"]
    assert len({bits for *_, bits in found}) == 1


@pytest.mark.parametrize("mode", ["ring", "ps-sync"])
def test_a_process_that_is_started_again_is_let_in(tmp_path: Path, mode: str) -> None:
    # They train until it is there.
    ended = train(tmp_path, KILL.format(rank=0), "--restarts", "1", mode=mode,
                  last="(20 if hvd.size() == 3 else state.step + 1)")
    assert ended.code == 0 and ended.summary["outcome"] == "completed", ended.text
    said = re.findall(r"sizes ([\d ]*)rank (\d) of 3 step \d+ (\w{16})", ended.text)
    assert sorted((rank, sizes.split()) for sizes, rank, _ in said) == [
        ("0", ["2", "3"]), ("1", ["2", "3"]), ("2", [])], ended.text
    assert len({bits for *_, bits in said}) == 1


KILL_COORDINATOR = """
        if first == 0 and state.step == 9 and not os.path.exists("{folder}/struck"):
            open("{folder}/struck", "w").close()
            for process in filter(str.isdigit, os.listdir("/proc")):
                try:
                    words = open(f"/proc/{process}/cmdline").read().split("\\0")
                except OSError:
                    continue
                if words[0].endswith("/ps") and any(word.startswith("{folder}") for word in words):
                    os.kill(int(process), signal.SIGKILL)
"""


@pytest.mark.parametrize("mode, sizes", [("ring", []), ("ps-sync", ["3"])])
def test_a_killed_coordinator_comes_back(tmp_path: Path, mode: str, sizes: list[str]) -> None:
    undisturbed = train(tmp_path, "pass", mode=mode)
    folder = tmp_path / "killed"
    folder.mkdir()
    ended = train(folder, KILL_COORDINATOR.replace("{folder}", str(folder)), "--restarts", "2", mode=mode)
    assert ended.code == 0 and ended.summary["outcome"] == "completed", ended.text
    assert ended.summary["restarts"] == 1 and ended.summary["workers_lost"] == 0, ended.summary
    found = ends(ended)
    assert [(said.split(), of) for said, _, of, _ in found] == [(sizes, "3")] * 3, ended.text
    # Where it has a shard, all go back to their commit, and make the same steps again.
    assert {bits for *_, bits in found} == {bits for *_, bits in ends(undisturbed)}, ended.text


def test_fewer_processes_than_the_job_wants_end_it(tmp_path: Path) -> None:
    ended = train(tmp_path, KILL.format(rank=1), "--min-workers", "3")
    assert ended.code != 0 and "--min-workers" in ended.summary["reason"], ended.text


def test_a_loss_without_commits_goes_on_from_the_beginning(tmp_path: Path) -> None:
    strike = KILL.format(rank=2).replace("== 9", "== 1")
    ended = train(tmp_path, strike)
    assert ended.code == 0 and len(ends(ended)) == 2, ended.text


# The state of Adam, and a rate of the script's own, are those of the commit.
ADAM = SCRIPT.replace("SGD(model.parameters(), lr=0.1)", "Adam(model.parameters(), lr=0.01 * size)")
RESCALE = "if state.step == 4: optimizer.param_groups[0]['lr'] = 0.005 * hvd.size()\n        "


def test_ring_and_ps_sync_go_on_with_the_same_bits(tmp_path: Path) -> None:
    script = ADAM.replace("{strike}", RESCALE + KILL.format(rank=1)).replace("{last}", "20")
    found = []
    for mode, variables in (("ring", {"RINGSIDE_UPDATES": "job"}), ("ps-sync", {})):
        ended = run(tmp_path, script, "--on-loss", "commit", workers=3, mode=mode, variables=variables)
        assert ended.code == 0 and ended.summary["workers_lost"] == 1, ended.text
        assert len({bits for *_, bits in ends(ended)}) == 1 and len(ends(ended)) == 2, ended.text
        found.append(ends(ended))
    assert found[0] == found[1], found


def test_a_server_that_is_lost_is_done_without(tmp_path: Path) -> None:
    ended = train(tmp_path, "pass", "-s", "2", "--fault", "shard=1,step=11,kill", mode="ps-sync")
    assert ended.code == 0 and ended.summary["steps"] == 20, ended.text
    assert len({bits for *_, bits in re.findall(r"rank (\d) of 3 step (20) (\w{16})", ended.text)}) == 1


def test_what_no_commit_holds_is_refused_by_name(tmp_path: Path) -> None:
    ended = train(tmp_path, "pass", "--gradients-per-update", "2", mode="ps-async")
    assert ended.code != 0 and "--gradients-per-update 1" in ended.text, ended.text


def test_evaluations_that_are_taken_back_are_not_in_the_summary(tmp_path: Path) -> None:
    report = ("if state.step % 2: hvd.report(accuracy=1.0 if state.step == 9 and not resets else state.step / 100)"
              "\n        " + KILL.format(rank=1).replace("== 9", "== 11"))
    script = SCRIPT.replace("% 2 == 0", "% 4 == 0").replace("{strike}", report).replace("{last}", "20")
    ended = run(tmp_path, script, "--on-loss", "commit", workers=3)
    assert ended.code == 0 and ended.summary["workers_lost"] == 1, ended.text
    told = [round(100 * epoch["test_accuracy"]) for epoch in ended.summary["epochs"]]
    assert told == list(range(1, 20, 2)), told
    assert ended.summary["best_accuracy"] == 0.19 and ended.summary["best_epoch"] == 10


def test_a_sampler_deals_what_is_left_of_an_epoch(tmp_path: Path) -> None:
    ended = run(tmp_path, """
sampler = hvd.elastic.ElasticSampler(range(24), seed=3)
sampler.set_epoch(1)
mine = list(sampler)
assert len(mine) == 12 and mine == list(hvd.elastic.ElasticSampler.__iter__(sampler))
everybody = hvd.allgather_object(mine)
assert sorted(everybody[0] + everybody[1]) == list(range(24))
sampler.record_batch(0, 5)
assert sampler.processed_indices == set(mine[:5])
state = hvd.elastic.TorchState(sampler=sampler)
state.save()
state.sync()
done = set(everybody[0][:5] + everybody[1][:5])
assert sampler.processed_indices == done
left = hvd.allgather_object(list(sampler))
assert sorted(left[0] + left[1]) == sorted(set(range(24)) - done)
sampler.record_batch(0, 7)
state.restore()
assert sampler.processed_indices == done and len(sampler) == 7
hvd.shutdown()
""")
    assert ended.code == 0, ended.text


def test_a_model_with_the_hook_of_torch_distributed_is_refused(tmp_path: Path) -> None:
    ended = run(tmp_path, """
import ringside.torch.distributed
from ringside.torch.distributed import Exchanged
Exchanged(make_model())
@hvd.elastic.run
def train(state):
    print("not here")
train(hvd.elastic.ObjectState(step=0))
""", workers=1)
    assert "elastic: a model with exchange_hook does not go on" in ended.summary["reason"], ended.text
    assert "not here" not in ended.text
