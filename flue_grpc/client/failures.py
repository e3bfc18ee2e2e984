"""What a server answered instead of a result."""

from __future__ import annotations

from typing import TYPE_CHECKING

import grpc
from google.protobuf.message import DecodeError
from google.rpc.error_details_pb2 import ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status

if TYPE_CHECKING:
    from collections.abc import Mapping

_DETAILS = "grpc-status-details-bin"

# With these the server says that it has done nothing (contract, table of errors).
_REFUSALS = frozenset({"BUSY", "DRAINING", "DATABASE_BUSY", "DATABASE_IO_ERROR"})


class CallError(Exception):
    """A call that failed: its code, its reason and the dynamic parts beside them.

    ``reason`` is that of the contract, such as ``SESSION_NOT_FOUND``, and empty
    where the failure came from the transport. ``retry_after`` is in seconds, None
    when the server named no time.
    """

    def __init__(
        self,
        code: grpc.StatusCode,
        message: str,
        reason: str = "",
        metadata: Mapping[str, str] | None = None,
        retry_after: float | None = None,
    ) -> None:
        """Keep what the server said."""
        super().__init__(f"{reason or code.name}: {message}")
        self.code = code
        self.message = message
        self.reason = reason
        self.metadata: Mapping[str, str] = dict(metadata or {})
        self.retry_after = retry_after

    @property
    def did_nothing(self) -> bool:
        """The server refused before it did anything, so any call may be repeated."""
        return self.reason in _REFUSALS

    @property
    def is_lost_connection(self) -> bool:
        """The connection broke, or the server ended every call because it stops.

        That is a CANCELLED which nobody on this side asked for.
        """
        return self.code in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED}

    @property
    def is_broken_stream(self) -> bool:
        """The connection was lost, or the server cut off a reader that paused."""
        return self.is_lost_connection or self.code is grpc.StatusCode.ABORTED

    @property
    def may_be_found_later(self) -> bool:
        """The server still reads transcripts, and may not have come to this one."""
        return (
            self.code is grpc.StatusCode.NOT_FOUND and self.metadata.get("building", "") == "true"
        )


def from_rpc_error(error: grpc.RpcError) -> CallError:
    """Read the status of a failed call, with its details where there are any."""
    if not isinstance(error, grpc.Call):
        return CallError(grpc.StatusCode.UNKNOWN, str(error))
    code = error.code() or grpc.StatusCode.UNKNOWN
    message = error.details() or ""
    try:
        info, retry_after = _details(error)
    except (DecodeError, OverflowError, ValueError):
        return CallError(code, message)  # not from a server of ours
    return CallError(code, message, info.reason, info.metadata, retry_after)


def _details(call: grpc.Call) -> tuple[ErrorInfo, float | None]:
    info, retry, retry_after = ErrorInfo(), RetryInfo(), None
    for detail in _status(call).details:
        detail.Unpack(info)
        if detail.Unpack(retry):
            retry_after = retry.retry_delay.ToTimedelta().total_seconds()
    return info, retry_after


def _status(call: grpc.Call) -> Status:
    for key, value in call.trailing_metadata() or ():
        if key == _DETAILS and isinstance(value, bytes):
            return Status.FromString(value)
    return Status()
