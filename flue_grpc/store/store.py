"""The Store as the rest of the product sees it (spec/000, contract "Store")."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self, TypeVar

from flue_grpc import limits
from flue_grpc.cancel import NEVER, Cancel
from flue_grpc.store import idempotency, memory, memory_search, message_search, messages, sessions
from flue_grpc.store.database import Database
from flue_grpc.store.following import Follow
from flue_grpc.store.messages import FROM_START
from flue_grpc.store.values import DEFAULT_SETTINGS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from flue_grpc.listing import Placed
    from flue_grpc.store.changes import Changes
    from flue_grpc.store.memory import MemoryCursor
    from flue_grpc.store.messages import MessageCursor
    from flue_grpc.store.ranked import SearchCursor
    from flue_grpc.store.sessions import SessionCursor
    from flue_grpc.store.values import (
        Draft,
        EntryDraft,
        Images,
        MemoryChange,
        MemoryEntry,
        MemoryQuery,
        Message,
        MessageQuery,
        Scope,
        SearchResult,
        Session,
        State,
        StoreSettings,
    )

T = TypeVar("T")


class Store:
    """Sessions, messages and memory, durable when a write returns; safe from any thread.

    Every method may raise DatabaseBusyError, DatabaseIoError,
    DatabaseCorruptError, DrainingError after ``close``, and what its Cancel
    raises; a write also DiskFullError, StoreReadOnlyError and StoreStoppedError.
    A failed write has changed nothing. Lists are read in bounded batches as they
    are pulled, and raise when they are first pulled.
    """

    def __init__(self, database: Database) -> None:
        """Made by ``open``."""
        self._database = database

    @classmethod
    def open(cls, path: Path, settings: StoreSettings = DEFAULT_SETTINGS) -> Self:
        """Open the database file, creating or adopting it, and become its owner.

        Raises a StartupError that says what to do; then nothing was changed.
        """
        return cls(Database.open(path, settings))

    def close(self) -> None:
        """Finish the writes that wait, then close; calling it again does nothing."""
        self._database.close()

    @property
    def changes(self) -> Changes:
        """Where followers of a session subscribe."""
        return self._database.changes

    @property
    def state(self) -> State:
        """What the Store can do now; health reporting asks for it."""
        return self._database.health.state

    @property
    def commits(self) -> int:
        """How many transactions were committed since it was opened."""
        return self._database.writer.commits

    @property
    def writes(self) -> int:
        """How many writes those transactions held."""
        return self._database.writer.writes

    @property
    def waiting(self) -> int:
        """How many writes wait for the writer."""
        return self._database.writer.waiting

    def create_session(
        self, session_id: str, title: str, request_id: str = "", cancel: Cancel = NEVER
    ) -> Session:
        """Make a session; an empty id makes ``ses_`` and 16 hexadecimal digits.

        Raises BadIdError, ValueTooLargeError, SessionExistsError, BadRequestIdError,
        RequestIdReusedError.
        """
        if session_id:
            sessions.check_id(session_id)
        sessions.check_title(title)
        return self._once(
            "CreateSession", request_id, sessions.NewSession(session_id, title), cancel
        )

    def get_session(self, session_id: str, cancel: Cancel = NEVER) -> Session:
        """Read one session; raises SessionNotFoundError."""
        with self._database.readers.reading(cancel) as connection:
            return sessions.get(connection, session_id)

    def update_session(self, session_id: str, title: str, cancel: Cancel = NEVER) -> Session:
        """Set the title, touch ``updated_at``; raises SessionNotFoundError, ValueTooLargeError."""
        sessions.check_title(title)
        return self._database.writer.write(
            lambda batch: sessions.update(batch, session_id, title), cancel
        )

    def delete_session(self, session_id: str, cancel: Cancel = NEVER) -> None:
        """Delete a session with its messages; raises SessionNotFoundError."""
        self._database.writer.write(lambda batch: sessions.delete(batch, session_id), cancel)

    def list_sessions(
        self, scope: Scope, after: SessionCursor | None = None, cancel: Cancel = NEVER
    ) -> Iterator[Placed[Session]]:
        """List sessions, most recently updated first; see sessions.list_sessions."""
        return sessions.list_sessions(self._database.readers, scope, after, cancel)

    def append_message(
        self, session_id: str, draft: Draft, request_id: str = "", cancel: Cancel = NEVER
    ) -> Message:
        """Store one message and touch its session.

        Raises BadRoleError, ValueTooLargeError, SessionNotFoundError,
        BadRequestIdError, RequestIdReusedError.
        """
        body = messages.NewMessages(session_id, (messages.checked(draft),))
        return self._once("AppendMessage", request_id, body, cancel)[0]

    def append_messages(
        self, session_id: str, drafts: Sequence[Draft], request_id: str = "", cancel: Cancel = NEVER
    ) -> tuple[Message, ...]:
        """Store 1 to 1,000 messages, all or none; raises BadBatchError and as append_message."""
        messages.check_count(len(drafts))
        body = messages.NewMessages(session_id, tuple(map(messages.checked, drafts)))
        return self._once("AppendMessages", request_id, body, cancel)

    def list_messages(
        self,
        session_id: str,
        after: MessageCursor = FROM_START,
        images: Images = "whole",
        cancel: Cancel = NEVER,
    ) -> Iterator[Placed[Message]]:
        """List a session's messages after a place, oldest first; see messages.list_messages."""
        return messages.list_messages(self._database.readers, session_id, after, images, cancel)

    def follow(self, session_id: str, after: MessageCursor, images: Images) -> Follow:
        """Follow a session from a place on; to be closed."""
        subscription = self.changes.subscribe(session_id)
        return Follow(self._database.readers, subscription, after, images)

    def search_messages(
        self,
        query: MessageQuery,
        after: SearchCursor | None = None,
        limit: int = limits.STORE_SEARCH_DEFAULT,
        cancel: Cancel = NEVER,
    ) -> Iterator[Placed[SearchResult]]:
        """Search messages, best first; yields one more than ``limit`` when there is more.

        Raises EmptyQueryError, QueryTooLongError; see message_search.search_messages.
        """
        readers = self._database.readers
        return message_search.search_messages(readers, query, after, limit + 1, cancel)

    def write_memory_entry(
        self, draft: EntryDraft, request_id: str = "", cancel: Cancel = NEVER
    ) -> MemoryEntry:
        """Store one entry.

        Raises EmptyScopeError, ValueTooLargeError, BadRequestIdError, RequestIdReusedError.
        """
        memory.check_draft(draft)
        return self._once("WriteMemoryEntry", request_id, memory.NewEntry(draft), cancel)

    def update_memory_entry(
        self, number: int, change: MemoryChange, cancel: Cancel = NEVER
    ) -> MemoryEntry:
        """Set what ``change`` holds, touch ``updated_at``.

        Raises BadCombinationError when it is empty, ValueTooLargeError, MemoryNotFoundError.
        """
        memory.check_change(change)
        return self._database.writer.write(
            lambda batch: memory.update(batch, number, change), cancel
        )

    def delete_memory_entry(self, number: int, cancel: Cancel = NEVER) -> None:
        """Delete one entry; raises MemoryNotFoundError."""
        self._database.writer.write(lambda batch: memory.delete(batch, number), cancel)

    def recent_memory(
        self, scopes: Sequence[str], after: MemoryCursor | None = None, cancel: Cancel = NEVER
    ) -> Iterator[Placed[MemoryEntry]]:
        """List the entries of some scopes, pinned first; see memory.recent."""
        return memory.recent(self._database.readers, tuple(scopes), after, cancel)

    def scope_memory(
        self, scope: str, after: MemoryCursor | None = None, cancel: Cancel = NEVER
    ) -> Iterator[Placed[MemoryEntry]]:
        """List the entries of one scope, pinned first; see memory.of_scope."""
        return memory.of_scope(self._database.readers, scope, after, cancel)

    def scope_memory_size(self, scope: str, cancel: Cancel = NEVER) -> int:
        """Count the code points of a scope's contents."""
        with self._database.readers.reading(cancel) as connection:
            return memory.size(connection, scope)

    def search_memory(
        self,
        query: MemoryQuery,
        after: SearchCursor | None = None,
        limit: int = limits.STORE_SEARCH_DEFAULT,
        cancel: Cancel = NEVER,
    ) -> Iterator[Placed[MemoryEntry]]:
        """Search entries, best first; yields one more than ``limit`` when there is more.

        Raises EmptyQueryError, QueryTooLongError; see memory_search.search_memory.
        """
        readers = self._database.readers
        return memory_search.search_memory(readers, query, after, limit + 1, cancel)

    def _once(self, rpc: str, request_id: str, write: idempotency.Once[T], cancel: Cancel) -> T:
        asked = idempotency.request(rpc, request_id, write)
        return self._database.writer.write(
            lambda batch: idempotency.once(batch, asked, write), cancel
        )
