"""Which columns of a table a terminal has room for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

GAP: Final = 2  # between two columns


class Column(msgspec.Struct, frozen=True):
    """A column: its head, and the text of each row."""

    head: str
    texts: tuple[Text, ...]

    @property
    def width(self) -> int:
        """How many cells of a terminal it takes to be whole."""
        return max(Text(self.head).cell_len, *(text.cell_len for text in self.texts), 0)


def fitting(
    columns: Sequence[Column], dropped_first: Iterable[str], width: int
) -> tuple[tuple[Column, ...], int]:
    """Leave columns out, by their heads in this order, until the rest is whole within ``width``.

    A gap follows each. Returns what is kept, and how many cells are left: below 0 where
    even what cannot be left out is too wide.
    """
    kept, order = list(columns), iter(dropped_first)
    while (left := width - sum(column.width + GAP for column in kept)) < 0:
        head = next(order, None)
        if head is None:
            break
        kept = [column for column in kept if column.head != head]
    return tuple(kept), left
