"""How a script joins and leaves its job, and what the job hears of it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
from pathlib import Path

import pytest
from jobs import LIMIT, PRELUDE, SOURCE, Ended, command, completed, environment, run

TRAIN = """
model = make_model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
def step():
    optimizer.zero_grad()
    loss = loss_of(model)
    loss.backward()
    optimizer.step()
    return loss
"""
SGD = ("--optimizer", "sgd", "--lr", "0.1")

REPORT = """
for _ in range(30):
    hvd.report(loss=step(), images=24)
guessed = model(features[rank::size]).argmax(1) == labels[rank::size]
hvd.report(accuracy=guessed.float().mean(), test_images=24, test_loss=0.5)
correct = hvd.allreduce(guessed.sum(), op=hvd.Sum)
hvd.shutdown()
print(int(correct), digest(model), hvd.is_initialized())
"""


@pytest.mark.parametrize("mode", ["ring", "ps-sync"])
def test_the_summary_has_what_the_script_reports(tmp_path: Path, mode: str) -> None:
    ended = completed(tmp_path, TRAIN + REPORT, *SGD, mode=mode)
    correct, *rest = ended.values()[0].split()
    epoch = ended.summary["epochs"][0]
    assert ended.summary["steps"] == 30 and ended.summary["model"] == "external:train.py"
    assert epoch["test_accuracy"] == pytest.approx(int(correct) / 48)
    assert epoch["test_loss"] == pytest.approx(0.5) and 0.2 < epoch["train_loss"] < 1.2
    assert rest[1] == "False"  # and the model outlives the job


@pytest.mark.parametrize("mode", ["ring", "ps-async"])
def test_an_exception_in_one_process_ends_the_job(tmp_path: Path, mode: str) -> None:
    ended = run(tmp_path, TRAIN + """
for i in range(1000000):
    step()
    if rank == 1 and i == 20:
        raise KeyError("no such image")
""", *SGD, mode=mode)
    assert ended.code == 1
    assert "worker 1" in ended.summary["reason"]
    assert "KeyError: 'no such image'" in ended.summary["reason"]
    assert any("raise KeyError" in line for line in ended.lines[1]), ended.text


@pytest.mark.parametrize("end", ["import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
                                 "import os; os._exit(3)"])
def test_a_process_that_is_gone_ends_the_job(tmp_path: Path, end: str) -> None:
    ended = run(tmp_path, TRAIN + f"""
while True:
    step()
    if rank == 1:
        {end}
""", *SGD)
    assert ended.code == 1 and "worker 1" in ended.summary["reason"], ended.text


@pytest.mark.parametrize("mode", ["ring", "ps-async"])
def test_an_interrupt_ends_the_job_and_its_processes(tmp_path: Path, mode: str) -> None:
    """As Ctrl-C does, while both train."""
    script, out = tmp_path / "train.py", tmp_path / "run"
    script.write_text(PRELUDE + TRAIN + """
import os
step()
print("trains", os.getpid(), flush=True)
while True:
    step()
""")
    job = subprocess.Popen(command(out, [str(script)], *SGD, mode=mode), env=environment(), text=True,
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    killer = threading.Timer(LIMIT, job.kill)
    killer.start()
    text = ""
    processes: list[str] = []
    assert job.stdout
    for line in job.stdout:
        text += line
        told = re.findall(r"] trains (\d+)$", line)
        processes += told
        if told and len(processes) == 2:
            job.send_signal(signal.SIGINT)
    ended = Ended(job.wait(), text, out)
    killer.cancel()
    assert ended.code == 130 and ended.summary["outcome"] == "failed", ended.text
    assert "interrupted by SIGINT (Ctrl-C)" in ended.summary["reason"]
    assert len(processes) == 2 and not any(os.path.exists(f"/proc/{process}") for process in processes)


@pytest.mark.parametrize("end", ["sys.exit('no images in /data')",
                                 "raise SystemExit('no images in /data')",
                                 "try: sys.exit('no images in /data')\n    finally: hvd.shutdown()"])
def test_a_script_that_gives_up_ends_the_job_with_its_text(tmp_path: Path, end: str) -> None:
    ended = run(tmp_path, TRAIN + f"""
step()
if rank == 1:
    {end}
while True: step()
""", *SGD, is_warm=False)
    assert ended.code == 1 and "no images in /data" in ended.summary["reason"], ended.text


CAUGHT = """
import threading
step()
try:
    sys.exit("not meant")
except SystemExit as error:
    print(type(error.code).__name__)
thread = threading.Thread(target=lambda: sys.exit("of a thread"))
thread.start()
thread.join()
import atexit
atexit.register(print, "goodbye", file=sys.stderr)
try:
    raise SystemExit("not meant either")
except SystemExit:
    step()
if rank == 0:
    raise SystemExit(0)
try:
    step() if False else sys.exit(0)
finally:
    hvd.shutdown()
"""


def test_an_exit_that_is_caught_or_well_meant_is_no_failure(tmp_path: Path) -> None:
    ended = completed(tmp_path, TRAIN + CAUGHT, *SGD, is_warm=False)
    assert ended.lines == {0: ["str", "goodbye"], 1: ["str", "goodbye"]}


def test_fewer_steps_in_one_process_are_named(tmp_path: Path) -> None:
    ended = run(tmp_path, TRAIN + "for _ in range(5 + 3 * rank): step()\n", *SGD)
    assert ended.code == 1
    assert "left after 5 steps, but worker 1" in ended.summary["reason"], ended.summary["reason"]


def test_steps_beyond_the_length_of_the_job_are_refused(tmp_path: Path) -> None:
    ended = run(tmp_path, TRAIN + "for _ in range(5): step()\n", *SGD, "--steps", "4")
    assert "the job has made its 4 steps (--steps)" in ended.text
    ended = completed(tmp_path, TRAIN + "for _ in range(4): step()\n", *SGD, "--steps", "4")
    assert re.search(r"completed: 4 steps in .* s, parameters ", ended.text), ended.text


def test_a_script_without_training_is_a_job(tmp_path: Path) -> None:
    ended = completed(tmp_path, "print(hvd.allreduce(torch.ones(2), op=hvd.Sum).tolist())\n",
                      workers=3)
    assert ended.values() == ["[3.0, 3.0]"] * 3


PLACES = """
print(rank, size, hvd.local_rank(), hvd.local_size(), hvd.cross_rank(), hvd.cross_size(),
      hvd.is_homogeneous(), hvd.mode(), hvd.nccl_built(), hvd.mpi_built())
hvd.init()
"""


def test_processes_know_their_places(tmp_path: Path) -> None:
    ended = completed(tmp_path, PLACES, mode="ps-ssp:2")
    assert ended.values() == [f"{r} 2 {r} 2 0 1 True ps-ssp:2 0 False" for r in (0, 1)]


REFUSED = """
for call in (lambda: hvd.join(), lambda: hvd.init(comm=[0]), lambda: hvd.nonsense,
             lambda: hvd.report(accuracy=3), lambda: hvd.report(loss=float("nan")),
             lambda: hvd.report(loss=1.0, images=2)):
    try:
        call()
        print("taken")
    except (AttributeError, hvd.RingsideError) as error:
        print(error)
"""


# What `import horovod.torch as hvd` has, by the documentation of 0.28.
HOROVOD = """
allgather allgather_async allgather_object allreduce allreduce_ allreduce_async allreduce_async_ alltoall
alltoall_async barrier broadcast broadcast_ broadcast_async broadcast_async_ broadcast_object
broadcast_optimizer_state broadcast_parameters ccl_built cross_rank cross_size cuda_built ddl_built
gloo_built gloo_enabled grouped_allgather grouped_allgather_async grouped_allreduce grouped_allreduce_
grouped_allreduce_async grouped_allreduce_async_ grouped_reducescatter grouped_reducescatter_async init
is_homogeneous is_initialized join local_rank local_size mpi_built mpi_enabled mpi_threads_supported
nccl_built poll rank reducescatter reducescatter_async rocm_built shutdown size synchronize elastic
Adasum Average Compression DistributedOptimizer Max Min Product Sum
ProcessSet SyncBatchNorm add_process_set global_process_set remove_process_set run
sparse_allreduce_async start_timeline stop_timeline
"""


def test_every_name_of_horovod_is_there_or_says_what_to_do(tmp_path: Path) -> None:
    ended = completed(tmp_path, f"""
refused = []
for name in {HOROVOD!r}.split():
    try:
        assert getattr(hvd, name) is not None
    except AttributeError as error:
        assert f"has no {{name}}: " in str(error), error
        refused.append(name)
print(*refused)
""", workers=1)
    assert ended.values() == ["ProcessSet SyncBatchNorm add_process_set global_process_set remove_process_set run "
                              "sparse_allreduce_async start_timeline stop_timeline"]


def test_the_page_has_every_name_of_horovod() -> None:
    page = (SOURCE / "docs" / "TORCH.md").read_text()
    for name in HOROVOD.split():
        base = re.sub(r"_async_?$|_$", "", name)
        is_like_others = name.endswith(("_built", "_enabled", "_supported"))
        assert is_like_others or re.search(rf"[`.=]({name}|{base})\b", page), name


def test_what_is_not_offered_says_what_to_do(tmp_path: Path) -> None:
    lines = run(tmp_path, REFUSED, workers=1).lines[0]
    wanted = ["cut the data with drop_last=True", "call init() alone",
              "no attribute 'nonsense'", "accuracy is 3, and must be 0 to 1", "loss is nan",
              "report() comes after the first backward()"]
    assert len(lines) == len(wanted), lines
    for line, part in zip(lines, wanted):
        assert part in line, (part, line)


FORKED = """
import os
from torch.utils.data import DataLoader, TensorDataset
for batch, target in DataLoader(TensorDataset(features, labels), batch_size=12, num_workers=2):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(batch), target).backward()
    optimizer.step()
child = os.fork()
if child == 0:
    try:
        hvd.barrier()
    except hvd.RingsideError as error:
        sys.exit(0 if "only that one may use it" in str(error) else 5)
    sys.exit(4)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_forks_leave_the_job_alone(tmp_path: Path) -> None:
    assert completed(tmp_path, TRAIN + FORKED, *SGD).values() == ["0", "0"]


def test_an_exception_that_passes_a_shutdown_ends_the_job(tmp_path: Path) -> None:
    ended = run(tmp_path, TRAIN + """
try:
    step()
    if rank == 1:
        raise ValueError("bad image 17")
    step()
finally:
    hvd.shutdown()
""", *SGD)
    assert "ValueError: bad image 17" in ended.summary["reason"], ended.text


def test_a_process_joins_once(tmp_path: Path) -> None:
    ended = run(tmp_path, TRAIN + "step()\nhvd.shutdown()\nhvd.shutdown()\nhvd.init()\n", *SGD,
                workers=1)
    assert "this process has left its job, and a process joins once" in ended.text


def test_outside_of_a_job_there_is_a_sentence(tmp_path: Path) -> None:
    ended = run(tmp_path, "print('never')", prelude="import ringside.torch as hvd\nhvd.rank()\n",
                workers=1)
    assert "the script has to call init() first" in ended.text
