"""How much Python a step takes beside PyTorch's own: counted in calls, since time says little."""

from __future__ import annotations

from pathlib import Path

import pytest
from jobs import completed

LAYERS = 40

COUNT = f"""
import collections, os
torch.manual_seed(1)
model = torch.nn.Sequential(*[torch.nn.Linear(6, 6) for _ in range({LAYERS})], torch.nn.Linear(6, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
counts = collections.Counter()
PACKAGE = os.path.dirname(os.path.dirname(hvd.__file__))

def note(frame, event, argument):
    file = frame.f_code.co_filename
    is_ours = file.startswith(PACKAGE)
    if event == "call" and (is_ours or file.endswith("grad_mode.py")):
        counts["calls"] += 1
        counts[f"{{os.path.basename(file)}}:{{frame.f_code.co_name}}"] += 1
    elif event == "c_call" and is_ours:
        counts["c_calls"] += 1

def step():
    optimizer.zero_grad()
    loss_of(model).backward()
    optimizer.step()

step()
step()
sys.setprofile(note)
step()
sys.setprofile(None)
print("of these", counts.most_common(14))
print(counts["calls"], counts["c_calls"])
"""


@pytest.mark.parametrize("mode, calls, c_calls", [("ring", 6, 7), ("ps-sync", 6, 7)])
def test_a_parameter_costs_few_calls(
    tmp_path: Path, mode: str, calls: float, c_calls: float
) -> None:
    """Of ours, for each parameter in a step; what a step has beside them is among them."""
    ended = completed(tmp_path, COUNT, mode=mode)
    parameters = 2 * (LAYERS + 1)
    for line in ended.values():
        of_all = [int(word) / parameters for word in line.split()]
        assert of_all[0] <= calls and of_all[1] <= c_calls, ended.text
