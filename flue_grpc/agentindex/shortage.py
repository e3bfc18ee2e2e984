"""Tells a shortage of the system from a fault of one file."""

from __future__ import annotations

import errno
from typing import Final

_SHORTAGES: Final = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOMEM))


def is_shortage(error: BaseException) -> bool:
    """Whether ``error``, or what it was raised from, says nothing of the file itself.

    The system had no descriptor or memory left for us: what is known of the file stays
    true.
    """
    return any(
        isinstance(each, OSError) and each.errno in _SHORTAGES for each in (error, error.__cause__)
    )
