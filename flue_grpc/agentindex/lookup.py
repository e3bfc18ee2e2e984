"""Finding one transcript in the index, and living with a damaged index file."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import apsw

from flue_grpc.agentindex import index_rows
from flue_grpc.agentindex.catalog import Catalog
from flue_grpc.agentindex.damage import as_written, is_damage
from flue_grpc.agentindex.located import Located, no_checkpoints
from flue_grpc.errors import DatabaseIoError, TranscriptNotFoundError, UnknownToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from flue_grpc.agentindex.adapters.base import Adapter
    from flue_grpc.agentindex.catalog import Session
    from flue_grpc.agentindex.index_file import IndexFile
    from flue_grpc.agentindex.settings import ReadLimits

_log = logging.getLogger(__name__)

Item = TypeVar("Item")


def restored_catalog(file: IndexFile) -> Catalog:
    """Return a catalog of what the file holds; make one anew that cannot be loaded."""
    catalog = Catalog()
    try:
        with file.reader() as db, as_written():
            catalog.restore(index_rows.load_entries(db))
            index_rows.next_tid(db)
    except apsw.Error as error:
        _log.warning("the transcript index is damaged and is made anew: %s", error)
        file.rebuild()
        return Catalog()
    return catalog


class Lookup:
    """Finds sessions by tool and id, and what is needed to read them."""

    def __init__(  # noqa: PLR0913, PLR0917 - the parts that it looks into
        self,
        file: IndexFile,
        catalog: Catalog,
        adapters: Mapping[str, Adapter[Any]],
        limits: ReadLimits,
        is_building: Callable[[], bool],
        on_damage: Callable[[], None],
    ) -> None:
        """Look into ``catalog`` and ``file``; ``on_damage`` is told when that is damaged."""
        self._file = file
        self._catalog = catalog
        self._adapters = adapters
        self._limits = limits
        self._is_building = is_building
        self._on_damage = on_damage

    def session(self, tool: str, session_id: str) -> Session:
        """Return an indexed session. Raises UnknownToolError, TranscriptNotFoundError."""
        if tool not in self._adapters:
            known = ", ".join(sorted(self._adapters))
            raise UnknownToolError(f"the tools are {known}", "tool", {"tool": tool})
        session = self._catalog.get((tool, session_id))
        if session is None:
            raise self._not_found()
        return session

    def locate(self, tool: str, session_id: str) -> Located:
        """Return where a transcript lies and what is known of it. Raises as ``session``."""
        session = self.session(tool, session_id)
        entry, summary = session.entry, session.summary
        try:
            with self._file.reader() as db:
                checkpoints = index_rows.load_checkpoints(db, entry)
        except apsw.Error as error:
            self._note(error)
            checkpoints = no_checkpoints(entry.record.standing.mirror)
        return Located(
            summary.tool,
            summary.id,
            entry.path,
            entry.place.root,
            self._adapters[entry.place.tool],
            summary,
            checkpoints,
            self._limits,
        )

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Report a transcript that vanished as one that was never found."""
        try:
            yield
        except TranscriptNotFoundError as error:
            raise self._not_found() from error

    def guarded(self, items: Iterator[Item]) -> Iterator[Item]:
        """Let a damaged index file cost this call only. Raises DatabaseIoError."""
        try:
            yield from items
        except apsw.Error as error:
            self._note(error)
            raise DatabaseIoError("the transcript index cannot be read") from error

    def _note(self, error: apsw.Error) -> None:
        _log.warning("the transcript index cannot be read: %s", error)
        if is_damage(error):
            self._on_damage()

    def _not_found(self) -> TranscriptNotFoundError:
        metadata = {"building": "true"} if self._is_building() else {}
        return TranscriptNotFoundError("there is no such transcript", metadata)
