"""Every error the product raises on purpose.

FlueError
├── InvalidArgumentError
│   ├── UnknownToolError          ├── BadDirectionError    ├── BadEnumError
│   ├── BadTimeZoneError          ├── BadTimeError         ├── BadBatchError
│   ├── EmptyQueryError           ├── QueryTooLongError    ├── BadQueryError
│   ├── BadLimitError             ├── BadOffsetError       ├── BadPageTokenError
│   ├── BadRoleError              ├── EmptyScopeError      ├── BadIdError
│   ├── BadRequestIdError         ├── BadCombinationError  └── ValueTooLargeError
├── NotFoundError
│   ├── SessionNotFoundError      ├── TranscriptNotFoundError
│   ├── MemoryNotFoundError       └── MessageNotFoundError
├── AlreadyExistsError
│   ├── SessionExistsError        └── RequestIdReusedError
├── CursorGoneError
├── BusyError                     ├── DiskFullError
├── DatabaseBusyError             ├── DatabaseIoError      ├── DatabaseCorruptError
├── RankedDisabledError           ├── StoreReadOnlyError   ├── StoreStoppedError
├── DrainingError                 ├── StalledReaderError
├── UnauthenticatedError          ├── ReadOnlyCredentialsError
├── CancelledError                ├── DeadlineError
└── StartupError
    ├── ConfigError               ├── AlreadyRunningError
    └── UnusableDatabaseError

Messages are fixed sentences; each dynamic part stands in ``metadata`` (contract
rule 6), never message text or a path. StartupError alone never crosses the wire
and may name paths: it is read by the person who starts the program.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


class FlueError(Exception):
    """Base of the tree: a sentence for people, and the dynamic parts beside it."""

    def __init__(self, message: str, metadata: Mapping[str, str] | None = None) -> None:
        """Keep the sentence and its parts, such as ``{"position": "4"}``."""
        super().__init__(message)
        self.message = message
        self.metadata: Mapping[str, str] = dict(metadata or {})


class InvalidArgumentError(FlueError):
    """A request field that can never be served; ``field`` is its protobuf name."""

    def __init__(
        self, message: str, field: str = "", metadata: Mapping[str, str] | None = None
    ) -> None:
        """Name the field that is wrong; an empty name when no single one is."""
        super().__init__(message, metadata)
        self.field = field


class UnknownToolError(InvalidArgumentError):
    """A tool that no adapter has, where one transcript is named."""


class BadDirectionError(InvalidArgumentError):
    """A direction outside its enum."""


class BadEnumError(InvalidArgumentError):
    """A value outside its enum, unspecified or repeated where that has no meaning."""


class BadTimeZoneError(InvalidArgumentError):
    """A time zone that is not in the IANA database."""


class BadTimeError(InvalidArgumentError):
    """A timestamp outside 0001-01-01 to 9999-12-31."""


class BadBatchError(InvalidArgumentError):
    """A batch with no message or with more than the limit."""


class EmptyQueryError(InvalidArgumentError):
    """A search with nothing to search for."""


class QueryTooLongError(InvalidArgumentError):
    """A query over its byte or term limit."""


class BadQueryError(InvalidArgumentError):
    """A syntax error in a RANKED query; metadata ``position`` is in code points."""


class BadLimitError(InvalidArgumentError):
    """A negative limit, window or byte budget."""


class BadOffsetError(InvalidArgumentError):
    """A negative offset or index."""


class BadPageTokenError(InvalidArgumentError):
    """A page token that is foreign, damaged or outdated."""


class BadRoleError(InvalidArgumentError):
    """A role outside user, assistant, system, tool."""


class EmptyScopeError(InvalidArgumentError):
    """A memory entry without a scope."""


class BadIdError(InvalidArgumentError):
    """A session id of bad form in CreateSession."""


class BadRequestIdError(InvalidArgumentError):
    """A request id of bad form."""


class BadCombinationError(InvalidArgumentError):
    """Fields that contradict each other."""


class ValueTooLargeError(InvalidArgumentError):
    """A message, a title or memory content over its limit."""


class NotFoundError(FlueError):
    """What was named is not there."""


class SessionNotFoundError(NotFoundError):
    """No such session in the Store."""


class TranscriptNotFoundError(NotFoundError):
    """No such transcript, or it vanished; metadata ``building`` while a sweep runs."""


class MemoryNotFoundError(NotFoundError):
    """No such memory entry."""


class MessageNotFoundError(NotFoundError):
    """No message at that offset and index."""


class AlreadyExistsError(FlueError):
    """What was to be made is there already."""


class SessionExistsError(AlreadyExistsError):
    """The session id is taken."""


class RequestIdReusedError(AlreadyExistsError):
    """The request id was used with another body."""


class CursorGoneError(FlueError):
    """The file was replaced or cut under a cursor or a follow."""


class BusyError(FlueError):
    """Over a budget; the call may be tried again soon."""


class DiskFullError(FlueError):
    """The disk is full; nothing was written."""


class DatabaseBusyError(FlueError):
    """The database was locked past its timeout."""


class DatabaseIoError(FlueError):
    """The database could not be read or written; the write was rolled back."""


class DatabaseCorruptError(FlueError):
    """The database is damaged."""


class RankedDisabledError(FlueError):
    """RANKED search is switched off; metadata ``setting`` names the switch."""


class StoreReadOnlyError(FlueError):
    """The database cannot be written."""


class StoreStoppedError(FlueError):
    """The Store takes no more writes after a failed fsync."""


class DrainingError(FlueError):
    """The server is shutting down."""


class StalledReaderError(FlueError):
    """The client took nothing for too long."""


class UnauthenticatedError(FlueError):
    """Missing or wrong credentials."""


class ReadOnlyCredentialsError(FlueError):
    """Credentials that may only read."""


class CancelledError(FlueError):
    """Nobody waits for the answer any more."""


class DeadlineError(FlueError):
    """The time for the answer is over."""


class StartupError(FlueError):
    """The program cannot start; the message says what to do."""


class ConfigError(StartupError):
    """A setting that cannot be used."""


class AlreadyRunningError(StartupError):
    """Another process owns the socket, the data directory or the index."""


class UnusableDatabaseError(StartupError):
    """A database file that this version cannot or must not open."""
