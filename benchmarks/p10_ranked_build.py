"""P10: building the RANKED index from transcripts, against inserting the same texts into FTS5."""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import apsw
from harness import Goal, Series, absolute, compare, interleave
from ranked_homes import ranked_home, texts

from flue_grpc.agentindex import index_rows
from flue_grpc.agentindex.adapters.registry import ADAPTERS
from flue_grpc.agentindex.index import AgentIndex
from flue_grpc.agentindex.index_file import open_index_file
from flue_grpc.agentindex.ranked_follower import RANKED
from flue_grpc.agentindex.settings import IndexSettings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness import Figure, Scale

_GOALS = {"ascii": (0.85, 0.45), "mixed": (0.35, 0.7)}


@dataclass
class _Sizes:
    """Bytes of the texts, and what the index file grew by."""

    text: int = 0
    index: int = 0


def measure(scale: Scale) -> Iterator[Figure]:
    """Yield speed and size for both kinds of text."""
    messages = scale.pick(100_000, 5_000)
    plain = texts("ascii")
    ascii_texts = [plain() for _ in range(messages)]
    for script, (speed, part) in _GOALS.items():
        path, sizes = ranked_home(scale.work, messages, script), _Sizes()
        build, insert = interleave(
            min(scale.rounds, 5),
            ("RANKED", "s CPU", lambda path=path, sizes=sizes: _build(scale, path, sizes)),
            ("FTS5", "s CPU", lambda: _insert(scale, ascii_texts)),
        )
        made = texts(script)
        sizes.text = sum(len(made().encode()) for _ in range(messages))
        size = sum(map(len, ascii_texts))
        build_rate = Series(
            "RANKED", "MB/s CPU", tuple(sizes.text / 1e6 / s for s in build.samples)
        )
        plain_rate = Series("FTS5", "MB/s CPU", tuple(size / 1e6 / s for s in insert.samples))
        goal = Goal("P10", f"build, {script}, {messages} messages", "at least", speed)
        yield compare(goal, build_rate, plain_rate)
        ratio = Series("index / text", "", (sizes.index / sizes.text,))
        yield absolute(Goal("P10", f"size, {script}", "at most", part), ratio)


def _build(scale: Scale, path: Path, sizes: _Sizes) -> float:
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
        before = _bytes(db)
        start = time.process_time()
        adapters = {adapter.tool: adapter for adapter in ADAPTERS}
        RANKED.fill(db, entries, adapters, lambda: None)
        taken = time.process_time() - start
        sizes.index = _bytes(db) - before
        db.close()
        file.close()
        return taken


def _insert(scale: Scale, rows: list[str]) -> float:
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


def _bytes(db: apsw.Connection) -> int:
    """Return the bytes of the pages in use."""
    pages, free, size = (
        db.execute(f"pragma {name}").get for name in ("page_count", "freelist_count", "page_size")
    )
    return (pages - free) * size
