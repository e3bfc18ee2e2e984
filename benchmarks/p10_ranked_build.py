"""P10: building the RANKED index, against inserting the same texts into a plain FTS5 table.

What is judged begins with messages at hand, as the plain insert begins with texts: index
form, words, places, filters, merging. A row without a goal adds reading and decoding.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

import apsw
from harness import Goal, Series, absolute, compare, interleave
from prose import Prose
from ranked_homes import PER_SESSION, prose_home

from flue_grpc.agentindex import index_rows
from flue_grpc.agentindex.adapters.registry import ADAPTERS
from flue_grpc.agentindex.index import AgentIndex
from flue_grpc.agentindex.index_file import open_index_file
from flue_grpc.agentindex.ranked_fill import Portion, Writer, row_of
from flue_grpc.agentindex.ranked_follower import RANKED
from flue_grpc.agentindex.settings import IndexSettings
from flue_grpc.agentindex.values import Message
from flue_grpc.limits import RANKED_PORTION_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harness import Figure, Scale
    from prose import Script

_GOALS: Final[dict[Script, tuple[float, float]]] = {"ascii": (0.85, 0.45), "mixed": (0.35, 0.7)}


@dataclass
class _Sizes:
    """Bytes of the texts, and what the index file grew by."""

    text: int
    index: int = 0


def measure(scale: Scale) -> Iterator[Figure]:
    """Yield speed and size for both kinds of text."""
    count = scale.pick(100_000, 5_000)
    plain = list(Prose("ascii").texts(count))
    for script, (speed, part) in _GOALS.items():
        texts = list(Prose(script).texts(count))
        sizes, path = _Sizes(_bytes(texts)), prose_home(scale.work, count, script)
        build, fill, insert = interleave(
            min(scale.rounds, 5),
            ("RANKED", "s CPU", partial(_build, scale, _messages(texts), sizes)),
            ("RANKED", "s CPU", partial(_fill, scale, path)),
            ("FTS5", "s CPU", partial(_insert, scale, plain)),
        )
        reference = _rate(insert, _bytes(plain))
        goal = Goal("P10", f"build, {script}, {count} messages", "at least", speed)
        yield compare(goal, _rate(build, sizes.text), reference)
        goal = Goal("P10", f"the same from transcripts, {script}")
        yield compare(goal, _rate(fill, sizes.text), reference)
        ratio = Series("index / text", "", (sizes.index / sizes.text,))
        yield absolute(Goal("P10", f"size, {script}", "at most", part), ratio)


def _messages(texts: Sequence[str]) -> list[Message]:
    """Put the texts where transcripts have them."""
    return [
        Message("user", "text", text, number % PER_SESSION * 700, 0, number * 1_000_000)
        for number, text in enumerate(texts)
    ]


def _build(scale: Scale, messages: Sequence[Message], sizes: _Sizes) -> float:
    """Write the index of messages in sessions of PER_SESSION; return the CPU seconds."""
    with tempfile.TemporaryDirectory(dir=scale.work) as temporary:
        file = open_index_file(Path(temporary), "/", (RANKED.part,))
        db = file.writer()
        before = _used(db)
        start = time.process_time()
        writer, rest = Writer(db), iter(messages)
        tid = 0
        while session := list(islice(rest, PER_SESSION)):
            tid += 1
            for some in _portions(session):
                rows, end = [row_of(message) for message in some], some[-1].offset
                writer.add(Portion(tid, rows, end, end, kinds=0, mirror=False))
        writer.finish(lambda: None)
        taken = time.process_time() - start
        sizes.index = _used(db) - before
        db.close()
        file.close()
        return taken


def _portions(session: Sequence[Message]) -> Iterator[list[Message]]:
    """Cut a session as the filling of the index does."""
    held: list[Message] = []
    size = 0
    for message in session:
        held.append(message)
        size += len(message.text)
        if size >= RANKED_PORTION_BYTES:
            yield held
            held, size = [], 0
    if held:
        yield held


def _fill(scale: Scale, path: Path) -> float:
    """Fill the RANKED index of a home that is swept already; return the CPU seconds."""
    with tempfile.TemporaryDirectory(dir=scale.work) as temporary:
        directory = Path(temporary)
        with AgentIndex.open(
            IndexSettings(home=str(path), directory=directory, ranked=False)
        ) as index:
            while index.building:
                time.sleep(0.05)
        file = open_index_file(directory, str(path), (RANKED.part,))
        db = file.writer()
        entries = list(index_rows.load_entries(db))
        start = time.process_time()
        adapters = {adapter.tool: adapter for adapter in ADAPTERS}
        RANKED.fill(db, entries, adapters, lambda: None)
        taken = time.process_time() - start
        db.close()
        file.close()
        return taken


def _insert(scale: Scale, rows: Sequence[str]) -> float:
    with tempfile.TemporaryDirectory(dir=scale.work) as temporary:
        db = apsw.Connection(f"{temporary}/plain.db")
        db.execute("pragma journal_mode = wal")
        db.execute("create virtual table t using fts5(text, content='', tokenize='unicode61')")
        start = time.process_time()
        with db:
            db.executemany("insert into t(rowid, text) values(?, ?)", enumerate(rows, 1))
        taken = time.process_time() - start
        db.close()
        return taken


def _rate(taken: Series, size: int) -> Series:
    return Series(taken.name, "MB/s CPU", tuple(size / 1e6 / s for s in taken.samples))


def _bytes(texts: Sequence[str]) -> int:
    return sum(len(text.encode()) for text in texts)


def _used(db: apsw.Connection) -> int:
    """Return the bytes of the pages in use."""
    pages, free, size = (
        db.execute(f"pragma {name}").get for name in ("page_count", "freelist_count", "page_size")
    )
    return (pages - free) * size
