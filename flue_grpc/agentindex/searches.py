"""Both ways to search the transcripts of one index (behaviour B7)."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import apsw

from flue_grpc.agentindex import substring
from flue_grpc.agentindex.adapters.base import Context
from flue_grpc.agentindex.escapes import UNKNOWN
from flue_grpc.agentindex.ranked_search import RankedSearches
from flue_grpc.agentindex.substring_scan import Target

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from flue_grpc.agentindex.adapters.base import Adapter
    from flue_grpc.agentindex.catalog import Catalog, Session
    from flue_grpc.agentindex.escapes import KnownEscapes
    from flue_grpc.agentindex.index_file import IndexFile
    from flue_grpc.agentindex.ranked_search import RankedCursor, RankedSearch
    from flue_grpc.agentindex.settings import ReadLimits
    from flue_grpc.agentindex.substring import Step, SubstringCursor, SubstringSearch
    from flue_grpc.cancel import Cancel

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SearchView:
    """What one Search call answers."""

    building: bool
    items: Iterator[Step]


class Searches:
    """Knows what a search of a session needs."""

    def __init__(
        self,
        file: IndexFile,
        catalog: Catalog,
        adapters: Mapping[str, Adapter[Any]],
        limits: ReadLimits,
    ) -> None:
        """Search the transcripts in ``catalog``, with what ``file`` has of them."""
        self._catalog = catalog
        self._adapters = adapters
        self._limits = limits
        self._ranked = RankedSearches(file, catalog, self._target)

    def substring(
        self, request: SubstringSearch, after: SubstringCursor | None, cancel: Cancel
    ) -> Iterator[Step]:
        """Look for a literal text, newest session first, as ``substring.search``."""
        escapes = self._escapes()

        def target(session: Session) -> Target:
            return self._target(session, escapes(session))

        return substring.search(self._catalog, target, request, after, cancel)

    def ranked(
        self, request: RankedSearch, after: RankedCursor | None, cancel: Cancel
    ) -> Iterator[Step]:
        """Look for words, best match first, as ``RankedSearches.search``."""
        return self._ranked.search(request, after, cancel)

    def _escapes(self) -> Callable[[Session], KnownEscapes]:
        try:
            return self._ranked.escapes()
        except apsw.Error as error:
            _log.warning("the RANKED index cannot be read: %s", error)
            return lambda _: UNKNOWN

    def _target(self, session: Session, escapes: KnownEscapes = UNKNOWN) -> Target:
        entry = session.entry
        return Target(
            session.summary,
            entry.path,
            entry.place.root,
            self._adapters[entry.place.tool],
            Context(mirror=entry.record.standing.mirror),
            escapes,
            self._limits.snippet_code_points,
            entry.record.key,
        )
