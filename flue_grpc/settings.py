"""Every setting of the service: its type, its default and what it means.

The same name is a flag (``--page-max``), a variable (``FLUE_GRPC_PAGE_MAX``) and
a key of the configuration file (``page_max``); ``config.py`` reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final

from flue_grpc import limits
from flue_grpc.errors import ConfigError
from flue_grpc.setting_values import (
    choice,
    count,
    count_up_to,
    flag,
    one_line,
    optional_path,
    path,
    seconds,
    size,
    size_up_to,
    strings,
)

Environment = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class About:
    """What is known of a setting besides its name and type.

    ``parse`` turns a string, or a value of a TOML file, into the setting's type
    and raises ValueError with what it wants. ``default`` may depend on the
    environment. ``group`` is the heading in ``--help``.
    """

    parse: Callable[[object], Any]
    default: Callable[[Environment], Any]
    group: str
    help: str


def _about(
    group: str, parse: Callable[[object], Any], default: object, text: str
) -> dict[str, About]:
    value = default if callable(default) else lambda _: default
    return {"about": About(parse, value, group, text)}


def xdg(environment: Environment, variable: str, fallback: str) -> Path:
    """Find a base directory: relative ones are ignored, as its specification says."""
    value = environment.get(variable, "")
    if value.startswith("/"):
        return Path(value)
    return home_of(environment) / fallback


def home_of(environment: Environment) -> Path:
    """Find the user's home; raises ConfigError when there is none."""
    try:
        return Path(environment["HOME"]) if environment.get("HOME") else Path.home()
    except RuntimeError as error:
        raise ConfigError("there is no home directory; set HOME or use --home") from error


def _data_dir(environment: Environment) -> Path:
    return xdg(environment, "XDG_DATA_HOME", ".local/share") / "flue-grpc"


def default_socket(environment: Environment, data_dir: Path) -> Path:
    """Place the socket (contract "Transport and trust")."""
    runtime = environment.get("XDG_RUNTIME_DIR", "")
    if runtime.startswith("/"):
        return Path(runtime) / "flue-grpc" / "flue.sock"
    return data_dir / "flue.sock"


_WHERE: Final = "where things lie"
_TRUST: Final = "who may connect over TCP"
_WATCH: Final = "what operators watch"
_HOW: Final = "how it runs"
_BUDGETS: Final = "budgets and patience"
_LIMITS: Final = "limits of the transcript index"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings, each with a value."""

    listen: tuple[str, ...] = field(
        metadata=_about(
            _WHERE, strings, (), "unix:PATH or HOST:PORT, several allowed (default: a Unix socket)"
        )
    )
    home: Path = field(metadata=_about(_WHERE, path, home_of, "home whose transcripts are indexed"))
    data_dir: Path = field(metadata=_about(_WHERE, path, _data_dir, "directory of the Store"))
    token_file: Path | None = field(
        metadata=_about(
            _TRUST, optional_path, None, "bearer tokens (default: the file `tokens` in data_dir)"
        )
    )
    tls_cert: Path | None = field(
        metadata=_about(_TRUST, optional_path, None, "certificate chain of the server, PEM")
    )
    tls_key: Path | None = field(metadata=_about(_TRUST, optional_path, None, "its key, PEM"))
    tls_client_ca: Path | None = field(
        metadata=_about(
            _TRUST, optional_path, None, "authorities of clients, PEM: certificates are demanded"
        )
    )
    tls_clients: tuple[str, ...] = field(
        metadata=_about(
            _TRUST, strings, (), "NAME=full or NAME=read: clients by subject alternative name"
        )
    )
    insecure_plaintext_tcp: bool = field(
        metadata=_about(
            _TRUST, flag, default=False, text="serve TCP without credentials, behind a sidecar only"
        )
    )
    metrics_listen: str = field(
        metadata=_about(
            _WATCH, one_line, "", "HOST:PORT of the Prometheus endpoint, off when empty"
        )
    )
    otel: bool = field(
        metadata=_about(
            _WATCH, flag, default=False, text="send traces and metrics as OTEL_* variables say"
        )
    )
    durability: str = field(
        metadata=_about(
            _HOW, choice("full", "normal"), "full", "full survives a power cut, normal is faster"
        )
    )
    ranked_index: bool = field(
        metadata=_about(_HOW, flag, default=True, text="keep the index of RANKED search")
    )
    channelz: bool = field(metadata=_about(_HOW, flag, default=False, text="serve channelz"))
    log_level: str = field(
        metadata=_about(
            _HOW, choice("debug", "info", "warning", "error"), "info", "least level that is logged"
        )
    )
    log_format: str = field(
        metadata=_about(_HOW, choice("text", "json"), "text", "form of log lines")
    )
    access_log: str = field(
        metadata=_about(
            _HOW, choice("auto", "on", "off"), "auto", "log each call; auto: not on a terminal"
        )
    )
    drain_seconds: float = field(
        metadata=_about(_HOW, seconds, limits.DRAIN_SECONDS, "time for running calls after SIGTERM")
    )
    live_streams: int = field(
        metadata=_about(_BUDGETS, count, limits.LIVE_STREAMS, "follows and watches at once")
    )
    finite_streams: int = field(
        metadata=_about(_BUDGETS, count, limits.FINITE_STREAMS, "lists at once")
    )
    unary_calls: int = field(
        metadata=_about(_BUDGETS, count, limits.UNARY_CALLS, "unary calls at once")
    )
    stall_seconds: float = field(
        metadata=_about(
            _BUDGETS, seconds, limits.STALL_SECONDS, "a reader may take nothing for this long"
        )
    )
    unary_deadline_seconds: float = field(
        metadata=_about(
            _BUDGETS, seconds, limits.UNARY_DEADLINE_SECONDS, "for unary calls that set none"
        )
    )
    stream_idle_seconds: float = field(
        metadata=_about(
            _BUDGETS, seconds, limits.STREAM_IDLE_SECONDS, "work of a list without a response"
        )
    )
    page_default: int = field(
        metadata=_about(
            _LIMITS, count, limits.PAGE_DEFAULT, "messages of a page when none are asked for"
        )
    )
    page_max: int = field(
        metadata=_about(_LIMITS, count, limits.PAGE_MAX, "most messages of a page")
    )
    page_file_bytes: int = field(
        metadata=_about(
            _LIMITS, size, limits.PAGE_FILE_BYTES, "part of a transcript that a page reads"
        )
    )
    page_message_text_bytes: int = field(
        metadata=_about(
            _LIMITS, size, limits.PAGE_MESSAGE_TEXT_BYTES, "text of a message on a page"
        )
    )
    search_default: int = field(
        metadata=_about(
            _LIMITS, count, limits.SEARCH_DEFAULT, "hits of a search when none are asked for"
        )
    )
    search_max: int = field(
        metadata=_about(_LIMITS, count, limits.SEARCH_MAX, "most hits of a search")
    )
    search_bytes: int = field(
        metadata=_about(
            _LIMITS, size, limits.SEARCH_BYTES, "transcripts read by a search that does not say"
        )
    )
    snippet_code_points: int = field(
        metadata=_about(
            _LIMITS,
            count_up_to(limits.SNIPPET_CODE_POINTS_MAX),
            limits.SNIPPET_CODE_POINTS,
            "context on each side of a match",
        )
    )
    first_prompt_bytes: int = field(
        metadata=_about(
            _LIMITS,
            size_up_to(limits.FIRST_PROMPT_BYTES),
            limits.FIRST_PROMPT_BYTES,
            "first prompt in a summary",
        )
    )
    sweep_interval_seconds: float = field(
        metadata=_about(
            _LIMITS, seconds, limits.SWEEP_INTERVAL_SECONDS, "least time between two sweeps"
        )
    )

    @property
    def token_path(self) -> Path:
        """The file of bearer tokens."""
        return self.token_file or self.data_dir / "tokens"


def all_settings() -> Mapping[str, About]:
    """Every setting by its name, in the order in which they are shown."""
    return {each.name: each.metadata["about"] for each in fields(Settings)}
