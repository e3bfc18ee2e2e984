"""``flue-grpc token``: the bearer tokens of TCP addresses."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from flue_grpc.commands.options import add_settings, configuration_of
from flue_grpc.commands.output import NOTHING, OK, complain

if TYPE_CHECKING:
    from pathlib import Path

_EXAMPLES: Final = """\
examples:
  flue-grpc token new laptop --role read
  flue-grpc token list
  flue-grpc token remove laptop
"""


def add_parsers(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command and what it can do."""
    parser = subparsers.add_parser(
        "token",
        help="list, make and remove the bearer tokens of TCP addresses",
        description="A running server takes changes up at the next call.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    action = actions.add_parser("list", help="print the role and the name of each token")
    add_settings(action, ("data_dir", "token_file"))
    action.set_defaults(run=_list)
    action = actions.add_parser("new", help="make a token and print it")
    action.add_argument("name", metavar="NAME", help="what the log calls its bearer")
    action.add_argument("--role", choices=("full", "read"), default="full", help="what it may do")
    add_settings(action, ("data_dir", "token_file"))
    action.set_defaults(run=_new)
    action = actions.add_parser("remove", help="refuse a token from now on")
    action.add_argument("name", metavar="NAME", help="its name")
    add_settings(action, ("data_dir", "token_file"))
    action.set_defaults(run=_remove)


def _list(arguments: argparse.Namespace) -> int:
    from flue_grpc.security.token_edit import list_tokens

    path = _path(arguments)
    principals = list_tokens(path) if path.exists() else ()
    for principal in principals:
        print(f"{principal.role}\t{principal.name}")
    if not principals:
        complain(f"there is no token in {path}; `flue-grpc token new NAME` makes one")
        return NOTHING
    return OK


def _new(arguments: argparse.Namespace) -> int:
    from flue_grpc.security.roles import Role
    from flue_grpc.security.token_edit import add_token

    print(add_token(_path(arguments), Role(arguments.role), arguments.name))
    return 0


def _remove(arguments: argparse.Namespace) -> int:
    from flue_grpc.security.token_edit import remove_token

    remove_token(_path(arguments), arguments.name)
    return 0


def _path(arguments: argparse.Namespace) -> Path:
    return configuration_of(arguments).settings.token_path
