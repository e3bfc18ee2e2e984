"""Run by openai-agents' own Python: ``peer_openai_store.py DB MESSAGES``; prints milliseconds."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import statistics
import sys
import time

import stores
from agents import SQLiteSession


async def _measure(path: str, messages: int) -> list[float]:
    session, dice = SQLiteSession("s", path), stores.dice()
    for _ in range(0, messages, 1000):
        await session.add_items([_item(dice) for _ in range(1000)])
    taken: list[float] = []
    for _ in range(200):
        start = time.perf_counter()
        await session.add_items([_item(dice)])
        taken.append((time.perf_counter() - start) * 1000)
    session.close()
    return taken


def _item(dice: object) -> dict[str, str]:
    return {"role": "user", "content": stores.text(dice, 500)}


def main() -> None:
    """Fill a session, then time single appends; its store cannot be searched."""
    path, messages = sys.argv[1], int(sys.argv[2])
    taken = asyncio.run(_measure(path, messages))
    (mode,) = sqlite3.connect(path).execute("pragma synchronous").fetchone()
    print(json.dumps({"append": statistics.median(taken), "synchronous": mode}))


if __name__ == "__main__":
    main()
