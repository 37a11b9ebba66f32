"""DistributedOptimizer: whose gradients make which update, in which mode."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from jobs import PRELUDE, completed, run

TRAIN = """
model = make_model()
optimizer = {optimizer}
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
for step in range(12):
    optimizer.zero_grad()
    loss_of(model).backward()
    optimizer.step()
print(digest(model))
"""

PLAIN = """
import hashlib
class hvd:
    init = staticmethod(lambda: None)
    rank = staticmethod(lambda: 0)
    size = staticmethod(lambda: 1)
    DistributedOptimizer = staticmethod(lambda optimizer, *_, **__: optimizer)
"""


def plain(script: str) -> str:
    """What the script prints without us."""
    printed: list[str] = []
    source = PRELUDE.replace("import ringside.torch as hvd", PLAIN) + script
    exec(source, {"print": lambda value: printed.append(str(value))})
    return printed[-1]


MOMENTUM = "torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)"
ADAM = "torch.optim.Adam(model.parameters(), lr=0.01)"
OPTIONS = {
    MOMENTUM: ["--optimizer", "momentum", "--lr", "0.05", "--weight-decay", "1e-4"],
    ADAM: ["--optimizer", "adam", "--lr", "0.01"],
}


@pytest.mark.parametrize("optimizer", [MOMENTUM, ADAM])
def test_one_process_in_ring_has_the_bits_of_plain_torch(tmp_path: Path, optimizer: str) -> None:
    script = TRAIN.format(optimizer=optimizer)
    assert completed(tmp_path, script, workers=1).values() == [plain(script)]


@pytest.mark.parametrize("optimizer", [MOMENTUM, ADAM])
def test_ring_and_ps_sync_end_with_the_same_bits(tmp_path: Path, optimizer: str) -> None:
    script = TRAIN.format(optimizer=optimizer)
    for workers in (1, 2, 3, 4):
        ring = completed(tmp_path, script, *OPTIONS[optimizer], workers=workers,
                         variables={"RINGSIDE_UPDATES": "job"})
        servers = completed(tmp_path, script, *OPTIONS[optimizer], workers=workers,
                            mode="ps-sync")
        assert len(set(ring.values() + servers.values())) == 1
        assert len(ring.values()) == workers
        assert ring.summary["params_digest"] == servers.summary["params_digest"]


def test_two_processes_train_as_one_with_the_whole_batch(tmp_path: Path) -> None:
    script = TRAIN.format(optimizer=MOMENTUM).replace(
        "print(digest(model))", "print(model[2].bias.tolist())")
    values = completed(tmp_path, script).values()
    assert values[0] == values[1]
    whole = torch.tensor(eval(plain(script)))
    assert torch.allclose(torch.tensor(eval(values[0])), whole, atol=1e-6)


@pytest.mark.parametrize(("workers", "each"), [(2, 1), (3, 2)])
def test_ps_async_is_as_stale_as_others_are_many(tmp_path: Path, workers: int, each: int) -> None:
    """(N - 1) / c updates, where an update takes c gradients, if all are always busy."""
    script = TRAIN.format(optimizer="torch.optim.SGD(model.parameters(), lr=0.01)")
    script = script.replace("range(12)", "range(300)").replace(
        "print(digest(model))", "hvd.barrier()\nprint(0 <= hvd.staleness() < 300)")
    ended = completed(tmp_path, script, "--optimizer", "sgd", "--lr", "0.01", "--gradients-per-update",
                      str(each), mode="ps-async", workers=workers)
    assert ended.values() == ["True"] * workers
    law = (workers - 1) / each
    assert 0.3 * law < ended.summary["staleness"]["mean"] < 1.2 * law, ended.summary["staleness"]
    times = ended.summary["ms_per_step"]  # without a word of the script's
    assert 0 < times["compute"] < times["total"] and times["exchange_wait"] > 0, times


ACCUMULATE = """
model = make_model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters(){more})
for step in range(5):
    optimizer.zero_grad()
    for part in (0, 1):
        loss_of(model, part, 2).backward()
    optimizer.step()
print(digest(model))
"""


def test_gradients_of_several_backward_passes_add_up(tmp_path: Path) -> None:
    ended = completed(tmp_path, ACCUMULATE.format(more=", backward_passes_per_step=2"), workers=1)
    assert ended.values() == [plain(ACCUMULATE.format(more=""))]


def test_a_backward_pass_too_many_is_refused(tmp_path: Path) -> None:
    ended = run(tmp_path, ACCUMULATE.format(more=""), workers=1)
    assert ended.code == 1
    assert "was computed more than 1 times before step(): to add up K passes, give" in ended.summary["reason"]


CLIP = """
model = make_model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
for step in range(3):
    optimizer.zero_grad()
    (10 * loss_of(model)).backward()
    optimizer.synchronize()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    with optimizer.skip_synchronize():
        optimizer.step()
gradients = torch.cat([p.grad.flatten() for p in model.parameters()])
print(round(float(gradients.norm()), 5), float(norm) > 0.1, digest(model))
"""


def test_mean_gradients_can_be_clipped(tmp_path: Path) -> None:
    values = completed(tmp_path, CLIP).values()
    assert values[0].startswith("0.1 True") and values[0] == values[1]


SUM = """
model = make_model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
optimizer = hvd.DistributedOptimizer(optimizer, model.named_parameters(), {more})
loss_of(model, 0, 1).backward()
optimizer.synchronize()
gradient = torch.cat([p.grad.flatten() for p in model.parameters()]).clone()
with optimizer.skip_synchronize():
    optimizer.step()
other = make_model()
loss_of(other, 0, 1).backward()
own = torch.cat([p.grad.flatten() for p in other.parameters()])
print(bool(torch.allclose(gradient, {factor} * own, rtol=1e-5)))
"""


@pytest.mark.parametrize(("more", "factor"), [
    ("op=hvd.Sum", "2"), ("op=hvd.Average", "1"), ("gradient_predivide_factor=4.0", "1")])
def test_gradients_are_added_or_averaged(tmp_path: Path, more: str, factor: str) -> None:
    ended = completed(tmp_path, SUM.format(more=more, factor=factor))
    assert ended.values() == ["True", "True"]


KINDS = """
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(2)
        self.conv = torch.nn.Conv2d(3, 8, 3).to(memory_format=torch.channels_last)
        self.shared = torch.nn.Linear(8, 8)
        self.again = self.shared
        self.frozen = torch.nn.Linear(8, 8).requires_grad_(False)
        self.unused = torch.nn.Linear(8, 8)
        self.narrow = torch.nn.Linear(8, 2).bfloat16()
        self.thin = torch.nn.ParameterDict({"weight": torch.nn.Parameter(torch.ones(2).half())})

    def forward(self, x):
        x = self.conv(x).mean((2, 3))
        x = self.again(self.shared(x).tanh()) + self.frozen(x)
        return self.narrow(x.bfloat16()).float() * self.thin["weight"].float()

net = Net()
before = {name: value.clone() for name, value in net.state_dict().items()}
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
optimizer = hvd.DistributedOptimizer(optimizer, net.named_parameters())
x = torch.randn(8, 3, 6, 6, generator=generator).to(memory_format=torch.channels_last)
for step in range(3):
    optimizer.zero_grad(set_to_none=True)
    net(x[rank::size]).sum().backward()
    optimizer.step()
moved = [name for name, value in net.state_dict().items() if not torch.equal(value, before[name])]
print(digest(net.float()), net.conv.weight.is_contiguous(memory_format=torch.channels_last),
      *sorted(name.split(".")[0] for name in moved if name.endswith("weight")))
"""


@pytest.mark.parametrize("mode", ["ring", "ps-sync"])
def test_parameters_of_all_kinds_are_trained(tmp_path: Path, mode: str) -> None:
    ended = completed(tmp_path, KINDS, "--optimizer", "sgd", "--lr", "0.1", mode=mode)
    values = ended.values()
    assert len(values) == 2 and values[0] == values[1]
    assert values[0].split()[1:] == ["True", "again", "conv", "narrow", "shared", "thin"], values


REFUSED = """
def refusal(make, *arguments, **keywords):
    model = make()
    try:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        hvd.DistributedOptimizer(optimizer, model.named_parameters(), *arguments, **keywords)
        print("taken")
    except (ValueError, hvd.RingsideError) as error:
        print(f"{type(error).__name__}: {error}")

class Strided(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.gaps = torch.nn.Parameter(torch.zeros(4, 8)[:, :4])

linear = lambda: torch.nn.Linear(2, 2)
refusal(lambda: linear().double())
refusal(Strided)
class Half:
    pass

refusal(linear, compression=Half)
refusal(linear, backward_passes_per_step=0)
refusal(linear, groups=[[1]])
refusal(linear, updates="nobody")
refusal(linear, op=hvd.Adasum)
refusal(lambda: linear().requires_grad_(False))
model, other = linear(), linear()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
try:
    hvd.DistributedOptimizer(optimizer, other.named_parameters())
except ValueError as error:
    print(error)
refusal(linear)
refusal(linear)
"""


def test_what_is_not_offered_is_refused_by_name(tmp_path: Path) -> None:
    lines = run(tmp_path, REFUSED, workers=1).lines[0]
    wanted = ["the parameter weight is torch.float64, and gradients travel as float32",
              "the parameter gaps has gaps or overlaps (strides (8, 1)): make it contiguous",
              "Half'>: gradients travel by the job's exchange, which has Compression.fp16", "must be at least 1",
              "the job's --bucket-mb says", "are made by 'script' or 'job', not 'nobody'",
              "DistributedOptimizer has Average and Sum", "no parameter that wants a gradient",
              "named_parameters lacks 2 of the optimizer's 2 parameters", "taken",
              "a second DistributedOptimizer: a process has one"]
    assert len(lines) == len(wanted), lines
    for line, part in zip(lines, wanted):
        assert part in line, (part, line)


SPARSE = """
model = torch.nn.Embedding(5, 3, sparse=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
optimizer = hvd.DistributedOptimizer(optimizer, model.named_parameters())
model(torch.tensor([1, 2])).sum().backward()
"""


def test_a_sparse_gradient_is_refused_by_name(tmp_path: Path) -> None:
    ended = run(tmp_path, SPARSE, workers=1)
    assert "the gradient of weight is sparse: use torch.nn.Embedding" in ended.summary["reason"]


def test_first_parameters_that_differ_name_what_is_missing(tmp_path: Path) -> None:
    ended = run(tmp_path, TRAIN.format(optimizer=MOMENTUM).replace(
        "make_model()", "make_model(rank)"))
    assert ended.code == 1 and "first parameters differ" in ended.text
    assert "call broadcast_parameters(model.state_dict(), root_rank=0)" in ended.text


SCHEDULED = """
model = make_model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.4)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
for step in range(6):
    optimizer.zero_grad()
    loss_of(model).backward()
    optimizer.step()
    scheduler.step()
print(digest(model))
"""


def test_a_scheduler_rules_in_ring(tmp_path: Path) -> None:
    assert completed(tmp_path, SCHEDULED, workers=1).values() == [plain(SCHEDULED)]
    job = completed(tmp_path, SCHEDULED, "--optimizer", "sgd", "--lr", "0.4", workers=1,
                    variables={"RINGSIDE_UPDATES": "job"})
    assert job.values() == [plain(SCHEDULED)]  # plain SGD has one way to be computed


@pytest.mark.parametrize("order", ["before", "after"])
def test_schedulers_do_not_warn(tmp_path: Path, order: str) -> None:
    scheduler = "scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)\n"
    script = SCHEDULED.replace(scheduler, "")
    first, second = script.split("optimizer = hvd", 1)
    wrap, rest = second.split("\n", 1)
    wrap = "optimizer = hvd" + wrap + "\n"
    script = first + (scheduler + wrap if order == "before" else wrap + scheduler) + rest
    ended = completed(tmp_path, script, workers=1)
    assert "Warn" not in ended.text and ended.values() == [plain(SCHEDULED)], ended.text


CLIPPED = """
model = make_model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
loss_of(model).backward()
torch.nn.utils.clip_grad_norm_(model.parameters(), 0.001)
optimizer.step()
"""


@pytest.mark.parametrize("narrow", ["", ".bfloat16().float"])
@pytest.mark.parametrize("mode", ["ring", "ps-sync"])
def test_gradients_that_are_on_their_way_are_not_changed(tmp_path: Path, mode: str,
                                                         narrow: str) -> None:
    ended = run(tmp_path, CLIPPED.replace("make_model()", f"make_model(){narrow}()" if narrow
                                          else "make_model()"),
                "--optimizer", "sgd", "--lr", "0.1", mode=mode)
    assert "was changed between backward() and step(), on its way to the other" in ended.text
    assert ("call optimizer.synchronize() before" in ended.text) == (mode == "ring")


MOVED = """
model = make_model()
extra = torch.nn.Linear(6, 3).requires_grad_(False)
optimizer = torch.optim.SGD([*model.parameters(), *extra.parameters()], lr=0.1)
optimizer = hvd.DistributedOptimizer(optimizer)
def step():
    optimizer.zero_grad()
    (loss_of(model) + extra(features).sum()).backward()
    optimizer.step()
step()
{change}
step()
"""


@pytest.mark.parametrize(("change", "sentence"), [
    ("model.share_memory()", "the model's memory has moved"),
    ("model.double(); extra.double(); features = features.double()", "is torch.float64 now: convert"),
    ("extra.requires_grad_(True)", "a parameter of shape [3, 6] wants a gradient, and was frozen"),
    ("optimizer.add_param_group({'params': [torch.nn.Parameter(torch.ones(2))]})",
     "a parameter of shape [2] wants a gradient"),
])
def test_what_would_let_processes_differ_is_refused(tmp_path: Path, change: str,
                                                    sentence: str) -> None:
    ended = run(tmp_path, MOVED.format(change=change), workers=1)
    assert ended.code == 1 and sentence in ended.text, ended.text


SKIPPED = """
model = make_model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
optimizer = hvd.DistributedOptimizer(optimizer, model.named_parameters())
for step in range(4):
    loss_of(model).backward()
    optimizer.synchronize()
    if step % 2:
        with optimizer.skip_synchronize():
            optimizer.step()
    if step == 0:
        model[0].weight.data = model[0].weight.data.clone() * 2
    model.to(memory_format=torch.channels_last)
    optimizer.zero_grad()
print(digest(model))
"""


def test_updates_may_be_left_out_and_memory_replaced_in_ring(tmp_path: Path) -> None:
    script = SKIPPED.replace("optimizer.synchronize()", "getattr(optimizer, 'synchronize', int)()")
    same = completed(tmp_path, script).values()
    assert len(same) == 2 and same[0] == same[1]
    lonely = script.replace("with optimizer.skip_synchronize():", "if True:")
    ended = completed(tmp_path, script, workers=1)
    assert ended.values() == [plain(lonely)]


WRITTEN = """
model = make_model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
model.load_state_dict({name: value + 1 for name, value in model.state_dict().items()})
for step in range(3):
    optimizer.zero_grad()
    loss_of(model).backward()
    optimizer.step()
    if step == 1:
        model.load_state_dict({name: 0 * value for name, value in model.state_dict().items()})
print(model[0].weight.abs().sum().item() < 1)
"""


def test_parameters_that_servers_hold_are_not_written_in_vain(tmp_path: Path) -> None:
    options = ("--optimizer", "sgd", "--lr", "0.1")
    assert completed(tmp_path, WRITTEN).values() == ["True", "True"]
    ended = run(tmp_path, WRITTEN, *options, mode="ps-sync")
    assert "tensor 0 (0.weight [32, 6]) was written after the first step, and that is lost: in mode " \
        "ps-sync servers hold the parameters" in ended.text, ended.text


def test_a_scheduler_rules_over_the_rate_of_the_options(tmp_path: Path) -> None:
    ended = completed(tmp_path, SCHEDULED, "--optimizer", "sgd", "--lr", "0.4", workers=1,
                      mode="ps-sync")
    assert ended.values() == [plain(SCHEDULED)]  # plain SGD has one way to be computed


def test_an_optimizer_that_servers_do_not_have_is_told_the_options(tmp_path: Path) -> None:
    ended = run(tmp_path, TRAIN.format(optimizer=ADAM), "--optimizer", "sgd", mode="ps-async")
    options = ("--optimizer adam --lr 0.01 --beta1 0.9 --beta2 0.999 --epsilon 1e-08 "
               "--weight-decay 0")
    assert options in ended.text, ended.text
    completed(tmp_path, TRAIN.format(optimizer=ADAM), *options.split(), mode="ps-async")


ZEROED = """
torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(6, 1000), torch.nn.Linear(1000, 1000), torch.nn.Linear(1000, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
for step in range(5):
    loss_of(model).backward()
    optimizer.step()
    for parameter in model.parameters():
        parameter.grad.zero_()
print(digest(model))
"""


def test_gradients_may_be_written_behind_step(tmp_path: Path) -> None:
    """In a ring by messages, a neighbour gets this process's means from the memory of its gradients."""
    ended = completed(tmp_path, ZEROED, "--transport", "tcp", "--insecure", "--all-reduce", "ring", workers=3,
                      variables={"RINGSIDE_UPDATES": "job"})
    assert len(set(ended.values())) == 1
