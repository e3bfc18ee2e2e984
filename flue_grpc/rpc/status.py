"""What each error of the domain is on the wire (contract rule 6).

``TABLE`` is the only place where an error class meets a status code. A status
is a ``google.rpc.Status`` in the trailers: ``ErrorInfo`` with the reason and
each dynamic part, ``BadRequest`` for a field, ``RetryInfo`` where trying again
makes sense.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NoReturn

import grpc
from google.protobuf import any_pb2, duration_pb2
from google.rpc import code_pb2, error_details_pb2, status_pb2

from flue_grpc import errors, limits
from flue_grpc.text.clean import cut_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from google.protobuf.message import Message

DOMAIN: Final = "flue-grpc"
DETAILS_KEY: Final = "grpc-status-details-bin"

_INVALID = grpc.StatusCode.INVALID_ARGUMENT
_EXHAUSTED = grpc.StatusCode.RESOURCE_EXHAUSTED
_UNAVAILABLE = grpc.StatusCode.UNAVAILABLE
_REFUSED = grpc.StatusCode.FAILED_PRECONDITION


@dataclass(frozen=True, slots=True)
class Rule:
    """How one error class leaves.

    An empty ``reason`` means no details at all. ``field`` is the request field
    to blame when the error names none, ``retry`` the seconds to wait.
    """

    code: grpc.StatusCode
    reason: str = ""
    field: str = ""
    retry: float | None = None


TABLE: Final[Mapping[type[errors.FlueError], Rule]] = MappingProxyType(
    {
        errors.UnknownToolError: Rule(_INVALID, "UNKNOWN_TOOL", "tool"),
        errors.BadDirectionError: Rule(_INVALID, "BAD_DIRECTION", "direction"),
        errors.BadEnumError: Rule(_INVALID, "BAD_ENUM"),
        errors.BadTimeZoneError: Rule(_INVALID, "BAD_TIME_ZONE", "time_zone"),
        errors.BadTimeError: Rule(_INVALID, "BAD_TIME"),
        errors.BadBatchError: Rule(_INVALID, "BAD_BATCH", "messages"),
        errors.EmptyQueryError: Rule(_INVALID, "EMPTY_QUERY", "query"),
        errors.QueryTooLongError: Rule(_INVALID, "QUERY_TOO_LONG", "query"),
        errors.BadQueryError: Rule(_INVALID, "BAD_QUERY", "query"),
        errors.BadLimitError: Rule(_INVALID, "BAD_LIMIT", "limit"),
        errors.BadOffsetError: Rule(_INVALID, "BAD_OFFSET", "offset"),
        errors.BadPageTokenError: Rule(_INVALID, "BAD_PAGE_TOKEN", "page_token"),
        errors.BadRoleError: Rule(_INVALID, "BAD_ROLE", "message.role"),
        errors.EmptyScopeError: Rule(_INVALID, "EMPTY_SCOPE", "scope"),
        errors.BadIdError: Rule(_INVALID, "BAD_ID", "id"),
        errors.BadRequestIdError: Rule(_INVALID, "BAD_REQUEST_ID", "request_id"),
        errors.BadCombinationError: Rule(_INVALID, "BAD_COMBINATION"),
        errors.ValueTooLargeError: Rule(_INVALID, "VALUE_TOO_LARGE", "content"),
        errors.SessionNotFoundError: Rule(grpc.StatusCode.NOT_FOUND, "SESSION_NOT_FOUND"),
        errors.TranscriptNotFoundError: Rule(grpc.StatusCode.NOT_FOUND, "TRANSCRIPT_NOT_FOUND"),
        errors.MemoryNotFoundError: Rule(grpc.StatusCode.NOT_FOUND, "MEMORY_NOT_FOUND"),
        errors.MessageNotFoundError: Rule(grpc.StatusCode.NOT_FOUND, "MESSAGE_NOT_FOUND"),
        errors.SessionExistsError: Rule(grpc.StatusCode.ALREADY_EXISTS, "SESSION_EXISTS"),
        errors.RequestIdReusedError: Rule(grpc.StatusCode.ALREADY_EXISTS, "REQUEST_ID_REUSED"),
        errors.CursorGoneError: Rule(grpc.StatusCode.OUT_OF_RANGE, "CURSOR_GONE"),
        errors.BusyError: Rule(_EXHAUSTED, "BUSY", retry=limits.BUSY_RETRY_SECONDS),
        errors.DiskFullError: Rule(_EXHAUSTED, "DISK_FULL"),
        errors.DatabaseBusyError: Rule(
            _UNAVAILABLE, "DATABASE_BUSY", retry=limits.UNAVAILABLE_RETRY_SECONDS
        ),
        errors.DatabaseIoError: Rule(
            _UNAVAILABLE, "DATABASE_IO_ERROR", retry=limits.UNAVAILABLE_RETRY_SECONDS
        ),
        errors.DrainingError: Rule(
            _UNAVAILABLE, "DRAINING", retry=limits.UNAVAILABLE_RETRY_SECONDS
        ),
        errors.RankedDisabledError: Rule(_REFUSED, "RANKED_DISABLED"),
        errors.StoreReadOnlyError: Rule(_REFUSED, "STORE_READ_ONLY"),
        errors.StoreStoppedError: Rule(_REFUSED, "STORE_STOPPED"),
        errors.DatabaseCorruptError: Rule(grpc.StatusCode.DATA_LOSS, "DATABASE_CORRUPT"),
        errors.UnauthenticatedError: Rule(grpc.StatusCode.UNAUTHENTICATED, "UNAUTHENTICATED"),
        errors.ReadOnlyCredentialsError: Rule(
            grpc.StatusCode.PERMISSION_DENIED, "READ_ONLY_CREDENTIALS"
        ),
        errors.StalledReaderError: Rule(grpc.StatusCode.ABORTED),
        errors.CancelledError: Rule(grpc.StatusCode.CANCELLED),
        errors.DeadlineError: Rule(grpc.StatusCode.DEADLINE_EXCEEDED),
    }
)


def rule_of(error: errors.FlueError) -> Rule | None:
    """Find the rule of the nearest class; None for what must not cross the wire."""
    for kind in type(error).__mro__:
        if kind in TABLE:
            return TABLE[kind]
    return None


def status_of(error: errors.FlueError, rule: Rule) -> status_pb2.Status:
    """Build the status, at most 4 KiB: metadata goes before the reason does."""
    metadata = {
        key: cut_bytes(value, limits.METADATA_VALUE_BYTES) for key, value in error.metadata.items()
    }
    status = _assemble(error, rule, metadata)
    while metadata and status.ByteSize() > limits.STATUS_BYTES:
        metadata.popitem()
        status = _assemble(error, rule, metadata)
    return status


def abort(context: grpc.ServicerContext, error: errors.FlueError, rule: Rule) -> NoReturn:
    """End the call with the error's status; always raises.

    Sets the trailers and aborts, which is all that ``abort_with_status`` does,
    and works with grpcio-testing, where that is missing.
    """
    status = status_of(error, rule)
    if status.details:
        context.set_trailing_metadata(((DETAILS_KEY, status.SerializeToString()),))
    context.abort(rule.code, status.message)


def _assemble(
    error: errors.FlueError, rule: Rule, metadata: Mapping[str, str]
) -> status_pb2.Status:
    status = status_pb2.Status(
        code=code_pb2.Code.Value(rule.code.name),
        message=cut_bytes(error.message, limits.STATUS_MESSAGE_BYTES),
    )
    if not rule.reason:
        return status
    info = error_details_pb2.ErrorInfo(reason=rule.reason, domain=DOMAIN, metadata=metadata)
    _attach(status, info)
    if isinstance(error, errors.InvalidArgumentError):
        field = cut_bytes(error.field or rule.field, limits.METADATA_VALUE_BYTES)
        if field:
            violation = error_details_pb2.BadRequest.FieldViolation(
                field=field, description=status.message, reason=rule.reason
            )
            _attach(status, error_details_pb2.BadRequest(field_violations=[violation]))
    if rule.retry is not None:
        delay = duration_pb2.Duration()
        delay.FromNanoseconds(int(rule.retry * 1e9))
        _attach(status, error_details_pb2.RetryInfo(retry_delay=delay))
    return status


def _attach(status: status_pb2.Status, detail: Message) -> None:
    packed = any_pb2.Any()
    packed.Pack(detail)
    status.details.append(packed)
