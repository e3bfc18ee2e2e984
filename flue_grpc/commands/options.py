"""Flags that commands share: every setting is one."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, Any

from flue_grpc.setting_values import Choice, flag, strings

if TYPE_CHECKING:
    from flue_grpc.config import Configuration
    from flue_grpc.settings import About


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Give a parser one flag per setting, and ``--config``."""
    from flue_grpc.settings import all_settings

    groups: dict[str, Any] = {}
    for name, about in all_settings().items():
        if about.group not in groups:
            groups[about.group] = parser.add_argument_group(about.group)
        _add(groups[about.group], name, about)
    parser.add_argument("--config", metavar="FILE", help="configuration file (TOML)")


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
        text = f"{about.help} (default: {about.default(os.environ)})"
        group.add_argument(option, metavar=words, help=text)
    elif about.parse is strings:
        group.add_argument(option, action="append", metavar="VALUE", help=about.help)
    else:
        group.add_argument(option, metavar="VALUE", help=about.help)
