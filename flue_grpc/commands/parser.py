"""The parser of the program and of each command."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from _typeshed import SupportsWrite

_TEXTS: Final = ("query", "content")


class Parser(argparse.ArgumentParser):
    """Refuses what it does not know with the usage of its own command.

    Without it the program refuses what a command has not taken, and shows the usage
    of all of them.
    """

    def parse_known_args(  # type: ignore[override]  # argparse's overloads say no more
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse as argparse does; whatever is left over is a mistake."""
        parsed, rest = super().parse_known_args(args, namespace)
        if rest:
            self.error(f"unrecognized arguments: {' '.join(rest)}{self._advice(rest)}")
        return parsed, rest

    def print_help(self, file: SupportsWrite[str] | None = None) -> None:
        """Print the help; raises OSError where argparse says nothing of lost output."""
        if file is not None:
            file.write(self.format_help())
        else:
            print(self.format_help(), end="", flush=True)

    def _advice(self, rest: Sequence[str]) -> str:
        takes_text = any(action.dest in _TEXTS for action in self._actions)
        if takes_text and not any(word.startswith("-") for word in rest):
            return "; quote a text of several words"
        return ""
