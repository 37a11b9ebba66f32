"""Compression, as Horovod has it. Here the job says how gradients travel."""

from ringside._library import UnsupportedError


class Compressor:
    """A name for how gradients travel."""

    def __init__(self, name: str, option: str):
        self.name, self.option = name, option

    def __repr__(self) -> str:
        return f"Compression.{self.name}"


class Compression:
    """The values of DistributedOptimizer's `compression`."""

    none = Compressor("none", "")
    fp16 = Compressor("fp16", "--compress fp16")


def check(compression: Compressor) -> None:
    """Refuses what only the job's options can do."""
    if compression is not Compression.none:
        option = getattr(compression, "option", "--compress")
        raise UnsupportedError(
            f"{compression!r} is an option of the job here: leave it out of the script, and say "
            f"`ringside run {option}`"
        )
