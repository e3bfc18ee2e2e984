"""Tells those who count and trace calls when one begins and how it ended."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from flue_grpc.observability.calls import FinishedCall
from flue_grpc.rpc.calls import final_code

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from flue_grpc.observability.calls import CallObserver
    from flue_grpc.rpc.calls import Call


class Observation:
    """Put in only when somebody observes: it costs nothing otherwise."""

    def __init__(self, observers: Sequence[CallObserver]) -> None:
        self._observers = tuple(observers)

    @contextmanager
    def around(self, call: Call) -> Iterator[None]:
        """Report the call twice, however it ends."""
        name = call.method.path.removeprefix("/")
        for observer in self._observers:
            observer.started(name)
        started_ns = time.time_ns()
        left_early = True
        try:
            yield
            left_early = False
        finally:
            finished = FinishedCall(
                method=name,
                status=final_code(call, left_early=left_early),
                started_ns=started_ns,
                seconds=time.monotonic() - call.started,
                received_bytes=call.received_bytes,
                sent_bytes=call.sent_bytes,
                metadata=tuple(call.context.invocation_metadata()),
            )
            for observer in self._observers:
                observer.finished(finished)
