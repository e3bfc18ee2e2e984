"""Flags that commands share: every setting is one."""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from flue_grpc.setting_values import Choice, flag, strings

if TYPE_CHECKING:
    from collections.abc import Collection

    from flue_grpc.config import Configuration
    from flue_grpc.settings import About


_HIDDEN: Final = argparse.SUPPRESS
_OTHERS: Final = "Every flag of `flue-grpc serve` is taken, to mean the server that it starts."


def add_settings(parser: argparse.ArgumentParser, shown: Collection[str] | None = None) -> None:
    """Give a parser one flag per setting, and ``--config``.

    Its help shows the settings that ``shown`` names, None for all, and says that
    there are others.
    """
    from flue_grpc.settings import all_settings

    groups: dict[str, Any] = {}
    for name, about in all_settings().items():
        if about.group not in groups:
            groups[about.group] = parser.add_argument_group(about.group)
        is_shown = shown is None or name in shown
        _add(groups[about.group], name, about if is_shown else replace(about, help=_HIDDEN))
    parser.add_argument("--config", metavar="FILE", help="configuration file (TOML)")
    if shown is not None:
        parser.epilog = f"{parser.epilog or ''}\n{_OTHERS}\n"


def configuration_of(arguments: argparse.Namespace) -> Configuration:
    """Combine the flags given with the environment, the file and the defaults."""
    from flue_grpc.config import load

    return load(vars(arguments), os.environ)


def _add(group: argparse._ArgumentGroup, name: str, about: About) -> None:
    option = "--" + name.replace("_", "-")
    if about.parse is flag:
        group.add_argument(
            option, action=argparse.BooleanOptionalAction, default=None, help=about.help
        )
    elif isinstance(about.parse, Choice):
        words = "{" + ",".join(about.parse.allowed) + "}"
        default = f" (default: {about.default(os.environ)})"
        text = about.help if about.help == _HIDDEN else about.help + default
        group.add_argument(option, metavar=words, help=text)
    elif about.parse is strings:
        group.add_argument(option, action="append", metavar="VALUE", help=about.help)
    else:
        group.add_argument(option, metavar="VALUE", help=about.help)
