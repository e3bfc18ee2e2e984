"""The Store's database: what it is, and whether its pages are sound, read-only."""

from __future__ import annotations

import time
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Final

import apsw

from flue_grpc.doctor.findings import in_bytes, note, ok, problem
from flue_grpc.errors import UnusableDatabaseError
from flue_grpc.limits import DOCTOR_CHECK_SECONDS
from flue_grpc.store import files
from flue_grpc.store.connections import first_value, open_reader, open_untouched
from flue_grpc.store.opening import inspect
from flue_grpc.store.values import StoreSettings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from flue_grpc.doctor.findings import Finding

_STEPS: Final = 10_000  # of SQLite's machine, between two looks at the clock
_ADVICE: Final = "run `flue-grpc check`, then restore a backup, or choose another data_dir"


def database(path: Path) -> Iterator[Finding]:
    """Look at the database without changing it."""
    try:
        contents = inspect(path, StoreSettings())
        if contents.kind == "empty":
            yield note("store", f"{path} is empty", "`flue-grpc serve` makes it")
            return
        fault = _first_fault(path)
    except UnusableDatabaseError as error:
        yield problem("store", str(error), _ADVICE)
        return
    sizes = f"{in_bytes(_size(path))}, write-ahead log {in_bytes(_size(path, files.LOG_SUFFIX))}"
    text = f"{path}: {contents.kind}, version {contents.version}, {sizes}"
    if fault is None:
        yield note("store", f"{text}; too large to be checked here", "`flue-grpc check` does")
    elif fault:
        yield problem("store", f"{text}; damaged: {fault}", _ADVICE)
    elif contents.kind == "original":
        yield note("store", f"{text}: written by the original", "the next start adopts it")
    else:
        yield ok("store", f"{text}; its pages are sound")


def _first_fault(path: Path) -> str | None:
    """Name the first damage, "" when there is none; None when that takes too long to tell."""
    end = time.monotonic() + DOCTOR_CHECK_SECONDS
    is_alone = not files.companions(path.resolve())
    try:
        with closing(
            (open_untouched if is_alone else open_reader)(path, StoreSettings())
        ) as opened:
            opened.set_progress_handler(lambda: time.monotonic() > end, _STEPS)
            verdict = str(first_value(opened, "PRAGMA quick_check(1)"))
    except (apsw.InterruptError, apsw.BusyError, apsw.ReadOnlyError):
        return None
    except apsw.Error as error:
        return str(error)
    return "" if verdict == "ok" else " ".join(verdict.split())


def _size(path: Path, suffix: str = "") -> int:
    with suppress(OSError):
        return files.with_suffix(path, suffix).stat().st_size
    return 0
