"""Homes for RANKED search: many messages of known words, or of words like real ones."""

from __future__ import annotations

import json
import random
import shutil
from itertools import islice
from typing import TYPE_CHECKING

import stores
from prose import Prose

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from prose import Script

PER_SESSION = 5_000
_PARTS = 20_000
_PARTS_PER_MESSAGE = 5


def ranked_home(work: Path, messages: int) -> Path:
    """Return a home of messages of about 500 characters, whose 4,000 words have numbers."""
    return _home(work / f"ranked-ascii-{messages}", islice(_numbered_words(), messages))


def prose_home(work: Path, messages: int, script: Script) -> Path:
    """Return a home of the first so many texts of ``Prose``."""
    return _home(work / f"prose-{script}-{messages}", Prose(script).texts(messages))


def _home(path: Path, texts: Iterator[str]) -> Path:
    """Make a home at ``path`` unless it is there."""
    if path.exists():
        return path
    unfinished = path.with_name(f"unfinished-{path.name}")
    shutil.rmtree(unfinished, ignore_errors=True)
    folder = unfinished / ".claude/projects/-home-dev-shop"
    folder.mkdir(parents=True)
    lines = (_line(number, text) for number, text in enumerate(texts))
    for number, first in enumerate(lines):
        file = folder / f"00000000-0000-4000-8000-{number:012}.jsonl"
        file.write_text(first + "".join(islice(lines, PER_SESSION - 1)), encoding="utf-8")
    unfinished.rename(path)
    return path


def _numbered_words() -> Iterator[str]:
    """Yield texts of words of ``stores``, the same each time."""
    dice = random.Random(9)
    parts = [stores.text(dice, 100) for _ in range(_PARTS)]
    while True:
        yield " ".join(dice.choices(parts, k=_PARTS_PER_MESSAGE))


def _line(number: int, text: str) -> str:
    minutes, seconds = divmod(number, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    moment = f"2026-02-{days + 1:02}T{hours:02}:{minutes:02}:{seconds:02}.000Z"
    role, head = ("user", "") if number % 2 else ("assistant", f'"id":"m{number}",')
    return (
        f'{{"type":"{role}","timestamp":"{moment}","message":{{{head}"role":"{role}",'
        f'"content":[{{"type":"text","text":{json.dumps(text, ensure_ascii=False)}}}]}}}}\n'
    )
