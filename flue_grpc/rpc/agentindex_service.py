"""``flue.agentindex.v1.AgentIndex``: translates requests to the domain and its values back."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Final

from flue.agentindex.v1 import agent_index_pb2 as pb
from flue.agentindex.v1 import agent_index_pb2_grpc
from flue_grpc.agentindex.follow import Beginning
from flue_grpc.agentindex.hit_filter import HitFilter
from flue_grpc.agentindex.ranked_search import RankedCursor, RankedSearch
from flue_grpc.agentindex.snapshots import SnapshotCursor, SnapshotFilter
from flue_grpc.agentindex.substring import SubstringCursor, SubstringSearch
from flue_grpc.agentindex.usage import UsageCursor, UsageQuery
from flue_grpc.errors import BadCombinationError, BadEnumError, RankedDisabledError
from flue_grpc.rpc import convert_agentindex as convert
from flue_grpc.rpc import requests
from flue_grpc.rpc.batching import Shape, batches
from flue_grpc.rpc.calls import ContextCancel
from flue_grpc.rpc.live import LiveCancel, grouped
from flue_grpc.rpc.page_token import PageTokens
from flue_grpc.rpc.pages import pages
from flue_grpc.rpc.summary_cache import SummaryCache

if TYPE_CHECKING:
    from collections.abc import Iterator

    import grpc

    from flue_grpc.agentindex.index import AgentIndex
    from flue_grpc.agentindex.usage import GroupBy
    from flue_grpc.rpc.interceptors.drain import Drain
    from flue_grpc.settings import Settings

_HITS: Final = Shape(
    pb.SearchResponse, lambda response: response.hits, convert.add_hit, reports_progress=True
)
_RANKED_HITS: Final = Shape(
    pb.SearchResponse, lambda response: response.hits, convert.add_ranked_hit, reports_progress=True
)
_ROWS: Final = Shape(pb.UsageResponse, lambda response: response.rows, convert.add_row)


class AgentIndexService(agent_index_pb2_grpc.AgentIndexServicer):
    """One method per RPC; domain errors pass through to the interceptors."""

    def __init__(self, index: AgentIndex, settings: Settings, drain: Drain) -> None:
        """Serve an open index with the limits of the settings.

        ``drain`` ends the streams that have no end.
        """
        self._drain = drain
        self._index = index
        self._settings = settings
        self._cache = SummaryCache(settings.first_prompt_bytes)
        self._summaries = Shape(
            pb.SnapshotResponse, lambda response: response.summaries, self._cache.add
        )
        self._events = Shape(
            pb.WatchResponse, lambda response: response.events, self._cache.add_event
        )

    def Snapshot(
        self, request: pb.SnapshotRequest, context: grpc.ServicerContext
    ) -> Iterator[pb.SnapshotResponse]:
        """List sessions."""
        limit, tokens = requests.limit(request.limit), PageTokens(request)
        since, until = requests.span(request)
        after = tokens.decode(request.page_token, SnapshotCursor)
        wanted = SnapshotFilter(
            tuple(request.tools), request.cwd, since, until, request.include_subagents
        )
        view = self._index.snapshot(wanted, after, ContextCancel(context))
        for response in pages(view.items, self._summaries, limit, tokens):
            response.building = view.building
            response.hidden_subagents = view.hidden_subagents
            yield response

    def Resolve(
        self, request: pb.ResolveRequest, context: grpc.ServicerContext
    ) -> pb.ResolveResponse:
        """Return one session."""
        del context
        summary = self._index.resolve(request.tool, request.id)
        return pb.ResolveResponse(summary=self._cache.summary(summary))

    def ReadPage(
        self, request: pb.ReadPageRequest, context: grpc.ServicerContext
    ) -> pb.ReadPageResponse:
        """Return one page."""
        settings = self._settings
        page = self._index.read_page(
            request.tool,
            request.id,
            requests.optional_offset(request),
            requests.direction(request.direction, convert.DIRECTIONS),
            requests.limit(request.limit, settings.page_default, settings.page_max),
            request.revision,
            ContextCancel(context),
        )
        response = pb.ReadPageResponse()
        convert.fill_page(response.page, page)
        return response

    def ReadTranscript(
        self, request: pb.ReadTranscriptRequest, context: grpc.ServicerContext
    ) -> Iterator[pb.ReadTranscriptResponse]:
        """Return consecutive pages."""
        direction = requests.direction(request.direction, convert.DIRECTIONS)
        if request.follow and direction == "backward":
            raise BadCombinationError("a transcript is followed forward only", "follow")
        if request.follow:
            yield from self._follow(request, LiveCancel(context, self._drain))
            return
        read = self._index.read_transcript(
            request.tool,
            request.id,
            requests.optional_offset(request),
            direction,
            requests.limit(request.limit),
            request.revision,
            ContextCancel(context),
        )
        for page in read:
            response = pb.ReadTranscriptResponse()
            convert.fill_page(response.page, page)
            yield response

    def _follow(
        self, request: pb.ReadTranscriptRequest, live: LiveCancel
    ) -> Iterator[pb.ReadTranscriptResponse]:
        offset = requests.optional_offset(request) or 0
        limit = requests.limit(request.limit)
        follow = self._index.follow(
            Beginning(request.tool, request.id, offset, limit, request.revision)
        )
        with live.waking(follow.event):
            for step in follow.steps(live):
                response = pb.ReadTranscriptResponse(caught_up=step.caught_up)
                convert.fill_page(response.page, step.page)
                yield response

    def ReadMessage(
        self, request: pb.ReadMessageRequest, context: grpc.ServicerContext
    ) -> Iterator[pb.ReadMessageResponse]:
        """Return a whole text."""
        pieces = self._index.read_message(
            request.tool,
            request.id,
            requests.offset(request.offset),
            requests.offset(request.index, "index"),
            request.revision,
            ContextCancel(context),
        )
        for piece in pieces:
            yield pb.ReadMessageResponse(text=piece)

    def Search(
        self, request: pb.SearchRequest, context: grpc.ServicerContext
    ) -> Iterator[pb.SearchResponse]:
        """Search messages."""
        settings = self._settings
        limit = requests.limit(request.limit, settings.search_default, settings.search_max)
        max_bytes = requests.not_negative(request.max_bytes, "max_bytes")
        mode = requests.known(request.mode, convert.SEARCH_MODES, "mode")
        wanted, budget = _hit_filter(request), max_bytes or settings.search_bytes
        tokens, cancel = PageTokens(request), ContextCancel(context)
        if mode == "ranked":
            if not settings.ranked_index:
                raise RankedDisabledError("RANKED search is off", {"setting": "ranked_index"})
            ranked = RankedSearch(request.query, wanted, limit, budget)
            place = tokens.decode(request.page_token, RankedCursor)
            view, shape = self._index.search_ranked(ranked, place, cancel), _RANKED_HITS
        else:
            literal = SubstringSearch(request.query, wanted, budget)
            after = tokens.decode(request.page_token, SubstringCursor)
            view, shape = self._index.search(literal, after, cancel), _HITS
        for batch in batches(view.items, shape, limit):
            response = batch.response
            response.building = view.building
            response.bytes_scanned = batch.bytes_scanned
            response.next_page_token = tokens.encode(batch.cursor)
            response.truncated = batch.is_last and batch.cursor is not None
            yield response

    def Watch(
        self, request: pb.WatchRequest, context: grpc.ServicerContext
    ) -> Iterator[pb.WatchResponse]:
        """Stream changes."""
        live = LiveCancel(context, self._drain)
        wanted = SnapshotFilter(
            tuple(request.tools), request.cwd, include_subagents=request.include_subagents
        )
        with closing(self._index.watch(wanted)) as watch, live.waking(watch.event):
            for response in grouped(watch.backlog(live), self._events):
                response.building = self._index.building
                yield response
            yield pb.WatchResponse(caught_up=True, building=self._index.building)
            while True:
                if not watch.wait(live):
                    yield pb.WatchResponse(caught_up=True, building=self._index.building)
                for response in grouped(watch.changes(live), self._events):
                    response.caught_up = True
                    response.building = self._index.building
                    yield response

    def Usage(
        self, request: pb.UsageRequest, context: grpc.ServicerContext
    ) -> Iterator[pb.UsageResponse]:
        """Sum tokens and costs."""
        limit, tokens = requests.limit(request.limit), PageTokens(request)
        since, until = requests.span(request)
        query = UsageQuery(
            tuple(request.tools),
            request.cwd,
            since,
            until,
            _groups(request),
            request.time_zone,
        )
        after = tokens.decode(request.page_token, UsageCursor)
        view = self._index.usage(query, after, ContextCancel(context))
        for response in pages(view.items, _ROWS, limit, tokens):
            response.building = view.building
            yield response


def _hit_filter(request: pb.SearchRequest) -> HitFilter:
    since, until = requests.span(request)
    return HitFilter(
        tuple(request.tools),
        request.cwd,
        requests.all_known(request.roles, convert.ROLES, "roles"),
        requests.all_known(request.kinds, convert.KINDS, "kinds"),
        since,
        until,
        request.include_subagents,
    )


def _groups(request: pb.UsageRequest) -> tuple[GroupBy, ...]:
    groups = requests.all_known(request.group_by, convert.GROUPS, "group_by")
    if len(set(groups)) < len(groups):
        raise BadEnumError("a key of group_by stands there once", "group_by")
    return groups
