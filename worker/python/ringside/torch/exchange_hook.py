"""A communication hook by which gradients of DistributedDataParallel travel in the job's exchange.

In ring, and in ps-sync where servers hand back means (--server-optimizer none).
"""

from typing import Any

import torch
import torch.distributed as dist

from ringside import _job, _library
from ringside._library import RingsideError, UnsupportedError
from ringside.torch.flat import FlatVectors


class _Bucket:
    """The memory of a bucket, and where each of its gradients belongs."""

    def __init__(self, bucket: Any, indices: dict[int, int]):
        self.buffer: torch.Tensor = bucket.buffer()
        own = [indices[id(parameter)] for parameter in bucket.parameters()]
        self.gradients = list(zip(own, bucket.gradients()))


class Exchanged:
    """The gradients of a model of DistributedDataParallel, in the job's exchange.

    For `model.register_comm_hook(Exchanged(model), exchange_hook)`. DistributedDataParallel may
    rearrange its buckets: a gradient is found by its parameter.
    """

    def __init__(self, model: torch.nn.Module):
        job = _job.current()
        if job.description.servers_update:
            raise UnsupportedError(
                f"exchange_hook: in mode {job.mode} servers make the updates; use --mode ring, "
                "--mode ps-sync with --server-optimizer none, or "
                "ringside.torch.DistributedOptimizer"
            )
        if job.optimizer is not None:
            raise UnsupportedError(
                "exchange_hook: a process has one model, or one DistributedOptimizer, in the "
                "exchange"
            )
        pairs = [pair for pair in model.named_parameters() if pair[1].requires_grad]
        self._job, self._is_begun = job, False
        self._vectors = FlatVectors(job, pairs)
        self._indices = {id(parameter): index for index, (_, parameter) in enumerate(pairs)}
        self._sent: list[tuple[_Bucket, Any]] = []
        job.optimizer = self
        job.call("keep_gradients")
        job.start()

    def _begin(self) -> None:
        self._vectors.check_places()
        self._vectors.follow_parameters()
        if self._job.call("begin_step") == _library.END:
            raise RingsideError(
                f"the job has made its {self._job.description.steps} steps (--steps), and the "
                "script computes another gradient: without --steps there are as many as it makes"
            )
        self._job.call("await", _library.ALL)
        self._job.call("begin_gradients")
        self._is_begun = True

    def _end(self) -> None:
        self._job.call("end_step")
        self._is_begun = False
        sent, self._sent = self._sent, []
        with torch.no_grad():
            for bucket, _ in sent:
                for index, gradient in bucket.gradients:
                    gradient.copy_(self._vectors.slots[index].gradient)
        for bucket, future in sent:
            future.set_result(bucket.buffer)

    def send(self, given: Any) -> torch.futures.Future[torch.Tensor]:
        """Sends a bucket of DistributedDataParallel. The last one's call waits for all means."""
        if not self._is_begun:
            self._begin()
        bucket = _Bucket(given, self._indices)
        future: torch.futures.Future[torch.Tensor] = torch.futures.Future()
        with torch.no_grad():
            for index, gradient in bucket.gradients:
                self._vectors.slots[index].gradient.copy_(gradient)
                self._job.ready(index)
        self._sent.append((bucket, future))
        if given.is_last():
            self._end()
        return future


def exchange_hook(state: Exchanged, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """The mean gradients of all processes. `state` is an Exchanged of the same model."""
    return state.send(bucket)
