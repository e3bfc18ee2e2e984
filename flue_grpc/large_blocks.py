"""Giving the memory of large messages back to the system as soon as they are gone."""

from __future__ import annotations

from typing import Final

from flue_grpc import limits

_M_TRIM_THRESHOLD: Final = -1  # from malloc.h
_M_MMAP_THRESHOLD: Final = -3


def give_large_blocks_back() -> None:
    """Tell glibc's allocator to do so for this whole process; nothing with another one.

    By itself it takes the size of freed blocks for a hint, and soon keeps each of up
    to 32 MiB in the heap of the thread that asked for it.
    """
    import ctypes  # noqa: PLC0415 - never delays the start

    try:
        tune = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return
    tune(_M_MMAP_THRESHOLD, limits.LARGE_BLOCK_BYTES)
    tune(_M_TRIM_THRESHOLD, 2 * limits.LARGE_BLOCK_BYTES)
