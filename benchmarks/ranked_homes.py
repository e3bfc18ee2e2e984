"""Homes for RANKED search: many short messages of words whose frequencies differ as in language."""

from __future__ import annotations

import random
import shutil
from typing import TYPE_CHECKING

import stores

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_PER_SESSION = 5_000
_PARTS = 20_000
_PARTS_PER_MESSAGE = 5
_SCRIPTS = "数据库连接池在高负载下会耗尽需要增加超时时间测试成功但警告仍在"


def ranked_home(work: Path, messages: int, script: str = "ascii") -> Path:
    """Return a home of so many messages of about 500 characters, ``ascii`` or ``mixed``."""
    path = work / f"ranked-{script}-{messages}"
    if not path.exists():
        unfinished = work / f"unfinished-{path.name}"
        shutil.rmtree(unfinished, ignore_errors=True)
        folder = unfinished / ".claude/projects/-home-dev-shop"
        folder.mkdir(parents=True)
        text = texts(script)
        for number in range(-(-messages // _PER_SESSION)):
            count = min(_PER_SESSION, messages - number * _PER_SESSION)
            file = folder / f"00000000-0000-4000-8000-{number:012}.jsonl"
            lines = (_line(number * _PER_SESSION + place, text()) for place in range(count))
            file.write_text("".join(lines), encoding="utf-8")
        unfinished.rename(path)
    return path


def texts(script: str) -> Callable[[], str]:
    """Return what makes the texts of such a home, the same each time."""
    dice = random.Random(9)
    parts = [stores.text(dice, 100) for _ in range(_PARTS)]
    if script == "mixed":
        for place in range(0, _PARTS, 3):
            parts[place] = "".join(dice.choices(_SCRIPTS, k=33)) + ", größer übernommen élan"
    return lambda: " ".join(dice.choices(parts, k=_PARTS_PER_MESSAGE))


def _line(number: int, text: str) -> str:
    minutes, seconds = divmod(number, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    moment = f"2026-02-{days + 1:02}T{hours:02}:{minutes:02}:{seconds:02}.000Z"
    role, head = ("user", "") if number % 2 else ("assistant", f'"id":"m{number}",')
    return (
        f'{{"type":"{role}","timestamp":"{moment}","message":{{{head}"role":"{role}",'
        f'"content":[{{"type":"text","text":"{text}"}}]}}}}\n'
    )
