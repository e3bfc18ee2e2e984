"""Turns what a handler raises into a status, and hides what nobody foresaw."""

from __future__ import annotations

import logging
import traceback
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NoReturn

import grpc

from flue_grpc.errors import FlueError
from flue_grpc.rpc import status
from flue_grpc.rpc.calls import is_aborted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from flue_grpc.rpc.calls import Call

_LOGGER: Final = logging.getLogger("flue_grpc.errors")


class Errors:
    """Maps errors by the one table; an unexpected one leaves as an id (contract rule 6)."""

    def __init__(self, on_error: Callable[[FlueError], None]) -> None:
        """``on_error`` sees each domain error, for what has to follow from it."""
        self._on_error = on_error

    @contextmanager
    def around(self, call: Call) -> Iterator[None]:
        """Give every exception of the call a status."""
        try:
            yield
        except FlueError as error:
            self._on_error(error)
            rule = status.rule_of(error)
            if rule is None:
                _hide(call, error)
            status.abort(call.context, error, rule)
        except grpc.RpcError:
            raise
        except Exception as error:
            if is_aborted(call.context):
                raise
            _hide(call, error)


def _hide(call: Call, error: BaseException) -> NoReturn:
    """Log where the error came from, not what it says: that may quote content."""
    frames = traceback.extract_tb(error.__traceback__)
    where = " < ".join(f"{frame.name}:{frame.lineno}" for frame in reversed(frames))
    _LOGGER.error(
        "unexpected %s in %s: %s",
        type(error).__name__,
        call.method.path,
        where,
        extra={"call": call.id, "method": call.method.path, "error": type(error).__name__},
        exc_info=error if _LOGGER.isEnabledFor(logging.DEBUG) else None,
    )
    call.context.abort(
        grpc.StatusCode.INTERNAL, f"internal error; the server's log has it under {call.id}"
    )
