"""Lists as streams of responses that all have a ``next_page_token``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from flue_grpc.rpc.batching import batches

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flue_grpc.listing import Pause, Placed, Stop
    from flue_grpc.rpc.batching import Shape
    from flue_grpc.rpc.page_token import PageTokens


class HasToken(Protocol):
    """A response of a list."""

    next_page_token: str


T = TypeVar("T")
R = TypeVar("R", bound=HasToken)


def pages(
    listing: Iterator[Placed[T] | Pause | Stop],
    shape: Shape[T, R],
    limit: int,
    tokens: PageTokens,
) -> Iterator[R]:
    """Send a list in responses, each with the token of the place after it."""
    for batch in batches(listing, shape, limit):
        batch.response.next_page_token = tokens.encode(batch.cursor)
        yield batch.response
