"""Repeats of a create, append or write that take effect once (contract rule 8)."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

import msgspec

from flue_grpc import limits
from flue_grpc.errors import BadRequestIdError, RequestIdReusedError

if TYPE_CHECKING:
    from flue_grpc.store.batch import Batch

T = TypeVar("T")

_KEPT: Final = limits.REQUEST_ID_HOURS * 3600 * 1_000_000
_DIGEST_BYTES: Final = 16
_ENCODER: Final = msgspec.msgpack.Encoder()


class Request(msgspec.Struct, frozen=True):
    """A request id, the RPC that it belongs to, and the hash of the other fields."""

    rpc: str
    id: str
    body: bytes


class Once(Protocol[T]):
    """A write that can say what it made, and find that again."""

    def make(self, batch: Batch) -> T:
        """Write."""

    def name(self, made: T) -> str:
        """Return the id of what was made, as text."""

    def find(self, batch: Batch, name: str) -> T:
        """Return what was made as it is now; raise a NotFoundError when it was deleted."""


def request(rpc: str, request_id: str, body: object) -> Request | None:
    """Describe a request; None when it has no id. Raises BadRequestIdError over 64 characters."""
    if not request_id:
        return None
    if len(request_id) > limits.REQUEST_ID_CODE_POINTS:
        raise BadRequestIdError("a request id has 1 to 64 characters", "request_id")
    digest = blake2b(_ENCODER.encode(body), digest_size=_DIGEST_BYTES).digest()
    return Request(rpc, request_id, digest)


def once(batch: Batch, asked: Request | None, write: Once[T]) -> T:
    """Write, or return what the first request with this id made.

    Raises RequestIdReusedError when that had another body. What fails is not
    remembered. Ids are forgotten after 24 h in which the Store was open: how long
    it was closed nobody knows, and a clock that jumped must not let a write repeat.
    """
    if asked is None:
        return write.make(batch)
    now = batch.age()
    kept = batch.row(
        """SELECT body, made FROM requests
            WHERE rpc = ? AND request_id = ? AND created_at > ?""",
        (asked.rpc, asked.id, now - _KEPT),
    )
    if kept is not None:
        if kept[0] != asked.body:
            raise RequestIdReusedError(
                "the request id was used with another body", {"request_id": asked.id}
            )
        return write.find(batch, kept[1])
    made = write.make(batch)
    _remember(batch, asked, write.name(made), now)
    return made


def _remember(batch: Batch, asked: Request, made: str, now: int) -> None:
    batch.execute(
        """DELETE FROM requests WHERE (rpc, request_id) IN (
            SELECT rpc, request_id FROM requests WHERE created_at <= ?
            ORDER BY created_at LIMIT ?)""",
        (now - _KEPT, limits.REQUEST_PURGE_ROWS),
    )
    batch.execute(
        "INSERT OR REPLACE INTO requests VALUES (?, ?, ?, ?, ?)",
        (asked.rpc, asked.id, asked.body, made, now),
    )
