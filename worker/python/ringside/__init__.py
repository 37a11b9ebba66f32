"""Ringside in Python: scripts that train a model of their own take part in a job.

`ringside.torch` is for PyTorch, with the names that Horovod has. What this package adds to
libringside, the library in C, is what only Python knows: tensors, hooks and exceptions.
"""

from ringside._library import RingsideError, UnsupportedError

__all__ = ["RingsideError", "UnsupportedError"]
