"""One log record per call: who, what, how long and how it ended, never content."""

from __future__ import annotations

import logging
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from flue_grpc.rpc.calls import Kind, final_code

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flue_grpc.rpc.calls import Call

LOGGER: Final = logging.getLogger("flue_grpc.access")


class AccessLog:
    """Logs every call when it has ended; probes of health only for debugging."""

    @contextmanager
    def around(self, call: Call) -> Iterator[None]:
        """Log the call however it ends."""
        left_early = True
        try:
            yield
            left_early = False
        finally:
            level = logging.DEBUG if call.method.kind is Kind.HEALTH else logging.INFO
            if LOGGER.isEnabledFor(level):
                _log(level, call, final_code(call, left_early=left_early))


def _log(level: int, call: Call, code: str) -> None:
    milliseconds = round((time.monotonic() - call.started) * 1000, 3)
    LOGGER.log(
        level,
        "%s %s %.3f ms",
        call.method.path,
        code,
        milliseconds,
        extra={
            "call": call.id,
            "method": call.method.path,
            "code": code,
            "duration_ms": milliseconds,
            "peer": call.context.peer(),
            "principal": call.principal,
            "trace": call.trace_id,
            "received_bytes": call.received_bytes,
            "sent_bytes": call.sent_bytes,
            "responses": call.sent_messages,
        },
    )
