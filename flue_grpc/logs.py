"""Log lines on stderr, as text or as JSON; what they say is decided where they are made."""

from __future__ import annotations

import json
import logging
import traceback
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from types import TracebackType
    from typing import TextIO

    from flue_grpc.settings import Settings

    _ExcInfo = (
        tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]
    )

ACCESS: Final = "flue_grpc.access"
_BUILT_IN: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}


class _Formatter(logging.Formatter):
    """Names an exception and where it came from, and quotes it only when debugging.

    Its text may hold what no log line may: content, paths, tokens.
    """

    def __init__(self, level: str) -> None:
        super().__init__()
        self._quotes = level == "debug"

    def formatException(self, ei: _ExcInfo) -> str:  # noqa: N802  (logging's name)
        """Write the traceback of an exception."""
        kind, error, trace = ei
        if self._quotes or kind is None or error is None:
            return super().formatException(ei)
        frames = "".join(traceback.format_tb(trace))
        cause = f" from {type(error.__cause__).__qualname__}" if error.__cause__ else ""
        return f"Traceback (most recent call last):\n{frames}{kind.__qualname__}{cause}"


class TextFormatter(_Formatter):
    """``TIME LEVEL message key=value …``; a value with spaces or quotes is a JSON string."""

    def format(self, record: logging.LogRecord) -> str:
        """Write one line, and the traceback after it where there is one."""
        fields = " ".join(f"{name}={_plain(value)}" for name, value in _fields(record).items())
        line = f"{_time(record)} {record.levelname:<7} {_one_line(record)} {fields}".rstrip()
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


class JsonFormatter(_Formatter):
    """One JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        """Write one line."""
        values: dict[str, object] = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_fields(record),
        }
        if record.exc_info:
            values["traceback"] = self.formatException(record.exc_info)
        return json.dumps(values, ensure_ascii=False, default=str)


def start_logging(settings: Settings, stream: TextIO) -> None:
    """Send the records of the whole process to ``stream``, as the settings say."""
    handler = logging.StreamHandler(stream)
    formatter = JsonFormatter if settings.log_format == "json" else TextFormatter
    handler.setFormatter(formatter(settings.log_level))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(settings.log_level.upper())
    is_wanted = settings.access_log == "on" or (
        settings.access_log == "auto" and not stream.isatty()
    )
    if not is_wanted:
        logging.getLogger(ACCESS).setLevel(logging.WARNING)
    # grpcio would write the text of exceptions, which may quote content.
    logging.getLogger("grpc").setLevel(logging.CRITICAL)
    logging.getLogger("watchfiles").setLevel(logging.WARNING)
    logging.captureWarnings(capture=True)


def _fields(record: logging.LogRecord) -> dict[str, object]:
    return {name: value for name, value in vars(record).items() if name not in _BUILT_IN}


def _time(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _one_line(record: logging.LogRecord) -> str:
    return record.getMessage().replace("\n", "\\n")


def _plain(value: object) -> str:
    text = str(value)
    is_plain = bool(text) and text.isprintable() and not any(c in text for c in ' "=')
    return text if is_plain else json.dumps(text)
