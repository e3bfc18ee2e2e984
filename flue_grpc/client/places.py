"""How each kind of stream goes on: by token, by offset, by what was read, or anew."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

from flue.agentindex.v1 import agent_index_pb2 as agentindex_pb

if TYPE_CHECKING:
    from collections.abc import Callable, Sized

_MOST_IN_CALL: Final = 2**31 - 1  # `limit` is an int32


class PagedRequest(Protocol):
    """A request of any list (contract rule 2)."""

    limit: int
    page_token: str


class PagedResponse(Protocol):
    """A response of any list (contract rule 2)."""

    next_page_token: str


Request = TypeVar("Request", bound=PagedRequest)
Response = TypeVar("Response", bound=PagedResponse)


class TokenPlace(Generic[Request, Response]):
    """A list of which ``wanted`` items are asked for in all, None or 0 for every one.

    A call brings at most ``call_limit`` of them, 0 when one call may bring any
    number. ``ends_with_call`` is for a list whose call has its own end, such as a
    search with a byte budget.
    """

    def __init__(
        self,
        request: Request,
        items: Callable[[Response], Sized],
        wanted: int | None,
        *,
        call_limit: int = 0,
        ends_with_call: bool = False,
    ) -> None:
        """Begin at the token that ``request`` has, the start without one."""
        self._request = request
        self._items = items
        self._wanted = wanted or None
        self._call_limit = call_limit
        self._ends_with_call = ends_with_call
        self.is_complete = False

    def request(self) -> Request:
        """Ask for what is still wanted, from the last token on."""
        self._request.limit = self._limit()
        return self._request

    def advance(self, response: Response) -> None:
        """Take the token and count what came."""
        self._request.page_token = response.next_page_token
        if self._wanted is not None:
            self._wanted -= len(self._items(response))
        is_last = self._ends_with_call and bool(getattr(response, "truncated", False))
        self.is_complete = is_last or not response.next_page_token or self._has_all()

    @property
    def is_live(self) -> bool:
        """Whether the list is followed."""
        return bool(getattr(self._request, "follow", False))

    def goes_on(self) -> bool:
        """More is wanted, and the list has more."""
        return not (self._ends_with_call or self.is_complete) and bool(self._request.page_token)

    def _has_all(self) -> bool:
        return self._wanted is not None and self._wanted <= 0

    def _limit(self) -> int:
        if self._wanted is None:
            return self._call_limit
        return min(self._wanted, self._call_limit or _MOST_IN_CALL)


class TranscriptPlace:
    """A transcript, addressed by offset and revision (contract "Offsets")."""

    def __init__(self, request: agentindex_pb.ReadTranscriptRequest) -> None:
        """Begin where ``request`` says."""
        self._request = request
        self._backward = request.direction == agentindex_pb.DIRECTION_BACKWARD
        self._is_limited = request.limit > 0
        self.is_complete = False

    def request(self) -> agentindex_pb.ReadTranscriptRequest:
        """Ask for the pages after the last one."""
        return self._request

    def advance(self, response: agentindex_pb.ReadTranscriptResponse) -> None:
        """Go to the end of the page, backward to its start, in this very file."""
        page = response.page
        self._request.offset = page.start if self._backward else page.next
        self._request.revision = page.revision
        if self._is_limited:
            # The last line may pass the limit.
            self._request.limit = max(0, self._request.limit - len(page.messages))
        has_all = self._is_limited and not self._request.limit
        self.is_complete = has_all or (self._is_at_end(page) and not self.is_live)

    def _is_at_end(self, page: agentindex_pb.Page) -> bool:
        return page.start == 0 if self._backward else page.eof

    @property
    def is_live(self) -> bool:
        """Whether the transcript is followed."""
        return self._request.follow

    def goes_on(self) -> bool:
        """Say no: a call that ended well has brought everything."""
        return False


class TextPlace:
    """The text of one message: a repeat reads it again and leaves out what came."""

    def __init__(self, request: agentindex_pb.ReadMessageRequest) -> None:
        """Begin at the start of the text."""
        self._request = request
        self._arrived = 0
        self._repeated = 0
        self.is_complete = False  # no response says that it is the last

    def request(self) -> agentindex_pb.ReadMessageRequest:
        """Ask for the whole text; there is no way to ask for its rest."""
        self._repeated = self._arrived
        return self._request

    def advance(self, response: agentindex_pb.ReadMessageResponse) -> None:
        """Cut off what has arrived before, in place, and count the rest."""
        known = min(self._repeated, len(response.text))
        self._repeated -= known
        response.text = response.text[known:]
        self._arrived += len(response.text)

    @property
    def is_live(self) -> bool:
        """Say no: a text has an end."""
        return False

    def goes_on(self) -> bool:
        """Say no: a call that ended well has brought the whole text."""
        return False


class WatchPlace:
    """The changes of the listed sessions: after a break the difference is made here.

    A new stream tells every session again. Those that are known and unchanged are
    left out, changed ones become UPDATED, and those that are gone REMOVED.
    """

    def __init__(self, request: agentindex_pb.WatchRequest) -> None:
        """Begin with no session known."""
        self._request = request
        self._known: dict[tuple[str, str], int] = {}
        self._missing: set[tuple[str, str]] = set()
        self._caught_up = False
        self.is_complete = False

    def request(self) -> agentindex_pb.WatchRequest:
        """Ask for everything; a watch has no place to go on from."""
        self._missing = set(self._known)
        return self._request

    def advance(self, response: agentindex_pb.WatchResponse) -> None:
        """Reduce the events to what is new, in place."""
        events = [event for event in response.events if self._is_new(event)]
        if response.caught_up:
            events += [_removed(*key) for key in sorted(self._missing)]
            for key in self._missing:
                del self._known[key]
            self._missing = set()
        del response.events[:]
        response.events.extend(events)
        response.caught_up = self._caught_up = self._caught_up or response.caught_up

    @property
    def is_live(self) -> bool:
        """Say yes: a watch goes on until it is closed."""
        return True

    def goes_on(self) -> bool:
        """Say no: a server that ends a watch well has nothing more to tell."""
        return False

    def _is_new(self, event: agentindex_pb.SessionEvent) -> bool:
        key = (event.summary.tool, event.summary.id)
        self._missing.discard(key)
        if event.type == agentindex_pb.EVENT_TYPE_REMOVED:
            return self._known.pop(key, None) is not None
        mark = hash(event.summary.SerializeToString(deterministic=True))
        earlier = self._known.get(key)
        self._known[key] = mark
        if earlier is not None:
            event.type = agentindex_pb.EVENT_TYPE_UPDATED
        return earlier != mark


def _removed(tool: str, session_id: str) -> agentindex_pb.SessionEvent:
    return agentindex_pb.SessionEvent(
        type=agentindex_pb.EVENT_TYPE_REMOVED,
        summary=agentindex_pb.Summary(tool=tool, id=session_id),
    )
