"""Streams as iterators of items."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

import grpc

from flue_grpc.client.calls import Handle
from flue_grpc.client.failures import CallError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import TracebackType
    from typing import Self

    from flue_grpc.client.calls import Caller, Place

Request = TypeVar("Request", bound=Any)
Response = TypeVar("Response", bound=Any)
Item = TypeVar("Item")


class ItemStream(Generic[Response, Item]):
    """The items of a list as they come; iterate once, and close it to stop early.

    ``last`` is the latest response, None before the first: flags such as
    ``building``, ``caught_up`` or ``next_page_token`` are read from it.
    """

    def __init__(
        self,
        caller: Caller,
        method: grpc.UnaryStreamMultiCallable[Request, Response],
        place: Place[Request, Response],
        items: Callable[[Response], Iterable[Item]],
        timeout: float | None,
    ) -> None:
        """Prepare; the call is made when iteration starts."""
        self.last: Response | None = None
        self._items = items
        self._caller = caller
        self._handle = Handle()
        self._responses = caller.stream(method, place, timeout, self._handle)

    def __iter__(self) -> Iterator[Item]:
        for response in self.responses():
            yield from self._items(response)

    def responses(self) -> Iterator[Response]:
        """Iterate over whole responses, those without items too.

        Raises CallError when the list cannot go on.
        """
        try:
            for response in self._responses:
                self.last = response
                yield response
        except CallError as error:
            if not (self._handle.is_closed and error.code is grpc.StatusCode.CANCELLED):
                raise
        finally:
            # A loop that is left frees the call at once, not when garbage is collected.
            self._responses.close()

    def close(self) -> None:
        """End the stream, from any thread; iteration stops."""
        self._handle.close()
        self._caller.wake()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
