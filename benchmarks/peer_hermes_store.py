"""Run by hermes-agent's own Python: ``peer_hermes_store.py DB MESSAGES``; prints milliseconds."""

from __future__ import annotations

import json
import statistics
import sys
import time
from pathlib import Path

import stores
from hermes_state import SessionDB


def main() -> None:
    """Fill a store, then time single appends and searches."""
    path, messages = Path(sys.argv[1]), int(sys.argv[2])
    db, dice = SessionDB(path), stores.dice()
    db.create_session("s", "cli")
    for _ in range(messages):
        db.append_message("s", "user", stores.text(dice, 500))
    appends = [
        _ms(lambda: db.append_message("s", "user", stores.text(dice, 500))) for _ in range(200)
    ]
    words = stores.SEARCHED * 5
    searches = [_ms(lambda word=word: db.search_messages(word, limit=20)) for word in words]
    (mode,) = db._conn.execute("pragma synchronous").fetchone()  # noqa: SLF001 - not shown elsewhere
    print(
        json.dumps(
            {
                "append": statistics.median(appends),
                "search": statistics.median(searches),
                "synchronous": mode,
            }
        )
    )


def _ms(call: object) -> float:
    start = time.perf_counter()
    call()  # type: ignore[operator]
    return (time.perf_counter() - start) * 1000


if __name__ == "__main__":
    main()
