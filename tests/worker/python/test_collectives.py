"""Collectives on tensors and objects, against what one process computes."""

from __future__ import annotations

from pathlib import Path

import pytest
from jobs import completed, run

REDUCED = """
def same(value, wanted):
    wanted = torch.as_tensor(wanted, dtype=value.dtype)
    assert value.shape == wanted.shape and torch.equal(value, wanted), (value, wanted)

x = torch.arange(6.0).reshape(2, 3) + rank
total = sum(torch.arange(6.0).reshape(2, 3) + r for r in range(3))
same(hvd.allreduce(x, op=hvd.Sum), total)
same(hvd.allreduce(x), total / 3)
same(hvd.allreduce(x, average=False), total)
same(hvd.allreduce(x.t(), op=hvd.Max), torch.arange(6.0).reshape(2, 3).t() + 2)
same(hvd.allreduce(x, op=hvd.Min, prescale_factor=2.0, postscale_factor=3.0),
     6 * torch.arange(6.0).reshape(2, 3))
same(hvd.allreduce(torch.tensor(rank + 1), op=hvd.Product), 6)
same(hvd.allreduce(torch.tensor(rank), op=hvd.Sum), 3)
same(hvd.allreduce(torch.tensor([rank, 1])), [1, 1])
same(hvd.allreduce(torch.tensor([0.1], dtype=torch.float64) * (rank + 1), op=hvd.Sum),
     torch.tensor([0.1], dtype=torch.float64) + torch.tensor([0.1], dtype=torch.float64) * 2
     + torch.tensor([0.1], dtype=torch.float64) * 3)
same(hvd.allreduce(torch.tensor([1.5]).half() * rank), torch.tensor([1.5]).half())
same(hvd.allreduce(torch.zeros(0)), torch.zeros(0))
y = x.clone()
assert hvd.allreduce_(y, op=hvd.Sum) is y
same(y, total)
handle = hvd.allreduce_async_(x.clone(), op=hvd.Sum)
assert hvd.poll(handle)
same(hvd.synchronize(handle), total)
same(hvd.grouped_allreduce([x, x], op=hvd.Sum)[1], total)
part = 3 * torch.tensor_split(torch.arange(7.0), 3)[rank]
same(hvd.reducescatter(torch.arange(7.0), op=hvd.Sum), part)
same(hvd.synchronize(hvd.reducescatter_async(torch.arange(7.0), op=hvd.Sum)), part)
same(hvd.synchronize(hvd.grouped_reducescatter_async([torch.arange(7.0)], op=hvd.Sum))[0], part)
same(hvd.synchronize(hvd.grouped_allreduce_async([x, x], op=hvd.Sum))[0], total)
y = x.clone()
hvd.synchronize(hvd.grouped_allreduce_async_([x.clone(), y], op=hvd.Sum))
same(y, total)
"""

MOVED = """
same(hvd.broadcast(torch.tensor([rank, 5]), 2), [2, 5])
z = torch.full((2, 2), float(rank))
hvd.broadcast_(z.t(), 1)
same(z, torch.ones(2, 2))
same(hvd.allgather(torch.full((rank, 2), float(rank))), [[1.0, 1], [2, 2], [2, 2]])
same(hvd.allgather(torch.tensor(float(rank))), [0.0, 1, 2])
same(hvd.allgather(torch.zeros(0, 4)), torch.zeros(0, 4))
same(hvd.synchronize(hvd.grouped_allgather_async([torch.tensor(rank), x]))[0], [0, 1, 2])
same(hvd.alltoall(torch.arange(3) + 10 * rank), [rank, 10 + rank, 20 + rank])
same(hvd.synchronize(hvd.alltoall_async(torch.arange(3) + 10 * rank)), [rank, 10 + rank, 20 + rank])
rows, counts = hvd.alltoall(torch.arange(6) + 10 * rank, splits=torch.tensor([1, 2, 3]))
same(counts, [rank + 1] * 3)
begin = [0, 1, 3][rank]
same(rows, [10 * r + begin + i for r in range(3) for i in range(rank + 1)])
assert hvd.broadcast_object({"epoch": rank, "name": "x" * 1000 * rank}, 1) == {
    "epoch": 1, "name": "x" * 1000}
assert hvd.allgather_object("y" * rank) == ["", "y", "yy"]
hvd.barrier()
"""

STATES = """
model = make_model(rank)
model.register_buffer("seen", torch.tensor(rank))
optimizer = torch.optim.Adam(model.parameters(), lr=0.1 * (rank + 1))
loss_of(model).backward()
optimizer.step()
hvd.broadcast_parameters(model.state_dict(), root_rank=1)
hvd.broadcast_optimizer_state(optimizer, root_rank=1)
hvd.broadcast_parameters(list(model.named_parameters()), root_rank=0)
assert optimizer.param_groups[0]["lr"] == 0.2 and int(model.seen) == 1
moments = [state["exp_avg"] for state in optimizer.state.values()]
assert len(moments) == 4 and len(set(hvd.allgather_object([m.tolist() for m in moments][0][0][0]))) == 1
print("same", digest(model))
"""


@pytest.mark.parametrize("mode", ["ring", "ps-async"])
def test_collectives_do_what_one_process_computes(tmp_path: Path, mode: str) -> None:
    values = completed(tmp_path, REDUCED + MOVED + STATES, workers=3, mode=mode).values()
    assert len(values) == 3 and len(set(values)) == 1 and values[0].startswith("same")


MISMATCHES = [
    ("hvd.allreduce(torch.ones(3))", "hvd.allreduce(torch.ones(3), op=hvd.Sum)"),
    ("hvd.allreduce(torch.ones(2, 3))", "hvd.allreduce(torch.ones(3, 2))"),
    ("hvd.allgather(torch.ones(3))", "hvd.allgather(torch.ones(3, dtype=torch.int32))"),
    ("hvd.broadcast(torch.ones(3), 0)", "hvd.broadcast(torch.ones(3), 1)"),
    ("hvd.allreduce(torch.ones(1 << 20))", "hvd.allreduce(torch.ones(5))"),
    ("hvd.barrier()", "hvd.allreduce(torch.ones(5))"),
]


@pytest.mark.parametrize(("one", "other"), MISMATCHES)
def test_calls_that_do_not_match_are_noticed(tmp_path: Path, one: str, other: str) -> None:
    ended = run(tmp_path, f"""
if rank == 0:
    {one}
else:
    {other}
""")
    assert ended.code == 1
    reason = ended.summary["reason"]
    assert "the processes call different collectives: it calls " in reason, ended.text
    assert "] in" not in reason and "with values of the same shape and type" in reason


LEFT = [
    ("if rank == 0: hvd.allreduce(torch.ones(5))",
     "it waits in Average all-reduce of float32 [5], and worker 1 has left without it"),
    ("if rank == 0: hvd.allreduce(torch.ones(5))\nelse: import os; os.kill(os.getpid(), 9)",
     "worker 1"),
]


@pytest.mark.parametrize(("script", "reason"), LEFT)
def test_a_process_that_a_collective_lacks_is_named(
    tmp_path: Path, script: str, reason: str
) -> None:
    ended = run(tmp_path, script + "\n")
    assert ended.code == 1 and reason in ended.summary["reason"], ended.text


WAITS = """
model = make_model()
optimizer = hvd.DistributedOptimizer(
    torch.optim.SGD(model.parameters(), lr=0.1), named_parameters=model.named_parameters())
for step in range(20):
    if step == 5 and rank == 1:
        {call}
    optimizer.zero_grad()
    loss_of(model).backward()
    optimizer.step()
"""


# Rank 1 waits in the barrier while rank 0 makes many steps.
PAUSES = """
model = make_model()
optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.01),
                                     named_parameters=model.named_parameters())
for step in range(5 if rank == 1 else 200):
    optimizer.zero_grad()
    loss_of(model).backward()
    optimizer.step()
hvd.barrier()
print("done", flush=True)
"""


@pytest.mark.parametrize("mode", ["ring", "ps-sync", "ps-ssp:2", "ps-ssp:0"])
@pytest.mark.parametrize("call", ["hvd.barrier()", "hvd.allreduce(torch.zeros(2))"])
def test_a_process_whose_gradients_others_need_does_not_wait_for_them(
    tmp_path: Path, call: str, mode: str
) -> None:
    ended = run(tmp_path, WAITS.format(call=call), mode=mode)
    assert ended.code == 1
    assert " after 5 steps, but worker 0 needs its gradient of step 6: in " in ended.summary["reason"], (
        ended.text)


def test_in_ps_async_nobody_is_needed_by_a_process_in_a_collective(tmp_path: Path) -> None:
    ended = completed(tmp_path, PAUSES, mode="ps-async")
    assert ended.values() == ["done"] * 2


def test_sizes_that_differ_are_told_in_words(tmp_path: Path) -> None:
    for options in ((), ("--transport", "ipc")):
        ended = run(tmp_path, "hvd.allreduce(torch.ones(5 + rank), op=hvd.Sum)\n", *options)
        one, other = "Sum all-reduce of float32 [5]", "Sum all-reduce of float32 [6]"
        reason = ended.summary["reason"]
        assert (f"it calls {one}, and worker 1 {other};" in reason
                or f"it calls {other}, and worker 0 {one};" in reason), ended.text


def test_a_script_without_a_model_beside_one_that_trains_is_told_so(tmp_path: Path) -> None:
    ended = run(tmp_path, """
model = make_model()
if rank == 0:
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.1), named_parameters=model.named_parameters())
    loss_of(model).backward()
""")
    assert "ended without training one (in PyTorch: without Distributed" in ended.summary["reason"], (
        ended.text)


def test_a_job_without_a_model_shows_no_parameters(tmp_path: Path) -> None:
    ended = completed(tmp_path, "hvd.barrier()\n")
    assert "external:train.py\n" in ended.text and "parameters)" not in ended.text, ended.text
