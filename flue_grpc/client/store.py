"""The Store's RPCs as typed methods; each one's rules are in store.proto."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flue.store.v1 import store_pb2 as pb
from flue.store.v1.store_pb2_grpc import StoreStub
from flue_grpc.client.calls import new_request_id
from flue_grpc.client.places import TokenPlace
from flue_grpc.client.streams import ItemStream
from flue_grpc.limits import (
    RECENT_MEMORY_DEFAULT,
    RECENT_MEMORY_MAX,
    STORE_SEARCH_DEFAULT,
    STORE_SEARCH_MAX,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    import grpc

    from flue_grpc.client.calls import Caller


class StoreClient:
    """Sessions, messages and memory.

    In lists, ``limit`` is how many items are wanted over as many calls as that
    takes, None or 0 for all; ``page_token`` goes on from an earlier response. Writes
    get a request id of their own where none is given, so that a repeat after a
    broken connection writes nothing twice. Every method raises CallError, and
    ValueError for what no request can hold, such as a number beyond its field.
    """

    def __init__(self, channel: grpc.Channel, caller: Caller) -> None:
        """Use ``channel`` for every call."""
        self._stub = StoreStub(channel)
        self._caller = caller

    def create_session(
        self,
        session_id: str = "",
        title: str = "",
        *,
        request_id: str = "",
        timeout: float | None = None,
    ) -> pb.Session:
        """Make a session; the server makes the id when none is given."""
        request = pb.CreateSessionRequest(
            id=session_id, title=title, request_id=request_id or new_request_id()
        )
        return self._caller.write(self._stub.CreateSession, request, timeout).session

    def get_session(self, session_id: str, *, timeout: float | None = None) -> pb.Session:
        """Read one session."""
        request = pb.GetSessionRequest(id=session_id)
        return self._caller.read(self._stub.GetSession, request, timeout).session

    def list_sessions(
        self,
        *,
        exclude_subagents: bool = False,
        limit: int | None = None,
        page_token: str = "",
        timeout: float | None = None,
    ) -> ItemStream[pb.ListSessionsResponse, pb.Session]:
        """List sessions, most recently updated first."""
        request = pb.ListSessionsRequest(exclude_subagents=exclude_subagents, page_token=page_token)
        place = TokenPlace(request, _sessions, limit)
        return ItemStream(self._caller, self._stub.ListSessions, place, _sessions, timeout)

    def update_session(
        self, session_id: str, title: str, *, timeout: float | None = None
    ) -> pb.Session:
        """Set the title."""
        request = pb.UpdateSessionRequest(id=session_id, title=title)
        return self._caller.write(self._stub.UpdateSession, request, timeout).session

    def delete_session(self, session_id: str, *, timeout: float | None = None) -> None:
        """Delete a session with its messages."""
        request = pb.DeleteSessionRequest(id=session_id)
        self._caller.write(self._stub.DeleteSession, request, timeout)

    def append_message(
        self,
        session_id: str,
        message: pb.Message,
        *,
        request_id: str = "",
        timeout: float | None = None,
    ) -> pb.Message:
        """Store one message; it is durable when this returns."""
        request = pb.AppendMessageRequest(
            session_id=session_id, message=message, request_id=request_id or new_request_id()
        )
        return self._caller.write(self._stub.AppendMessage, request, timeout).message

    def append_messages(
        self,
        session_id: str,
        messages: Iterable[pb.Message],
        *,
        request_id: str = "",
        timeout: float | None = None,
    ) -> list[pb.Message]:
        """Store 1 to 1,000 messages, all or none."""
        request = pb.AppendMessagesRequest(
            session_id=session_id, messages=messages, request_id=request_id or new_request_id()
        )
        return list(self._caller.write(self._stub.AppendMessages, request, timeout).messages)

    def list_messages(
        self,
        session_id: str,
        *,
        after_id: int = 0,
        follow: bool = False,
        omit_images: bool = False,
        limit: int | None = None,
        page_token: str = "",
        timeout: float | None = None,
    ) -> ItemStream[pb.ListMessagesResponse, pb.Message]:
        """List messages, oldest first; with ``follow`` go on as they are appended."""
        request = pb.ListMessagesRequest(
            session_id=session_id,
            after_id=after_id,
            follow=follow,
            omit_images=omit_images,
            page_token=page_token,
        )
        place = TokenPlace(request, _messages, limit)
        return ItemStream(self._caller, self._stub.ListMessages, place, _messages, timeout)

    def search_messages(
        self,
        query: str,
        *,
        scope: pb.SearchScope.ValueType = pb.SEARCH_SCOPE_USER,
        session_id: str = "",
        window: int | None = None,
        include_images: bool = False,
        limit: int | None = STORE_SEARCH_DEFAULT,
        page_token: str = "",
        timeout: float | None = None,
    ) -> ItemStream[pb.SearchMessagesResponse, pb.SearchResult]:
        """Search messages, best first; ``window`` None is the server's default."""
        request = pb.SearchMessagesRequest(
            query=query,
            scope=scope,
            session_id=session_id,
            window=window,
            include_images=include_images,
            page_token=page_token,
        )
        place = TokenPlace(request, _results, limit, call_limit=STORE_SEARCH_MAX)
        return ItemStream(self._caller, self._stub.SearchMessages, place, _results, timeout)

    def write_memory_entry(
        self,
        scope: str,
        content: str,
        *,
        pinned: bool = False,
        request_id: str = "",
        timeout: float | None = None,
    ) -> pb.MemoryEntry:
        """Store one memory entry."""
        request = pb.WriteMemoryEntryRequest(
            scope=scope,
            content=content,
            pinned=pinned,
            request_id=request_id or new_request_id(),
        )
        return self._caller.write(self._stub.WriteMemoryEntry, request, timeout).entry

    def update_memory_entry(
        self,
        entry_id: int,
        *,
        content: str | None = None,
        pinned: bool | None = None,
        timeout: float | None = None,
    ) -> pb.MemoryEntry:
        """Replace the content, the pin or both; None leaves it as it is."""
        request = pb.UpdateMemoryEntryRequest(id=entry_id, content=content, pinned=pinned)
        return self._caller.write(self._stub.UpdateMemoryEntry, request, timeout).entry

    def delete_memory_entry(self, entry_id: int, *, timeout: float | None = None) -> None:
        """Delete one memory entry."""
        request = pb.DeleteMemoryEntryRequest(id=entry_id)
        self._caller.write(self._stub.DeleteMemoryEntry, request, timeout)

    def recent_memory(
        self,
        scopes: Iterable[str],
        *,
        limit: int | None = RECENT_MEMORY_DEFAULT,
        page_token: str = "",
        timeout: float | None = None,
    ) -> ItemStream[pb.RecentMemoryResponse, pb.MemoryEntry]:
        """List the entries of some scopes, pinned first, then the newest."""
        request = pb.RecentMemoryRequest(scopes=scopes, page_token=page_token)
        place = TokenPlace(request, _recent, limit, call_limit=RECENT_MEMORY_MAX)
        return ItemStream(self._caller, self._stub.RecentMemory, place, _recent, timeout)

    def scope_memory(
        self,
        scope: str,
        *,
        limit: int | None = None,
        page_token: str = "",
        timeout: float | None = None,
    ) -> ItemStream[pb.ScopeMemoryResponse, pb.MemoryEntry]:
        """List the entries of one scope, pinned first, then the newest."""
        request = pb.ScopeMemoryRequest(scope=scope, page_token=page_token)
        place = TokenPlace(request, _scope, limit)
        return ItemStream(self._caller, self._stub.ScopeMemory, place, _scope, timeout)

    def scope_memory_size(self, scope: str, *, timeout: float | None = None) -> int:
        """Count the code points of a scope's entries."""
        request = pb.ScopeMemorySizeRequest(scope=scope)
        return self._caller.read(self._stub.ScopeMemorySize, request, timeout).characters

    def search_memory(
        self,
        scopes: Iterable[str],
        query: str,
        *,
        limit: int | None = STORE_SEARCH_DEFAULT,
        page_token: str = "",
        timeout: float | None = None,
    ) -> ItemStream[pb.SearchMemoryResponse, pb.MemoryEntry]:
        """Search the entries of some scopes, best first."""
        request = pb.SearchMemoryRequest(scopes=scopes, query=query, page_token=page_token)
        place = TokenPlace(request, _found, limit, call_limit=STORE_SEARCH_MAX)
        return ItemStream(self._caller, self._stub.SearchMemory, place, _found, timeout)


def _sessions(response: pb.ListSessionsResponse) -> list[pb.Session]:
    return list(response.sessions)


def _messages(response: pb.ListMessagesResponse) -> list[pb.Message]:
    return list(response.messages)


def _results(response: pb.SearchMessagesResponse) -> list[pb.SearchResult]:
    return list(response.results)


def _recent(response: pb.RecentMemoryResponse) -> list[pb.MemoryEntry]:
    return list(response.entries)


def _scope(response: pb.ScopeMemoryResponse) -> list[pb.MemoryEntry]:
    return list(response.entries)


def _found(response: pb.SearchMemoryResponse) -> list[pb.MemoryEntry]:
    return list(response.entries)
