"""Following a session: what was appended since, again and again (contract rule 9)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flue_grpc.errors import SessionNotFoundError
from flue_grpc.heartbeat import Heartbeat
from flue_grpc.store.messages import MessageCursor, list_messages, located

if TYPE_CHECKING:
    from collections.abc import Iterator
    from threading import Event

    from flue_grpc.cancel import Cancel
    from flue_grpc.listing import Placed
    from flue_grpc.store.changes import Subscription
    from flue_grpc.store.readers import Readers
    from flue_grpc.store.values import Images, Message


class Follow:
    """One follow of one session; ``place`` is behind the last message that was pulled."""

    def __init__(
        self, readers: Readers, subscription: Subscription, place: MessageCursor, images: Images
    ) -> None:
        """Own the subscription, which is older than the first reading."""
        self._readers = readers
        self._subscription = subscription
        self._images: Images = images
        self._heartbeat = Heartbeat()
        self.place = place

    @property
    def event(self) -> Event:
        """What wakes the follow; anyone may set it."""
        return self._subscription.event

    def close(self) -> None:
        """Hear nothing more; calling it again does nothing."""
        self._subscription.close()

    def news(self, cancel: Cancel) -> Iterator[Placed[Message]]:
        """Yield what lies behind the place; raises SessionNotFoundError once it is deleted."""
        self.event.clear()
        cancel.check()
        if self._subscription.is_deleted:
            raise SessionNotFoundError("the session was deleted")
        session_id = self._subscription.session_id
        if self.place.created_at is None:
            with self._readers.reading(cancel) as connection:
                self.place = located(connection, session_id, self.place)
        for placed in list_messages(self._readers, session_id, self.place, self._images, cancel):
            self.place = MessageCursor(placed.item.id, self.place.created_at)
            yield placed
            self._heartbeat.beat()

    def wait(self, cancel: Cancel) -> bool:
        """Wait for news; False when it is time for a heartbeat."""
        return self._heartbeat.wait(self.event, cancel)
