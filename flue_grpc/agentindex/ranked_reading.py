"""Reading the RANKED index at one moment, through one connection or through two."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

import apsw

from flue_grpc import limits
from flue_grpc.agentindex.ranked_index import load_state
from flue_grpc.cancel import NEVER
from flue_grpc.errors import CancelledError
from flue_grpc.transactions import transaction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from flue_grpc.agentindex.index_file import IndexFile
    from flue_grpc.agentindex.ranked_index import State
    from flue_grpc.cancel import Cancel

    Rows = list[tuple[float, int]]
    Ask = Callable[[apsw.Connection], Rows]


@contextmanager
def one_moment(db: apsw.Connection, cancel: Cancel = NEVER) -> Iterator[None]:
    """Let what is read be of one moment, and stop when ``cancel`` says so."""
    db.set_progress_handler(cancel.is_cancelled, limits.SQL_PROGRESS_STEPS)
    try:
        with transaction(db):
            yield
    except apsw.InterruptError as error:
        cancel.check()
        raise CancelledError("the search was called off") from error
    finally:
        db.set_progress_handler(None)


class Halves:
    """Asks one long question as two at once: SQLite lets the interpreter go while it scores."""

    def __init__(self, file: IndexFile, state: State, cancel: Cancel) -> None:
        """``state`` is that of the caller's moment."""
        self._file = file
        self._state = state
        self._cancel = cancel

    def both(self, db: apsw.Connection, first: Ask, second: Ask) -> Rows:
        """Return the rows of both questions, asked of ``db``, the second of another if it may be.

        That is, of a connection that sees the same state. Raises apsw.Error, and what
        ``cancel`` raises; no thread outlives the call.
        """
        aside = _Aside(self._cancel)
        with self._file.reader() as other, one_moment(other, aside):
            if load_state(other) == self._state:
                return _at_once(lambda: first(db), lambda: second(other), aside)
        return first(db) + second(db)


class _Aside:
    """A ``Cancel`` for the second question, which nobody needs once the first one failed."""

    def __init__(self, cancel: Cancel) -> None:
        self._cancel = cancel
        self._is_over = False

    def stop(self) -> None:
        self._is_over = True

    def is_cancelled(self) -> bool:
        return self._is_over or self._cancel.is_cancelled()

    def check(self) -> None:
        self._cancel.check()


def _at_once(first: Callable[[], Rows], second: Callable[[], Rows], aside: _Aside) -> Rows:
    with ThreadPoolExecutor(1, "ranked-half") as pool:
        later = pool.submit(second)
        try:
            return first() + later.result()
        except BaseException:
            aside.stop()
            raise
