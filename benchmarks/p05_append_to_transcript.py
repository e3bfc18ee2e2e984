"""P5: one more line in a transcript until the summary has it, for a large and a small file."""

from __future__ import annotations

import tempfile
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

from harness import Goal, compare, interleave, seconds
from homes import home, transcript_of

from flue_grpc.agentindex.index import AgentIndex
from flue_grpc.agentindex.settings import IndexSettings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness import Figure, Scale


def measure(scale: Scale) -> Iterator[Figure]:
    """Yield the ratio of the two."""
    large = scale.pick(100, 20)
    with tempfile.TemporaryDirectory(dir=scale.work) as temporary:
        source, path = home(scale.work, 60, 100), Path(temporary) / "home"
        ids = [transcript_of(source, path, size, number) for number, size in enumerate((large, 1))]
        files = [next(path.rglob(f"{name}.jsonl")) for name in ids]
        settings = IndexSettings(
            home=str(path),
            directory=Path(temporary) / "index",
            ranked=False,
            sweep_interval=3600,
        )
        with AgentIndex.open(settings) as index:
            pause = Event()
            while index.building:
                pause.wait(0.02)
            ours, small = interleave(
                scale.rounds * 5,
                (f"{large} MB", "ms", lambda: _append(index, files[0])),
                ("1 MB", "ms", lambda: _append(index, files[1])),
                warm_up=3,
            )
    yield compare(Goal("P5", f"append to {large} MB, seen", "at most", 1.5), ours, small)


def _append(index: AgentIndex, file: Path) -> float:
    """Return the milliseconds from the hint that the file changed to its new summary."""
    line = '{"type":"user","timestamp":"2026-01-05T08:00:00.000Z","message":{"role":"user","content":"go on"}}\n'
    with index.changes.subscribe() as changes:
        with file.open("a", encoding="utf-8") as out:
            out.write(line)

        def seen() -> None:
            index.refresh((str(file),))
            wanted = file.stat().st_size
            while index.resolve("claude", file.stem).file_size != wanted:
                if not changes.event.wait(30):
                    raise TimeoutError(file)
                changes.take()

        return seconds(seen) * 1000
