"""``flue.store.v1.Store``: translates requests to the domain and its values back."""

from __future__ import annotations

from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Final

from flue.store.v1 import store_pb2, store_pb2_grpc
from flue_grpc import limits
from flue_grpc.errors import InvalidArgumentError
from flue_grpc.rpc import convert_store as convert
from flue_grpc.rpc import requests
from flue_grpc.rpc.batching import Shape
from flue_grpc.rpc.calls import ContextCancel
from flue_grpc.rpc.live import LiveCancel, live_pages
from flue_grpc.rpc.page_token import PageTokens
from flue_grpc.rpc.pages import pages
from flue_grpc.store.memory import MemoryCursor
from flue_grpc.store.messages import MessageCursor
from flue_grpc.store.ranked import SearchCursor
from flue_grpc.store.sessions import SessionCursor
from flue_grpc.store.values import EntryDraft, MemoryChange, MemoryQuery, MessageQuery

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import grpc

    from flue_grpc.rpc.interceptors.drain import Drain
    from flue_grpc.store.store import Store
    from flue_grpc.store.values import Images

_SESSIONS: Final = Shape(
    store_pb2.ListSessionsResponse, lambda response: response.sessions, convert.add_session
)
_MESSAGES: Final = Shape(
    store_pb2.ListMessagesResponse, lambda response: response.messages, convert.add_message
)
_RESULTS: Final = Shape(
    store_pb2.SearchMessagesResponse, lambda response: response.results, convert.add_result
)
_RECENT: Final = Shape(
    store_pb2.RecentMemoryResponse, lambda response: response.entries, convert.add_entry
)
_OF_SCOPE: Final = Shape(
    store_pb2.ScopeMemoryResponse, lambda response: response.entries, convert.add_entry
)
_FOUND: Final = Shape(
    store_pb2.SearchMemoryResponse, lambda response: response.entries, convert.add_entry
)


class StoreService(store_pb2_grpc.StoreServicer):
    """One method per RPC; domain errors pass through to the interceptors."""

    def __init__(self, store: Store, drain: Drain) -> None:
        """Serve an open Store; ``drain`` ends the streams that have no end."""
        self._store = store
        self._drain = drain

    def CreateSession(
        self, request: store_pb2.CreateSessionRequest, context: grpc.ServicerContext
    ) -> store_pb2.CreateSessionResponse:
        """Make a session."""
        session = self._store.create_session(
            request.id, request.title, request.request_id, ContextCancel(context)
        )
        response = store_pb2.CreateSessionResponse()
        convert.fill_session(response.session, session)
        return response

    def GetSession(
        self, request: store_pb2.GetSessionRequest, context: grpc.ServicerContext
    ) -> store_pb2.GetSessionResponse:
        """Read a session."""
        response = store_pb2.GetSessionResponse()
        session = self._store.get_session(request.id, ContextCancel(context))
        convert.fill_session(response.session, session)
        return response

    def ListSessions(
        self, request: store_pb2.ListSessionsRequest, context: grpc.ServicerContext
    ) -> Iterator[store_pb2.ListSessionsResponse]:
        """List sessions."""
        limit, tokens = requests.limit(request.limit), PageTokens(request)
        after = tokens.decode(request.page_token, SessionCursor)
        listing = self._store.list_sessions(
            "user" if request.exclude_subagents else "all", after, ContextCancel(context)
        )
        return pages(listing, _SESSIONS, limit, tokens)

    def UpdateSession(
        self, request: store_pb2.UpdateSessionRequest, context: grpc.ServicerContext
    ) -> store_pb2.UpdateSessionResponse:
        """Set a title."""
        response = store_pb2.UpdateSessionResponse()
        cancel = ContextCancel(context)
        session = self._store.update_session(request.id, request.title, cancel)
        convert.fill_session(response.session, session)
        return response

    def DeleteSession(
        self, request: store_pb2.DeleteSessionRequest, context: grpc.ServicerContext
    ) -> store_pb2.DeleteSessionResponse:
        """Delete a session."""
        self._store.delete_session(request.id, ContextCancel(context))
        return store_pb2.DeleteSessionResponse()

    def AppendMessage(
        self, request: store_pb2.AppendMessageRequest, context: grpc.ServicerContext
    ) -> store_pb2.AppendMessageResponse:
        """Append a message."""
        with _fields({"role": "message.role"}):
            message = self._store.append_message(
                request.session_id,
                convert.draft_of(request.message),
                request.request_id,
                ContextCancel(context),
            )
        response = store_pb2.AppendMessageResponse()
        convert.fill_message(response.message, message)
        return response

    def AppendMessages(
        self, request: store_pb2.AppendMessagesRequest, context: grpc.ServicerContext
    ) -> store_pb2.AppendMessagesResponse:
        """Append messages, all or none."""
        with _fields({"role": "messages.role", "message": "messages"}):
            messages = self._store.append_messages(
                request.session_id,
                tuple(map(convert.draft_of, request.messages)),
                request.request_id,
                ContextCancel(context),
            )
        response = store_pb2.AppendMessagesResponse()
        for message in messages:
            convert.add_message(response.messages, message)
        return response

    def ListMessages(
        self, request: store_pb2.ListMessagesRequest, context: grpc.ServicerContext
    ) -> Iterator[store_pb2.ListMessagesResponse]:
        """List a session's messages."""
        limit, tokens = requests.limit(request.limit), PageTokens(request)
        after = tokens.decode(request.page_token, MessageCursor) or MessageCursor(request.after_id)
        images: Images = "omitted" if request.omit_images else "whole"
        if not request.follow:
            cancel = ContextCancel(context)
            listing = self._store.list_messages(request.session_id, after, images, cancel)
            yield from pages(listing, _MESSAGES, limit, tokens)
            return
        live = LiveCancel(context, self._drain)
        with (
            closing(self._store.follow(request.session_id, after, images)) as follow,
            live.waking(follow.event),
        ):
            yield from live_pages(follow, _MESSAGES, limit, tokens, live)

    def SearchMessages(
        self, request: store_pb2.SearchMessagesRequest, context: grpc.ServicerContext
    ) -> Iterator[store_pb2.SearchMessagesResponse]:
        """Search messages."""
        limit = requests.limit(request.limit, limits.STORE_SEARCH_DEFAULT, limits.STORE_SEARCH_MAX)
        window = limits.WINDOW_DEFAULT
        if request.HasField("window"):
            window = requests.not_negative(request.window, "window")
        query = MessageQuery(
            request.query,
            "all" if request.scope == store_pb2.SEARCH_SCOPE_ALL else "user",
            request.session_id,
            min(window, limits.WINDOW_MAX),
            "whole" if request.include_images else "omitted",
        )
        tokens = PageTokens(request)
        after = tokens.decode(request.page_token, SearchCursor)
        listing = self._store.search_messages(query, after, limit, ContextCancel(context))
        return pages(listing, _RESULTS, limit, tokens)

    def WriteMemoryEntry(
        self, request: store_pb2.WriteMemoryEntryRequest, context: grpc.ServicerContext
    ) -> store_pb2.WriteMemoryEntryResponse:
        """Write a memory entry."""
        draft = EntryDraft(request.scope, request.content, request.pinned)
        entry = self._store.write_memory_entry(draft, request.request_id, ContextCancel(context))
        response = store_pb2.WriteMemoryEntryResponse()
        convert.fill_entry(response.entry, entry)
        return response

    def UpdateMemoryEntry(
        self, request: store_pb2.UpdateMemoryEntryRequest, context: grpc.ServicerContext
    ) -> store_pb2.UpdateMemoryEntryResponse:
        """Change a memory entry."""
        change = MemoryChange(
            request.content if request.HasField("content") else None,
            request.pinned if request.HasField("pinned") else None,
        )
        response = store_pb2.UpdateMemoryEntryResponse()
        entry = self._store.update_memory_entry(request.id, change, ContextCancel(context))
        convert.fill_entry(response.entry, entry)
        return response

    def DeleteMemoryEntry(
        self, request: store_pb2.DeleteMemoryEntryRequest, context: grpc.ServicerContext
    ) -> store_pb2.DeleteMemoryEntryResponse:
        """Delete a memory entry."""
        self._store.delete_memory_entry(request.id, ContextCancel(context))
        return store_pb2.DeleteMemoryEntryResponse()

    def RecentMemory(
        self, request: store_pb2.RecentMemoryRequest, context: grpc.ServicerContext
    ) -> Iterator[store_pb2.RecentMemoryResponse]:
        """List the entries of some scopes."""
        limit = requests.limit(
            request.limit, limits.RECENT_MEMORY_DEFAULT, limits.RECENT_MEMORY_MAX
        )
        tokens = PageTokens(request)
        after = tokens.decode(request.page_token, MemoryCursor)
        listing = self._store.recent_memory(request.scopes, after, ContextCancel(context))
        return pages(listing, _RECENT, limit, tokens)

    def ScopeMemory(
        self, request: store_pb2.ScopeMemoryRequest, context: grpc.ServicerContext
    ) -> Iterator[store_pb2.ScopeMemoryResponse]:
        """List the entries of one scope."""
        limit, tokens = requests.limit(request.limit), PageTokens(request)
        after = tokens.decode(request.page_token, MemoryCursor)
        listing = self._store.scope_memory(request.scope, after, ContextCancel(context))
        return pages(listing, _OF_SCOPE, limit, tokens)

    def ScopeMemorySize(
        self, request: store_pb2.ScopeMemorySizeRequest, context: grpc.ServicerContext
    ) -> store_pb2.ScopeMemorySizeResponse:
        """Count the characters of a scope."""
        characters = self._store.scope_memory_size(request.scope, ContextCancel(context))
        return store_pb2.ScopeMemorySizeResponse(characters=characters)

    def SearchMemory(
        self, request: store_pb2.SearchMemoryRequest, context: grpc.ServicerContext
    ) -> Iterator[store_pb2.SearchMemoryResponse]:
        """Search the entries of some scopes."""
        limit = requests.limit(request.limit, limits.STORE_SEARCH_DEFAULT, limits.STORE_SEARCH_MAX)
        tokens = PageTokens(request)
        after = tokens.decode(request.page_token, SearchCursor)
        query = MemoryQuery(request.query, tuple(request.scopes))
        listing = self._store.search_memory(query, after, limit, ContextCancel(context))
        return pages(listing, _FOUND, limit, tokens)


@contextmanager
def _fields(names: Mapping[str, str]) -> Iterator[None]:
    """Name fields as the request has them, where the domain knows a part of it only."""
    try:
        yield
    except InvalidArgumentError as error:
        error.field = names.get(error.field, error.field)
        raise
