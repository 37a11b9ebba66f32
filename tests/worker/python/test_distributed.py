"""The backend of torch.distributed, against closed forms, plain torch and gloo; and hvd beside gloo."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch
from jobs import completed, run

START = """
import sys, torch, warnings
warnings.simplefilter("ignore")  # of names that torch has renamed since: lines of stderr
import torch.distributed as dist
import ringside.torch.distributed
from torch.nn.parallel import DistributedDataParallel
torch.set_num_threads(1)
dist.init_process_group("ringside")
rank, size = dist.get_rank(), dist.get_world_size()

def same(value, wanted):
    wanted = torch.as_tensor(wanted, dtype=value.dtype)
    assert value.shape == wanted.shape and torch.equal(value, wanted), (value, wanted)
"""

REDUCED = """
op = dist.ReduceOp
total, product = size * (size + 1) // 2, [1, 1, 2, 6][size]
for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int32,
              torch.int64, torch.uint8):
    for kind, wanted in ((op.SUM, total), (op.MIN, 1), (op.MAX, size), (op.PRODUCT, product)):
        x = torch.full((2, 3), rank + 1, dtype=dtype)
        dist.all_reduce(x, kind)
        same(x, torch.full((2, 3), wanted, dtype=dtype))
x = torch.full((4,), float(rank + 1))
dist.all_reduce(x, op.AVG)
same(x, torch.full((4,), total / size))
x = torch.tensor([rank == 0, True])
dist.all_reduce(x, op.MIN)
same(x, [size == 1, True])
x = torch.arange(6.0).reshape(2, 3).t() * (rank + 1)
assert not x.is_contiguous()
work = dist.all_reduce(x, async_op=True)
assert work.wait() and work.is_completed()
same(x, torch.arange(6.0).reshape(2, 3).t() * total)
dist.all_reduce(torch.zeros(0))
out = torch.zeros(2, dtype=torch.int64)
dist.reduce_scatter(out, [torch.full((2,), 10 * r + rank) for r in range(size)])
same(out, [10 * rank * size + total - size] * 2)
"""

MOVED = """
x = torch.full((2, 2), float(rank))
dist.broadcast(x.t(), size - 1)
same(x, torch.full((2, 2), size - 1.0))
parts = [torch.zeros(3, dtype=torch.bfloat16) for _ in range(size)]
dist.all_gather(parts, torch.full((3,), rank, dtype=torch.bfloat16))
for r, part in enumerate(parts):
    same(part, [r] * 3)
dist.all_gather([torch.zeros(0) for _ in range(size)], torch.zeros(0))
whole = torch.zeros(size, 2)
dist._all_gather_base(whole, torch.full((2,), float(rank)))
same(whole, [[float(r)] * 2 for r in range(size)])
out = torch.zeros(2)
dist._reduce_scatter_base(out, torch.arange(2.0 * size))
same(out, [2.0 * rank * size, (2 * rank + 1.0) * size])
objects = [None] * size
dist.all_gather_object(objects, "x" * rank)
assert objects == ["x" * r for r in range(size)]
dist.barrier()
again = dist.new_group(list(range(size)))
x = torch.ones(1)
dist.all_reduce(x, group=again)
same(x, [float(size)])
if size > 1:
    after, before = (rank + 1) % size, (rank - 1) % size
    x = torch.zeros(2, dtype=torch.int64)
    if rank == 0:
        dist.send(torch.tensor([5, 6]), after, tag=3)
        dist.recv(x, before, tag=3)
    else:
        dist.recv(x, before, tag=3)
        dist.send(x + 1, after, tag=3)
    same(x, [5 + (rank - 1) % size, 6 + (rank - 1) % size])
    # More than fits on the way: all send before anybody receives, and a collective comes between.
    large = [torch.zeros(1 << 18) for _ in range(2)]
    works = [dist.irecv(x.t(), before) for x in large]
    works += [dist.isend(torch.full((1 << 18,), float(10 * rank + i)), after) for i in range(2)]
    dist.all_reduce(torch.ones(1))
    for work in reversed(works):
        work.wait()
    for i, x in enumerate(large):
        same(x, torch.full((1 << 18,), 10.0 * before + i))
print("done", dist.get_backend())
"""


@pytest.mark.parametrize(("workers", "mode"), [(1, "ring"), (2, "ring"), (3, "ring"), (2, "ps-async")])
def test_collectives_of_torch_do_what_they_say(tmp_path: Path, workers: int, mode: str) -> None:
    ended = completed(tmp_path, START + REDUCED + MOVED, workers=workers, mode=mode, prelude="")
    assert ended.values() == ["done ringside"] * workers


GROUPS = """
groups = [dist.new_group([0, 2]), dist.new_group([1, 2])]
for members, group in zip(([0, 2], [1, 2]), groups):
    if rank not in members:
        continue
    x = torch.full((1000,), rank + 1)
    dist.all_reduce(x, group=group)
    same(x, [sum(members) + 2] * 1000)
    dist.broadcast(x.fill_(rank), members[1], group=group)
    same(x, [members[1]] * 1000)
    parts = [torch.zeros(2) for _ in members]
    dist.all_gather(parts, torch.full((2,), float(rank)), group=group)
    same(torch.stack(parts), [[float(r)] * 2 for r in members])
    dist.barrier(group=group)
    x = torch.ones(1)
    dist.send(x + rank, members[1], group=group) if rank == members[0] else dist.recv(
        x, members[0], group=group)
    if rank == members[1]:
        same(x, [members[0] + 1.0])
dist.barrier()
print("done")
"""


@pytest.mark.parametrize("mode", ["ring", "ps-sync"])
def test_groups_of_some_processes_have_calls_of_their_own(tmp_path: Path, mode: str) -> None:
    ended = completed(tmp_path, START + GROUPS, workers=3, mode=mode, prelude="")
    assert ended.values() == ["done"] * 3


def test_without_shared_memory_some_processes_are_refused(tmp_path: Path) -> None:
    completed(tmp_path, START + REDUCED + "dist.barrier()\n", "--transport", "ipc", workers=2,
              prelude="")
    for call in ("dist.send(torch.ones(1), 1 - rank)",
                 "group = dist.new_group([0])\nif rank == 0: dist.barrier(group=group)"):
        ended = run(tmp_path, START + call + "\n", "--transport", "ipc", prelude="")
        assert ended.code == 1 and "share memory: on one host" in ended.text, ended.text


REFUSED = [
    ("dist.all_reduce(torch.ones(1, dtype=torch.int32), dist.ReduceOp.BOR)",
     "has the operations SUM, AVG, MIN, MAX and PRODUCT"),
    ("dist.all_reduce(torch.ones(1, dtype=torch.int32), dist.ReduceOp.AVG)", "use ReduceOp.SUM"),
    ("dist.all_reduce(torch.ones(1, dtype=torch.int16))", "a tensor of torch.int16"),
    ("dist.all_gather([torch.zeros(r + 1) for r in range(3)], torch.zeros(rank + 1))",
     "all have one shape and type; pad them"),
    ("dist.all_gather([torch.zeros(rank + 1)] * 3, torch.zeros(rank + 1))",
     "all_gather of float32 ["),
    ("dist.recv(torch.ones(1))", "give src, the one that sends"),
    ("dist.new_group(backend='gloo')", "keeps no values for torch.distributed"),
    ("dist.all_reduce(torch.ones(rank + 1))", "Sum all-reduce of float32 ["),  # of whichever two meet first
]


@pytest.mark.parametrize(("call", "sentence"), REFUSED)
def test_what_the_backend_has_not_is_refused_by_name(
    tmp_path: Path, call: str, sentence: str
) -> None:
    ended = run(tmp_path, START + call + "\n", workers=3, prelude="")
    assert ended.code == 1 and sentence in ended.text, ended.text


TRAIN = """
def train(parallel, rank, size, hook=None, finish=lambda optimizer, model: optimizer, **options):
    torch.manual_seed(rank)
    model = torch.nn.Sequential(torch.nn.Linear(6, 400), torch.nn.Tanh(), torch.nn.Linear(400, 3))
    model = parallel(model, **options)
    if hook is not None:
        hook(model)
    optimizer = finish(torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), model)
    generator = torch.Generator().manual_seed(7)
    features = torch.randn(48, 6, generator=generator)
    labels = features.sum(1).gt(0).long() + features[:, 0].gt(1).long()
    for _ in range(12):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(
            model(features[rank::size]), labels[rank::size]).backward()
        optimizer.step()
    return torch.cat([p.detach().reshape(-1) for p in model.parameters()])
"""
SAVED = """
torch.save(result, sys.argv[0] + f".{rank}")
"""
OWN = START + TRAIN + "result = train(DistributedDataParallel, rank, size, HOW)\n" + SAVED
HOOK = ("lambda model: model.register_comm_hook(ringside.torch.distributed.Exchanged(model), "
        "ringside.torch.distributed.exchange_hook), bucket_cap_mb=0.003")


HVD = """
import sys, torch
import ringside.torch as hvd
torch.set_num_threads(1)
hvd.init()
rank, size = hvd.rank(), hvd.size()
""" + TRAIN + """
def with_first_parameters(model):
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    return model

def distributed(optimizer, model):
    return hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())

result = train(with_first_parameters, rank, size, finish=distributed)
""" + SAVED


def gloo(rank: int, size: int, folder: str) -> None:
    from torch.nn.parallel import DistributedDataParallel

    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", f"file://{folder}/meeting", rank=rank,
                                         world_size=size)
    names: dict[str, object] = {"torch": torch}
    exec(TRAIN, names)
    result = names["train"](DistributedDataParallel, rank, size)  # type: ignore[operator]
    torch.save(result, f"{folder}/gloo.{rank}")


def trained(folder: Path, script: str, workers: int, mode: str = "ring") -> list[torch.Tensor]:
    completed(folder, script, workers=workers, mode=mode, prelude="")
    path = max(folder.glob(f"{mode}-*"), key=os.path.getmtime)
    return [torch.load(path / f"train.py.{rank}") for rank in range(workers)]


@pytest.mark.parametrize("how", ["", HOOK], ids=["reduced", "hooked"])
@pytest.mark.parametrize("workers", [2, 3])
def test_distributed_data_parallel_trains_as_with_gloo(
    tmp_path: Path, workers: int, how: str
) -> None:
    results = trained(tmp_path, OWN.replace("HOW", how), workers)
    torch.multiprocessing.spawn(gloo, (workers, str(tmp_path)), workers)  # type: ignore[attr-defined]
    for result in results:
        assert torch.equal(result, results[0])
    assert torch.allclose(results[0], torch.load(tmp_path / "gloo.0"), atol=1e-5)


@pytest.mark.parametrize("workers", [2, 3])
def test_distributed_optimizer_trains_as_ddp_with_gloo(tmp_path: Path, workers: int) -> None:
    torch.multiprocessing.spawn(gloo, (workers, str(tmp_path)), workers)  # type: ignore[attr-defined]
    wanted = torch.load(tmp_path / "gloo.0")
    for mode in ("ring", "ps-sync"):
        for result in trained(tmp_path, HVD, workers, mode):
            assert torch.allclose(result, wanted, atol=1e-5)


@pytest.mark.parametrize("how", ["", HOOK], ids=["reduced", "hooked"])
def test_one_process_of_ddp_has_the_bits_of_plain_torch(tmp_path: Path, how: str) -> None:
    names: dict[str, object] = {"torch": torch}
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    exec(TRAIN, names)
    wanted = names["train"](lambda model: model, 0, 1)  # type: ignore[operator]
    torch.set_num_threads(threads)
    assert torch.equal(trained(tmp_path, OWN.replace("HOW", how), 1)[0], wanted)


def test_the_hook_exchanges_by_steps_of_the_job(tmp_path: Path) -> None:
    ended = completed(tmp_path, OWN.replace("HOW", HOOK), workers=2, prelude="")
    assert ended.summary["steps"] == 12
    refused = run(tmp_path, OWN.replace("HOW", HOOK), "--optimizer", "sgd", "--lr", "0.1", mode="ps-sync",
                  prelude="")
    assert "exchange_hook: in mode ps-sync servers make the updates" in refused.text


def test_an_exception_in_one_rank_of_ddp_ends_the_job(tmp_path: Path) -> None:
    ended = run(tmp_path, START + """
if rank == 1:
    raise KeyError("no such image")
dist.all_reduce(torch.ones(1))
""", prelude="")
    assert ended.code == 1 and "KeyError: 'no such image'" in ended.summary["reason"]
    assert any("raise KeyError" in line for line in ended.lines[1]), ended.text


def test_a_message_to_oneself_is_refused(tmp_path: Path) -> None:
    ended = run(tmp_path, START + "dist.send(torch.ones(1), rank)\n", prelude="")
    assert ended.code == 1
    ours = "messages go between two processes of 2, and not from rank 0 to rank 0"
    later = "destination rank should not be the same as the rank of the current process"  # of torch 2
    assert ours in ended.text or later in ended.text, ended.text


RECEIVES = "for a message of float32 [4] with tag 0 from worker"
PAIRS = """
pairs = [dist.new_group([r, s]) for r, s in ((0, 1), (1, 2), (0, 2))]
dist.barrier(group=pairs[rank])
"""
CIRCLES = [  # the script, and what each rank waits for
    ("dist.recv(torch.zeros(4), 1 - rank)", [f"{RECEIVES} 1", f"{RECEIVES} 0"]),
    ("dist.recv(torch.zeros(4), (rank + 1) % 3)",
     [f"{RECEIVES} 1", f"{RECEIVES} 2", f"{RECEIVES} 0"]),
    ("dist.recv(torch.zeros(4), 1) if rank == 0 else dist.barrier()",
     [f"{RECEIVES} 1", "in barrier for worker 0"]),
    ("dist.recv(torch.zeros(4), 1) if rank == 0 else dist.all_reduce(torch.zeros(1 << 20))",
     [f"{RECEIVES} 1", "in Sum all-reduce of float32 [1048576] for worker 0"]),
    (PAIRS, ["in barrier for worker 1", "in barrier for worker 2", "in barrier for worker 0"]),
]


@pytest.mark.parametrize(("script", "waits"), CIRCLES)
def test_processes_that_wait_for_each_other_are_named(
    tmp_path: Path, script: str, waits: list[str]
) -> None:
    ended = run(tmp_path, START + script + "\n", workers=len(waits), prelude="")
    pairs = zip(waits, waits[1:] + waits[:1])
    assert ended.code == 1 and any(
        f"it waits {own}, which waits {other}: they wait for each other" in ended.summary["reason"]
        for own, other in pairs), ended.text


@pytest.mark.parametrize("store", ["", "store=dist.HashStore(), "])
def test_a_rank_that_is_not_the_jobs_is_refused(tmp_path: Path, store: str) -> None:
    own = f'init_process_group("ringside", {store}rank=1 - wanted, world_size=2)'
    script = START.replace('init_process_group("ringside")', own)
    ended = run(tmp_path, "import os\nwanted = int(os.environ['RINGSIDE_RANK'])\n" + script, prelude="")
    assert ended.code == 1
    assert "says that this process has rank 1, and the job says 0" in ended.text, ended.text
