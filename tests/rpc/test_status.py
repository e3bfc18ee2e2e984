from __future__ import annotations

import grpc
import pytest
from google.rpc import error_details_pb2

from flue_grpc import errors, limits
from flue_grpc.rpc import status

BASES = {
    errors.FlueError,
    errors.InvalidArgumentError,
    errors.NotFoundError,
    errors.AlreadyExistsError,
}
NO_DETAILS = {errors.StalledReaderError, errors.CancelledError, errors.DeadlineError}
EXPECTED = {
    "UnknownToolError": ("INVALID_ARGUMENT", "UNKNOWN_TOOL"),
    "BadDirectionError": ("INVALID_ARGUMENT", "BAD_DIRECTION"),
    "BadEnumError": ("INVALID_ARGUMENT", "BAD_ENUM"),
    "BadTimeZoneError": ("INVALID_ARGUMENT", "BAD_TIME_ZONE"),
    "BadTimeError": ("INVALID_ARGUMENT", "BAD_TIME"),
    "BadBatchError": ("INVALID_ARGUMENT", "BAD_BATCH"),
    "EmptyQueryError": ("INVALID_ARGUMENT", "EMPTY_QUERY"),
    "QueryTooLongError": ("INVALID_ARGUMENT", "QUERY_TOO_LONG"),
    "BadQueryError": ("INVALID_ARGUMENT", "BAD_QUERY"),
    "BadLimitError": ("INVALID_ARGUMENT", "BAD_LIMIT"),
    "BadOffsetError": ("INVALID_ARGUMENT", "BAD_OFFSET"),
    "BadPageTokenError": ("INVALID_ARGUMENT", "BAD_PAGE_TOKEN"),
    "BadRoleError": ("INVALID_ARGUMENT", "BAD_ROLE"),
    "EmptyScopeError": ("INVALID_ARGUMENT", "EMPTY_SCOPE"),
    "BadIdError": ("INVALID_ARGUMENT", "BAD_ID"),
    "BadRequestIdError": ("INVALID_ARGUMENT", "BAD_REQUEST_ID"),
    "BadCombinationError": ("INVALID_ARGUMENT", "BAD_COMBINATION"),
    "ValueTooLargeError": ("INVALID_ARGUMENT", "VALUE_TOO_LARGE"),
    "SessionNotFoundError": ("NOT_FOUND", "SESSION_NOT_FOUND"),
    "TranscriptNotFoundError": ("NOT_FOUND", "TRANSCRIPT_NOT_FOUND"),
    "MemoryNotFoundError": ("NOT_FOUND", "MEMORY_NOT_FOUND"),
    "MessageNotFoundError": ("NOT_FOUND", "MESSAGE_NOT_FOUND"),
    "SessionExistsError": ("ALREADY_EXISTS", "SESSION_EXISTS"),
    "RequestIdReusedError": ("ALREADY_EXISTS", "REQUEST_ID_REUSED"),
    "CursorGoneError": ("OUT_OF_RANGE", "CURSOR_GONE"),
    "BusyError": ("RESOURCE_EXHAUSTED", "BUSY"),
    "DiskFullError": ("RESOURCE_EXHAUSTED", "DISK_FULL"),
    "DatabaseBusyError": ("UNAVAILABLE", "DATABASE_BUSY"),
    "DatabaseIoError": ("UNAVAILABLE", "DATABASE_IO_ERROR"),
    "DrainingError": ("UNAVAILABLE", "DRAINING"),
    "RankedDisabledError": ("FAILED_PRECONDITION", "RANKED_DISABLED"),
    "StoreReadOnlyError": ("FAILED_PRECONDITION", "STORE_READ_ONLY"),
    "StoreStoppedError": ("FAILED_PRECONDITION", "STORE_STOPPED"),
    "DatabaseCorruptError": ("DATA_LOSS", "DATABASE_CORRUPT"),
    "UnauthenticatedError": ("UNAUTHENTICATED", "UNAUTHENTICATED"),
    "ReadOnlyCredentialsError": ("PERMISSION_DENIED", "READ_ONLY_CREDENTIALS"),
    "StalledReaderError": ("ABORTED", ""),
    "CancelledError": ("CANCELLED", ""),
    "DeadlineError": ("DEADLINE_EXCEEDED", ""),
}
RETRIED = {"BusyError", "DatabaseBusyError", "DatabaseIoError", "DrainingError"}


def subclasses(kind):
    for child in kind.__subclasses__():
        yield child
        yield from subclasses(child)


ON_THE_WIRE = sorted(
    {
        kind
        for kind in subclasses(errors.FlueError)
        if kind.__module__ == errors.__name__
        and kind not in BASES
        and not issubclass(kind, errors.StartupError)
    },
    key=lambda kind: kind.__name__,
)


def details(error):
    """Unpack the details of an error's status by their type."""
    found = status.status_of(error, status.rule_of(error))
    unpacked = {}
    for packed in found.details:
        kind = getattr(error_details_pb2, packed.TypeName().rpartition(".")[2])
        detail = kind()
        assert packed.Unpack(detail)
        unpacked[kind] = detail
    assert len(unpacked) == len(found.details)
    return found, unpacked


@pytest.mark.parametrize("kind", ON_THE_WIRE)
def test_each_error_has_the_code_and_reason_of_the_contract(kind):
    error = kind("what is wrong")
    code, reason = EXPECTED[kind.__name__]
    found, unpacked = details(error)
    assert found.code == grpc.StatusCode[code].value[0]
    assert found.message == "what is wrong"
    if kind in NO_DETAILS:
        assert unpacked == {}
        return
    info = unpacked[error_details_pb2.ErrorInfo]
    assert (info.reason, info.domain) == (reason, "flue-grpc")
    assert (error_details_pb2.RetryInfo in unpacked) == (kind.__name__ in RETRIED)


def test_the_table_is_complete():
    assert {kind.__name__ for kind in ON_THE_WIRE} == set(EXPECTED)
    assert {kind.__name__ for kind in status.TABLE} == set(EXPECTED)


@pytest.mark.parametrize("kind", [errors.ConfigError, errors.AlreadyRunningError])
def test_errors_of_the_start_have_no_way_out(kind):
    assert status.rule_of(kind("/home/x is locked")) is None


def test_a_subclass_leaves_as_its_parent():
    class Special(errors.BadQueryError):
        pass

    assert status.rule_of(Special("x")).reason == "BAD_QUERY"


def test_a_bad_field_is_named_by_the_error_or_by_the_table():
    _, unpacked = details(errors.BadLimitError("negative", "window"))
    [violation] = unpacked[error_details_pb2.BadRequest].field_violations
    assert (violation.field, violation.reason) == ("window", "BAD_LIMIT")
    assert violation.description == "negative"
    _, unpacked = details(errors.EmptyQueryError("blank"))
    assert unpacked[error_details_pb2.BadRequest].field_violations[0].field == "query"
    _, unpacked = details(errors.BadEnumError("which"))
    assert error_details_pb2.BadRequest not in unpacked


def test_busy_says_when_to_try_again():
    _, unpacked = details(errors.BusyError("full"))
    delay = unpacked[error_details_pb2.RetryInfo].retry_delay
    assert delay.ToNanoseconds() == 250_000_000


def test_metadata_values_are_cut_on_a_code_point():
    error = errors.UnknownToolError("unknown", metadata={"tool": "é" * 500})
    _, unpacked = details(error)
    value = unpacked[error_details_pb2.ErrorInfo].metadata["tool"]
    assert value == "é" * (limits.METADATA_VALUE_BYTES // 2)


def test_the_whole_status_stays_under_its_limit():
    metadata = {f"key{n}": "v" * 5000 for n in range(100)}
    error = errors.BadQueryError("m" * 50_000, "f" * 5000, metadata)
    found, unpacked = details(error)
    assert found.ByteSize() <= limits.STATUS_BYTES
    assert unpacked[error_details_pb2.ErrorInfo].reason == "BAD_QUERY"
    assert error_details_pb2.BadRequest in unpacked
