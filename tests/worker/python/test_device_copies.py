"""Parameters and gradients on a GPU, with a double of torch.cuda: fake_cuda.py."""

from __future__ import annotations

from pathlib import Path

import fake_cuda
import pytest
import torch
from jobs import PRELUDE, completed
from ringside.torch import device_copies

HERE = Path(__file__).resolve().parent


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> fake_cuda.Cuda:
    for name in ("cuda", "is_on_device", "_copy", "_keep"):  # are put back
        monkeypatch.setattr(device_copies, name, getattr(device_copies, name))
    return fake_cuda.install("all")


def test_a_gradient_is_there_when_its_event_has_come(cuda: fake_cuda.Cuda) -> None:
    copies = device_copies.DeviceCopies()
    host = torch.zeros(2, 3)
    on_device = torch.arange(6.0).reshape(3, 2).t()  # other strides
    event = copies.take(host, on_device)
    assert host.sum() == 0
    event.synchronize()
    assert torch.equal(host, on_device)
    half = torch.ones(2, 3, dtype=torch.float16)
    copies.take(host, half).synchronize()
    assert host.sum() == 6


def test_the_script_comes_behind_what_it_is_given(cuda: fake_cuda.Cuda) -> None:
    copies = device_copies.DeviceCopies()
    host, on_device = torch.ones(4), torch.zeros(4, dtype=torch.bfloat16)
    copies.give(on_device, host)
    assert on_device.sum() == 0
    copies.end_giving()
    assert on_device.sum() == 4
    copies.settle()


def test_pages_that_cannot_be_locked_are_told(cuda: fake_cuda.Cuda) -> None:
    copies = device_copies.DeviceCopies()
    vector = torch.zeros(1 << 18)
    copies.lock(vector)
    assert cuda.runtime.locked == [(vector.data_ptr(), 1 << 20)]
    cuda.runtime.code = 2
    with pytest.warns(UserWarning, match="1 MiB .* cannot be page-locked .cudaHostRegister"):
        copies.lock(vector)


TRAIN = """
model = make_model()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters(),
                                     backward_passes_per_step={passes}, op=hvd.{op})
for step in range(8):
    optimizer.zero_grad()
    for _ in range({passes}):
        loss_of(model).backward()
    optimizer.step()
print(digest(model))
"""


def on_device(which: str) -> str:
    return PRELUDE.replace("import ringside.torch as hvd", f"""
import ringside.torch as hvd
sys.path.insert(0, {str(HERE)!r})
import fake_cuda
fake_cuda.install({which!r})
""")


WAYS = [("ring", "all", 1, "Average", ""), ("ring", "matrices", 2, "Sum", ""),
        ("ring", "all", 1, "Average", "job"), ("ps-sync", "all", 2, "Sum", ""),
        ("ps-sync", "matrices", 1, "Average", "")]


@pytest.mark.parametrize("mode, which, passes, op, updates", WAYS)
def test_training_has_the_bits_of_the_host(
    tmp_path: Path, mode: str, which: str, passes: int, op: str, updates: str
) -> None:
    script = TRAIN.format(passes=passes, op=op)
    variables = {"RINGSIDE_UPDATES": updates} if updates else {}
    wanted = completed(tmp_path, script, mode=mode, variables=variables)
    found = completed(tmp_path, script, mode=mode, variables=variables, prelude=on_device(which))
    assert found.values() == wanted.values() and len(set(found.values())) == 1
    assert found.summary["params_digest"] == wanted.summary["params_digest"]


def test_models_on_a_device_train_in_ps_async(tmp_path: Path) -> None:
    script = TRAIN.format(passes=1, op="Average") + "print(fake_cuda.copies)\n"
    ended = completed(tmp_path, script, mode="ps-async", prelude=on_device("all"))
    assert all(int(value) >= 2 * 8 * 4 for value in ended.values())
