"""Ends for calls that set themselves none, and for readers that stall (contract rules 4, 5)."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from flue_grpc import limits
from flue_grpc.rpc.calls import Kind, end_call, time_remaining
from flue_grpc.rpc.guard import late, stalled

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flue_grpc.rpc.calls import Call
    from flue_grpc.rpc.guard import Guard, Patience


@dataclass(frozen=True, slots=True)
class Patiences:
    """How long things may take, in seconds, when the client does not say."""

    unary: float = limits.UNARY_DEADLINE_SECONDS
    idle_stream: float = limits.STREAM_IDLE_SECONDS
    stalled_reader: float = limits.STALL_SECONDS


class Deadlines:
    """Puts every call under the guard."""

    def __init__(self, guard: Guard, patiences: Patiences) -> None:
        self._guard = guard
        self._stalled = stalled(patiences.stalled_reader)
        self._late_unary = late(patiences.unary)
        self._late_stream = late(patiences.idle_stream)

    @contextmanager
    def around(self, call: Call) -> Iterator[None]:
        """Watch the call while it works and while its client takes responses."""
        watched = self._guard.watch(partial(end_call, call.context))
        call.watched = watched
        call.send_patience = self._stalled
        call.work_patience = self._work_patience(call)
        call.working()
        if call.kind is not Kind.UNARY:
            watched.only_while(call.is_allowed)
        forget = partial(self._guard.forget, watched)
        try:
            yield
        except BaseException:
            forget()
            raise
        # The last response and the status are still to be taken.
        call.sending()
        if not call.context.add_callback(forget):
            forget()

    def _work_patience(self, call: Call) -> Patience | None:
        if call.kind is Kind.LIVE or time_remaining(call.context) is not None:
            return None
        return self._late_unary if call.kind is Kind.UNARY else self._late_stream
