"""The AgentIndex's RPCs as typed methods; each one's rules are in agent_index.proto."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import msgspec
from google.protobuf.timestamp_pb2 import Timestamp

from flue.agentindex.v1 import agent_index_pb2 as pb
from flue.agentindex.v1.agent_index_pb2_grpc import AgentIndexStub
from flue_grpc.client.places import TextPlace, TokenPlace, TranscriptPlace, WatchPlace
from flue_grpc.client.streams import ItemStream
from flue_grpc.limits import SEARCH_DEFAULT, SEARCH_MAX

if TYPE_CHECKING:
    from collections.abc import Iterable

    import grpc

    from flue_grpc.client.calls import Caller


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """Which sessions count: empty values filter nothing.

    ``since`` and ``until`` are aware times, half-open: since <= t < until.
    """

    tools: tuple[str, ...] = ()
    cwd: str = ""
    since: datetime | None = None
    until: datetime | None = None


_EVERYTHING = Filter()


class AgentIndexClient:
    """Transcripts of the coding agents, read-only.

    In lists, ``limit`` is how many items are wanted over as many calls as that
    takes, None or 0 for all; ``page_token`` goes on from an earlier response. Every
    method raises CallError, and ValueError for what no request can hold, such as a
    number beyond its field.
    """

    def __init__(self, channel: grpc.Channel, caller: Caller) -> None:
        """Use ``channel`` for every call."""
        self._stub = AgentIndexStub(channel)
        self._caller = caller

    def snapshot(
        self,
        filters: Filter = _EVERYTHING,
        *,
        include_subagents: bool = False,
        limit: int | None = None,
        page_token: str = "",
        timeout: float | None = None,
    ) -> ItemStream[pb.SnapshotResponse, pb.Summary]:
        """List sessions, newest first."""
        request = pb.SnapshotRequest(
            tools=filters.tools,
            cwd=filters.cwd,
            since=_timestamp(filters.since),
            until=_timestamp(filters.until),
            include_subagents=include_subagents,
            page_token=page_token,
        )
        place = TokenPlace(request, _summaries, limit)
        return ItemStream(self._caller, self._stub.Snapshot, place, _summaries, timeout)

    def resolve(self, tool: str, session_id: str, *, timeout: float | None = None) -> pb.Summary:
        """Read one session's summary."""
        request = pb.ResolveRequest(tool=tool, id=session_id)
        return self._caller.read(self._stub.Resolve, request, timeout).summary

    def read_page(
        self,
        tool: str,
        session_id: str,
        *,
        offset: int | None = None,
        direction: pb.Direction.ValueType = pb.DIRECTION_FORWARD,
        limit: int = 0,
        revision: str = "",
        timeout: float | None = None,
    ) -> pb.Page:
        """Read one page, of at most ``limit`` messages (0 = 100)."""
        request = pb.ReadPageRequest(
            tool=tool,
            id=session_id,
            offset=offset,
            direction=direction,
            limit=limit,
            revision=revision,
        )
        return self._caller.read(self._stub.ReadPage, request, timeout).page

    def read_transcript(
        self,
        tool: str,
        session_id: str,
        *,
        offset: int | None = None,
        direction: pb.Direction.ValueType = pb.DIRECTION_FORWARD,
        follow: bool = False,
        limit: int = 0,
        revision: str = "",
        timeout: float | None = None,
    ) -> ItemStream[pb.ReadTranscriptResponse, pb.Message]:
        """Stream the messages of a transcript; with ``follow`` go on as it grows.

        ``limit`` 0 is all. Backward, each page's messages stay in file order.
        """
        request = pb.ReadTranscriptRequest(
            tool=tool,
            id=session_id,
            offset=offset,
            direction=direction,
            follow=follow,
            limit=limit,
            revision=revision,
        )
        place = TranscriptPlace(request)
        return ItemStream(self._caller, self._stub.ReadTranscript, place, _page_messages, timeout)

    def read_message(
        self,
        tool: str,
        session_id: str,
        offset: int,
        index: int,
        *,
        revision: str = "",
        timeout: float | None = None,
    ) -> str:
        """Read the whole text of a message that a page has cut."""
        request = pb.ReadMessageRequest(
            tool=tool, id=session_id, offset=offset, index=index, revision=revision
        )
        place = TextPlace(request)
        stream = ItemStream(self._caller, self._stub.ReadMessage, place, _text, timeout)
        return "".join(stream)

    def search(
        self,
        query: str,
        filters: Filter = _EVERYTHING,
        *,
        mode: pb.SearchMode.ValueType = pb.SEARCH_MODE_SUBSTRING,
        roles: Iterable[pb.Role.ValueType] = (),
        kinds: Iterable[pb.Kind.ValueType] = (),
        include_subagents: bool = False,
        max_bytes: int = 0,
        limit: int | None = SEARCH_DEFAULT,
        page_token: str = "",
        timeout: float | None = None,
    ) -> ItemStream[pb.SearchResponse, pb.Hit]:
        """Search messages; hits come as they are found.

        Searching goes on until ``limit`` hits or the end, unless ``max_bytes`` says
        how many bytes of transcripts may be read in all.
        """
        request = pb.SearchRequest(
            query=query,
            tools=filters.tools,
            cwd=filters.cwd,
            since=_timestamp(filters.since),
            until=_timestamp(filters.until),
            mode=mode,
            roles=roles,
            kinds=kinds,
            include_subagents=include_subagents,
            max_bytes=max_bytes,
            page_token=page_token,
        )
        place = TokenPlace(
            request, _hits, limit, call_limit=SEARCH_MAX, ends_with_call=bool(max_bytes)
        )
        return ItemStream(self._caller, self._stub.Search, place, _hits, timeout)

    def watch(
        self,
        filters: Filter = _EVERYTHING,
        *,
        include_subagents: bool = False,
        timeout: float | None = None,
    ) -> ItemStream[pb.WatchResponse, pb.SessionEvent]:
        """Stream every session as ADDED, then what changes; times do not filter.

        After a break only what changed meanwhile is told.
        """
        request = pb.WatchRequest(
            tools=filters.tools, cwd=filters.cwd, include_subagents=include_subagents
        )
        place = WatchPlace(request)
        return ItemStream(self._caller, self._stub.Watch, place, _events, timeout)

    def usage(
        self,
        filters: Filter = _EVERYTHING,
        *,
        group_by: Iterable[pb.GroupBy.ValueType] = (),
        time_zone: str = "",
        limit: int | None = None,
        page_token: str = "",
        timeout: float | None = None,
    ) -> ItemStream[pb.UsageResponse, pb.UsageRow]:
        """Sum recorded tokens and costs by keys; days are those of ``time_zone``."""
        request = pb.UsageRequest(
            tools=filters.tools,
            cwd=filters.cwd,
            since=_timestamp(filters.since),
            until=_timestamp(filters.until),
            group_by=group_by,
            time_zone=time_zone,
            page_token=page_token,
        )
        place = TokenPlace(request, _rows, limit)
        return ItemStream(self._caller, self._stub.Usage, place, _rows, timeout)


def _timestamp(moment: datetime | None) -> Timestamp | None:
    if moment is None:
        return None
    timestamp = Timestamp()
    timestamp.FromDatetime(moment)
    return timestamp


def _summaries(response: pb.SnapshotResponse) -> list[pb.Summary]:
    return list(response.summaries)


def _page_messages(response: pb.ReadTranscriptResponse) -> list[pb.Message]:
    return list(response.page.messages)


def _text(response: pb.ReadMessageResponse) -> list[str]:
    return [response.text]


def _hits(response: pb.SearchResponse) -> list[pb.Hit]:
    return list(response.hits)


def _events(response: pb.WatchResponse) -> list[pb.SessionEvent]:
    return list(response.events)


def _rows(response: pb.UsageResponse) -> list[pb.UsageRow]:
    return list(response.rows)
