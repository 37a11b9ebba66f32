"""Tests of scripts that write parameters by themselves, where servers hold them and elsewhere.

The environment says which build is tested: RINGSIDE_BUILD, its folder.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from jobs import completed, run

STEPS = """
model = make_model(){kind}
features = features{kind_of_data}
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters(), overlap_forward={overlap})
weight, last = model[0].weight, model[2].bias
mean = [parameter.detach().clone() for parameter in model.parameters()]
for step in range(6):
    loss_of(model).backward()
    {behind_backward}
    optimizer.step()
    optimizer.zero_grad()
    {behind_step}
print(digest(model))
"""

SERVERS = ["ps-sync", "ps-ssp:1", "ps-async"]

# Of one parameter, through memory that PyTorch counts no writes of, and by calls that it counts.
ONCE = "if step == 3: "
WRITES = {
    "data": ("weight.data.copy_(weight.data * 2)", "0.weight [32, 6]"),
    "one value": ("last.data[2] = 9", "2.bias [3]"),
    "clamp": ("[p.data.clamp_(-1e-3, 1e-3) for p in model.parameters()]", "0.weight [32, 6]"),
    "init": ("torch.nn.init.normal_(last)", "2.bias [3]"),
    "load": ("model.load_state_dict({name: 0 * value for name, value in model.state_dict().items()})",
             "0.weight [32, 6]"),
    "other memory": ("last.data = last.data + 1", "2.bias"),
}


def script(behind_step: str = "", behind_backward: str = "", kind: str = "", overlap: bool = False) -> str:
    digest = "print(digest(model.float()))" if kind else "print(digest(model))"
    return STEPS.format(behind_step=behind_step or "pass", behind_backward=behind_backward or "pass",
                        kind=kind, kind_of_data=kind and ".bfloat16()", overlap=overlap).replace(
                            "print(digest(model))", digest)


def refused(folder: Path, text: str, name: str, mode: str, *options: str, **keywords: object) -> None:
    ended = run(folder, text, *options, mode=mode, **keywords)  # type: ignore[arg-type]
    assert ended.code == 1, ended.text
    reason = ended.summary["reason"]
    assert name in reason and "after the first step" in reason and f"in mode {mode}" in reason, ended.text
    assert "--server-optimizer none" in ended.text, ended.text


@pytest.mark.parametrize("mode", SERVERS)
def test_what_is_written_between_steps_where_servers_hold_parameters_is_refused(
        tmp_path: Path, mode: str) -> None:
    for key in WRITES if mode == "ps-sync" else ("one value",):
        change, name = WRITES[key]
        refused(tmp_path, script(ONCE + change), name, mode)


@pytest.mark.parametrize("mode", SERVERS)
def test_what_is_written_behind_backward_is_refused(tmp_path: Path, mode: str) -> None:
    for key in ("data", "other memory") if mode == "ps-sync" else ("data",):
        change, name = WRITES[key]
        refused(tmp_path, script(behind_backward=ONCE + change), name, mode)


@pytest.mark.parametrize("options", [("--servers", "3"), ("--transport", "tcp", "--insecure"),
                                     ("--compress", "bf16"), ("--bucket-mb", "0.001")])
def test_writes_are_noticed_however_parameters_come(tmp_path: Path, options: tuple[str, ...]) -> None:
    refused(tmp_path, script(ONCE + WRITES["one value"][0]), "2.bias", "ps-sync", *options)
    if "--compress" in options:
        completed(tmp_path, script(), *options, mode="ps-sync")


def test_writes_are_noticed_where_forward_overlaps(tmp_path: Path) -> None:
    change, name = WRITES["data"]
    refused(tmp_path, script(ONCE + change, overlap=True), name, "ps-sync")


def test_parameters_of_16_bits_are_not_written_in_vain(tmp_path: Path) -> None:
    for mode in ("ps-sync", "ps-async"):
        refused(tmp_path, script(ONCE + WRITES["one value"][0], kind=".bfloat16()"), "2.bias", mode)
    completed(tmp_path, script(kind=".bfloat16()"), mode="ps-sync")


# As averages of weights do it: others for a test, then those of before.
SWAPPED = """kept = [parameter.detach().clone() for parameter in model.parameters()]
    for parameter, other in zip(model.parameters(), mean):
        parameter{data}.copy_(other)
    loss_of(model).item()
    for parameter, other in zip(model.parameters(), kept):
        parameter{data}.copy_(other)
"""


def test_values_that_are_put_back_are_no_writes(tmp_path: Path) -> None:
    found = [completed(tmp_path, script(change), workers=1, mode="ps-sync").values()
             for change in ("", SWAPPED.format(data=".data"), SWAPPED.format(data=".detach()"))]
    assert found[0] == found[1] == found[2]


def test_the_same_values_again_are_no_writes(tmp_path: Path) -> None:
    """Scripts broadcast parameters once more, which are the same in all processes."""
    completed(tmp_path, script("hvd.broadcast_parameters(model.state_dict(), root_rank=0)"), mode="ps-sync")


def test_what_is_written_before_the_first_step_holds(tmp_path: Path) -> None:
    """Also behind DistributedOptimizer, and through `.data`."""
    text = script().replace("weight, last = ", "[p.data.fill_(0.5) for p in model.parameters()]\nweight, last = ")
    assert completed(tmp_path, text, workers=1, mode="ps-sync").values() == \
        completed(tmp_path, text, workers=1).values()


@pytest.mark.parametrize("mode", ["ps-sync", "ps-async"])
def test_what_is_written_behind_the_last_step_stays(tmp_path: Path, mode: str) -> None:
    """To test with the best parameters, for example: no step comes over them."""
    text = script() + "for p in model.parameters(): p.data.fill_(2)\n" \
        "print(sum(p.sum().item() for p in model.parameters()))\n"
    ended = completed(tmp_path, text, mode=mode)
    assert ended.values() == [str(2.0 * (6 * 32 + 32 + 32 * 3 + 3))] * 2


def test_where_the_script_makes_the_updates_what_it_writes_holds(tmp_path: Path) -> None:
    text = script(ONCE + WRITES["data"][0])
    ring = completed(tmp_path, text).values()
    assert ring == completed(tmp_path, text, "--server-optimizer", "none", mode="ps-sync").values()
    assert ring != completed(tmp_path, script()).values()


def test_what_one_process_alone_writes_is_told_at_the_end(tmp_path: Path) -> None:
    ended = run(tmp_path, script(ONCE + "rank or last.data.fill_(3)"))
    reason = ended.summary["reason"]
    assert ended.code == 1 and "after the last step: what its program writes has to be the same" in reason, reason


def test_where_each_process_makes_the_jobs_updates_memory_of_its_own_is_refused(tmp_path: Path) -> None:
    job = {"RINGSIDE_UPDATES": "job"}
    refused(tmp_path, script(ONCE + WRITES["other memory"][0]), "2.bias", "ring", variables=job)
    refused(tmp_path, script(ONCE + WRITES["load"][0], kind=".bfloat16()"), "0.weight", "ring", variables=job)
    text = script(ONCE + WRITES["data"][0])
    assert completed(tmp_path, text, workers=1, variables=job).values() == \
        completed(tmp_path, text, workers=1).values()  # plain SGD has one way to be computed
