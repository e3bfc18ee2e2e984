"""P8: SUBSTRING search for rare words: the first hit, against a scan of everything."""

from __future__ import annotations

import random
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from harness import Goal, compare, interleave
from homes import home, size_of
from servers import without_scanner

from flue.agentindex.v1 import agent_index_pb2

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness import Figure, Scale
    from servers import Product

_COMMON = b"timeout"
_WORDS = [f"qzx{letter}vwy" for letter in "abcdefghij"]
_PLACES = 64  # of each word


def measure(scale: Scale) -> Iterator[Figure]:
    """Yield the ratio of the medians over ten words."""
    source = home(scale.work, *((64, 95) if scale.name == "full" else (20, 33)))
    with tempfile.TemporaryDirectory(dir=scale.work) as temporary:
        path = Path(temporary) / "home"
        shutil.copytree(source, path)
        _plant(sorted(path.rglob("*.jsonl")))
        with without_scanner(path, scale.work) as served:
            served.ranked()
            first, whole = interleave(
                scale.rounds,
                ("first hit", "ms", lambda: statistics.median(map(_first(served), _WORDS))),
                ("whole scan", "ms", lambda: _scan(served)),
            )
        goal = Goal("P8", f"rare word, {size_of(path) / (1 << 20):.0f} MiB", "at most", 0.25)
    yield compare(goal, first, whole)


def _plant(files: list[Path]) -> None:
    """Put the words in place of common ones of their length, evenly over all bytes."""
    dice = random.Random(8)
    sizes = [file.stat().st_size for file in files]
    for word in _WORDS:
        for file in dice.choices(files, sizes, k=_PLACES):
            data = bytearray(file.read_bytes())
            place = data.find(_COMMON, dice.randrange(len(data)))
            if place >= 0:
                data[place : place + len(_COMMON)] = word.encode()
                file.write_bytes(data)


def _first(served: Product):  # noqa: ANN202 - a function of a word
    def milliseconds(word: str) -> float:
        start = time.perf_counter()
        call = served.index.Search(agent_index_pb2.SearchRequest(query=word, max_bytes=1 << 40))
        while not next(call).hits:
            pass
        taken = time.perf_counter() - start
        call.cancel()
        return taken * 1000

    return milliseconds


def _scan(served: Product) -> float:
    start = time.perf_counter()
    request = agent_index_pb2.SearchRequest(query="qzxjvw gone", max_bytes=1 << 40)
    for _ in served.index.Search(request):
        pass
    return (time.perf_counter() - start) * 1000
