"""What a domain list yields: items with their place, and hints for the wire.

A list is an iterator of ``Placed`` items, oldest place first. The cursor of an
item is the place just after it: a msgspec struct from which the same list goes
on. ``Pause`` says that the next item may take a while, so what is held should
leave now; it carries how far a long scan has come (contract rules 1 and 2). ``Stop``
ends a list whose budget was spent before its end.
"""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec

T = TypeVar("T")


class Cursor(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Base of every list's cursor: plain numbers, strings and None, no path."""


class Placed(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """One item and the cursor of the place just after it."""

    item: T
    cursor: Cursor


class Pause(msgspec.Struct, frozen=True):
    """Nothing is at hand: send what is held; ``bytes_scanned`` counts from the start.

    ``cursor``, where a scan has one, is the place from which it would go on.
    """

    bytes_scanned: int = 0
    cursor: Cursor | None = None


class Stop(msgspec.Struct, frozen=True):
    """The last of a list that ended at its byte budget: ``cursor`` is where it goes on.

    A list that ends without it has nothing left. ``bytes_scanned`` as in ``Pause``.
    """

    cursor: Cursor
    bytes_scanned: int = 0
