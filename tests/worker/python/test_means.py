"""ps-sync whose servers hand back mean gradients (--server-optimizer none)."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
import test_distributed
import test_elastic
from jobs import BUILD, LIMIT, PRELUDE, completed, environment, run, warm_python
from test_optimizer import ADAM, MOMENTUM, TRAIN, plain

NONE = ("--server-optimizer", "none")


@pytest.mark.parametrize("optimizer", [
    MOMENTUM, ADAM,
    "torch.optim.NAdam(model.parameters(), lr=0.01)",
    "torch.optim.Adamax(model.parameters(), lr=0.01)",
])
def test_one_process_has_the_bits_of_plain_torch(tmp_path: Path, optimizer: str) -> None:
    script = TRAIN.format(optimizer=optimizer)
    ended = completed(tmp_path, script, *NONE, workers=1, mode="ps-sync")
    assert ended.values() == [plain(script)], ended.text


@pytest.mark.parametrize(("optimizer", "sizes"), [(MOMENTUM, (2, 3)), (ADAM, (2, 4))])
def test_it_ends_with_the_bits_of_ring(tmp_path: Path, optimizer: str,
                                       sizes: tuple[int, ...]) -> None:
    script = TRAIN.format(optimizer=optimizer)
    buckets = ("--bucket-mb", "0.001")
    for workers in sizes:
        ring = completed(tmp_path, script, *buckets, workers=workers)
        for more in ((), ("--servers", "2", "--transport", "tcp")):
            means = completed(tmp_path, script, *NONE, *buckets, *more, workers=workers,
                              mode="ps-sync")
            assert len(set(ring.values() + means.values())) == 1, means.text
            assert ring.summary["params_digest"] == means.summary["params_digest"]


def test_the_jobs_optimizer_runs_in_each_process(tmp_path: Path) -> None:
    script = TRAIN.format(optimizer=ADAM)
    servers = completed(tmp_path, script, mode="ps-sync")
    means = completed(tmp_path, script, *NONE, mode="ps-sync",
                      variables={"RINGSIDE_UPDATES": "job"})
    assert len(set(servers.values() + means.values())) == 1, means.text
    assert means.summary["optimizer"] == "adam", means.summary


LATER = """
class Halved(torch.optim.SGD):
    "An optimizer that no server has."
    def step(self, closure=None):
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.grad.mul_(0.5)
        return super().step(closure)

model = make_model()
optimizer = Halved(model.parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
for step in range(6):
    optimizer.zero_grad()
    loss_of(model).backward()
    optimizer.synchronize()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    with optimizer.skip_synchronize():
        optimizer.step()
    schedule.step()
    with torch.no_grad():
        model[0].bias.clamp_(-1, 1)  # the script holds the parameters
    hvd.report(loss=1.0 / (step + 1), images=8, accuracy=0.1 * step)
print(digest(model))
"""


def test_scripts_clip_schedule_and_report_as_in_ring(tmp_path: Path) -> None:
    ring, means = completed(tmp_path, LATER), completed(tmp_path, LATER, *NONE, mode="ps-sync")
    assert len(set(ring.values() + means.values())) == 1, means.text
    assert means.summary["optimizer"] == "the program's" and means.summary["lr"] is None
    for name in ("best_accuracy", "params_digest", "staleness"):
        assert means.summary[name] == ring.summary[name], (name, means.summary)
    assert [e["test_accuracy"] for e in means.summary["epochs"]] == \
        [e["test_accuracy"] for e in ring.summary["epochs"]]


def test_what_servers_without_updates_cannot_do_is_refused(tmp_path: Path) -> None:
    script = TRAIN.format(optimizer=MOMENTUM)
    for mode, options, sentence in (
        ("ps-async", (), "in mode ps-async servers hold the parameters"),
        ("ps-ssp:2", (), "use --mode ps-sync or ring"),
        ("ps-sync", ("--sync-every", "4"), "--sync-every 1"),
        ("ps-sync", ("--backup", "1"), "--backup 0"),
        ("ring", (), "--server-optimizer would do nothing here: it needs a mode with servers"),
    ):
        ended = run(tmp_path, script, *NONE, *options, mode=mode)
        assert ended.code != 0 and sentence in ended.text, ended.text
    lbfgs = run(tmp_path, TRAIN.format(optimizer="torch.optim.LBFGS(model.parameters())"), *NONE,
                mode="ps-sync")
    assert lbfgs.code == 1 and "LBFGS computes gradients within its step" in lbfgs.text, lbfgs.text
    servers = run(tmp_path, script, mode="ps-sync", variables={"RINGSIDE_UPDATES": "script"})
    assert servers.code == 1 and "--mode ps-sync with --server-optimizer none" in servers.text


def test_an_optimizer_of_the_options_that_nobody_uses_is_told(tmp_path: Path) -> None:
    script = TRAIN.format(optimizer="torch.optim.NAdam(model.parameters())")
    sentence = "--optimizer sgd does nothing here: the program makes the updates"
    assert sentence in completed(tmp_path, script, *NONE, "--optimizer", "sgd", mode="ps-sync").text
    script = TRAIN.format(optimizer="torch.optim.SGD(model.parameters(), lr=0.01)")
    used = completed(tmp_path, script, *NONE, "--optimizer", "sgd", "--lr", "0.01", mode="ps-sync",
                     variables={"RINGSIDE_UPDATES": "job"})
    assert "does nothing here" not in used.text, used.text


def test_the_others_go_on_from_the_last_commit(tmp_path: Path) -> None:
    found = []
    script = test_elastic.ADAM.replace("Adam(", "NAdam(").replace("{last}", "20")
    script = script.replace("{strike}", test_elastic.KILL.format(rank=1))
    for mode, options in (("ring", ()), ("ps-sync", NONE)):
        ended = run(tmp_path, script, "--on-loss", "commit", *options, workers=3, mode=mode)
        assert ended.code == 0 and ended.summary["workers_lost"] == 1, ended.text
        found.append(test_elastic.ends(ended))
    assert len(found[0]) == 2 and found[0] == found[1], found


def test_the_hook_of_ddp_exchanges_by_servers(tmp_path: Path) -> None:
    script = test_distributed.OWN.replace("HOW", test_distributed.HOOK)
    ring = completed(tmp_path, script, prelude="")
    means = completed(tmp_path, script, *NONE, prelude="", mode="ps-sync")
    assert ring.summary["params_digest"] == means.summary["params_digest"], means.text
    assert means.summary["steps"] == 12, means.summary


def test_a_comparison_shows_the_same_digest(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(PRELUDE + TRAIN.format(optimizer=ADAM))
    ended = subprocess.run(
        [str(BUILD / "deploy" / "ringside"), "compare", "-n", "2", "--modes", "ring,ps-sync", *NONE,
         "--out", str(tmp_path / "out"), "--", warm_python(), str(path)],
        env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, timeout=LIMIT, check=False)
    digests = {json.loads(file.read_text())["params_digest"]
               for file in (tmp_path / "out").rglob("summary.json")}
    assert ended.returncode == 0 and len(digests) == 1, ended.stdout
