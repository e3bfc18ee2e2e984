"""What parsing one transcript adds to the index file, until it is written there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flue_grpc.limits import BLOCKS_SPILL, LEDGER_SPILL_ENTRIES

if TYPE_CHECKING:
    from collections.abc import Callable

    from flue_grpc.agentindex.ledgers import FreshLedger
    from flue_grpc.agentindex.records import Entry


class Draft:
    """The tables' share of one transcript; a ``parsing.Sink``.

    ``replaces`` is the tid under which the same path was kept before, if it was
    parsed from zero. ``entry`` and ``state`` are there once parsing is over.
    ``has_spilled`` says that a part stands in the open transaction already.
    """

    __slots__ = (
        "_pace",
        "_spill",
        "blocks",
        "checkpoints",
        "entry",
        "has_spilled",
        "ledger",
        "replaces",
        "state",
        "tail",
        "tid",
    )

    def __init__(
        self,
        tid: int,
        replaces: int | None,
        ledger: FreshLedger,
        pace: Callable[[], None],
        spill: Callable[[Draft], None],
    ) -> None:
        """Start empty; ``pace`` is called per block, ``spill`` writes a large draft's part."""
        self.tid = tid
        self.replaces = replaces
        self.ledger = ledger
        self.blocks: dict[int, bytes] = {}
        self.checkpoints: list[tuple[int, str]] = []
        self.tail = b""
        self.entry: Entry | None = None
        self.state = b""
        self.has_spilled = False
        self._pace = pace
        self._spill = spill

    def add_block(self, number: int, data: bytes) -> None:
        """Keep a block of usage; one of the same number is replaced."""
        self.blocks[number] = data
        self._pace()
        if len(self.ledger.fresh) >= LEDGER_SPILL_ENTRIES or len(self.blocks) >= BLOCKS_SPILL:
            self.has_spilled = True  # even if only in part
            self._spill(self)
            self.blocks.clear()
            self.checkpoints.clear()

    def add_checkpoint(self, offset: int, model: str) -> None:
        """Keep the model in force from ``offset`` on."""
        self.checkpoints.append((offset, model))

    def set_tail(self, data: bytes) -> None:
        """Keep the usage of the unterminated last line, empty for none."""
        self.tail = data
