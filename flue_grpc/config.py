"""Where settings come from: flags over environment over a TOML file over defaults."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from flue_grpc.errors import ConfigError
from flue_grpc.settings import Settings, all_settings, default_socket, xdg

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from flue_grpc.settings import About, Environment

PREFIX: Final = "FLUE_GRPC_"
DEFAULT: Final = "default"
_OF_A_SERVICE: Final = re.compile(
    r".*_(SERVICE_HOST|SERVICE_PORT(_.+)?|PORT(_\d+_[A-Z]+(_(PROTO|PORT|ADDR))?)?)"
)


@dataclass(frozen=True, slots=True)
class Configuration:
    """The settings in force, and where each value came from.

    An origin is ``default``, ``--flag``, the name of a variable or the path of the file.
    """

    settings: Settings
    origins: Mapping[str, str]

    def is_explicit(self, name: str) -> bool:
        """Say whether somebody chose the value of a setting."""
        return self.origins[name] != DEFAULT


@dataclass(frozen=True, slots=True)
class _Source:
    """Values of one origin, by setting; ``label`` names the place of one of them."""

    values: Mapping[str, object]
    label: Mapping[str, str]


def load(flags: Mapping[str, object], environment: Environment) -> Configuration:
    """Combine all sources; ``flags`` holds those given, and ``config`` for the file.

    Raises ConfigError that names the flag, variable or file and key at fault.
    """
    abouts = all_settings()
    sources = (
        _from_flags(flags, abouts),
        _from_environment(environment, abouts),
        _from_file(flags, environment, abouts),
    )
    return _combine(sources, environment)


def combine(given: Mapping[str, object], environment: Environment = os.environ) -> Configuration:
    """Make settings of given values and of defaults alone, for a program that embeds us.

    ``environment`` decides where the defaults lie. Raises ConfigError.
    """
    for name in given:
        if name not in all_settings():
            raise ConfigError(f"unknown setting {name!r}{_suggestion(name, all_settings())}")
    source = _Source(given, dict.fromkeys(given, "given"))
    return _combine((source,), environment)


def config_path(flags: Mapping[str, object], environment: Environment) -> tuple[Path, bool]:
    """Find the configuration file, and say whether somebody asked for this one."""
    asked = flags.get("config") or environment.get(f"{PREFIX}CONFIG")
    if asked:
        return Path(str(asked)).expanduser().absolute(), True
    return xdg(environment, "XDG_CONFIG_HOME", ".config") / "flue" / "grpc.toml", False


def unknown_variables(environment: Environment) -> Iterator[str]:
    """Say of each variable of ours that it names no setting, and which may be meant.

    What Kubernetes makes for services whose names begin like ours is no mistake.
    """
    names = (*all_settings(), "config")
    known = {PREFIX + name.upper() for name in names}
    ours = {name for name in environment if name.startswith(PREFIX)}
    for variable in sorted(ours - known):
        if _OF_A_SERVICE.fullmatch(variable):
            continue
        nearest = _nearest(variable.removeprefix(PREFIX).lower(), names)
        advice = f"; did you mean {PREFIX}{nearest.upper()}?" if nearest else ""
        yield f"{variable} names no setting{advice}"


def _combine(sources: tuple[_Source, ...], environment: Environment) -> Configuration:
    abouts = all_settings()
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for name, about in abouts.items():
        values[name], origins[name] = _resolve(name, about, sources, environment)
    if not values["listen"]:
        socket = default_socket(environment, values["data_dir"])
        values["listen"] = (f"unix:{socket}",)
    return Configuration(Settings(**values), origins)


def _resolve(
    name: str, about: About, sources: tuple[_Source, ...], environment: Environment
) -> tuple[Any, str]:
    for source in sources:
        if name in source.values:
            origin = source.label[name]
            try:
                return about.parse(source.values[name]), origin
            except ValueError as error:
                raise ConfigError(f"{origin}: {name} must be {error}") from error
    return about.default(environment), DEFAULT


def _from_flags(flags: Mapping[str, object], abouts: Mapping[str, About]) -> _Source:
    given = {name: value for name, value in flags.items() if name in abouts and value is not None}
    return _Source(given, {name: "--" + name.replace("_", "-") for name in given})


def _from_environment(environment: Environment, abouts: Mapping[str, About]) -> _Source:
    names = {name: PREFIX + name.upper() for name in abouts}
    given = {name: variable for name, variable in names.items() if variable in environment}
    return _Source({name: environment[variable] for name, variable in given.items()}, given)


def _from_file(
    flags: Mapping[str, object], environment: Environment, abouts: Mapping[str, About]
) -> _Source:
    path, is_asked_for = config_path(flags, environment)
    values = _read(path, is_asked_for=is_asked_for)
    for key in values:
        if key not in abouts:
            raise ConfigError(f"{path}: unknown key {key!r}{_suggestion(key, abouts)}")
    return _Source(values, dict.fromkeys(values, str(path)))


def _read(path: Path, *, is_asked_for: bool) -> dict[str, object]:
    import tomllib  # noqa: PLC0415  (`--help` does without it)

    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        if is_asked_for:
            raise ConfigError(f"{path}: no such file") from None
        return {}
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is not UTF-8 text"
        raise ConfigError(f"{path}: {reason}") from error
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: {error}") from error


def _suggestion(key: str, names: Iterable[str]) -> str:
    nearest = _nearest(key.replace("-", "_"), names)
    return f"; did you mean {nearest!r}?" if nearest else ""


def _nearest(name: str, names: Iterable[str]) -> str:
    from difflib import get_close_matches  # noqa: PLC0415  (only for a mistake)

    return next(iter(get_close_matches(name, tuple(names), n=1)), "")
