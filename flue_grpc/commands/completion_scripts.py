"""Completion scripts, made from the parser itself so that they cannot fall behind."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

NAME: Final = "flue-grpc"
_LISTS: Final = {"id": "ids", "transcript": "ids", "session": "store-ids"}


@dataclass(frozen=True, slots=True)
class Words:
    """What may follow a command: its verbs, its flags, and the values of some flags.

    ``lists`` names, by flag, what ``completion`` is asked for its values; "" is the
    flag of a word without one, here and in ``choices``.
    """

    help: str
    verbs: tuple[str, ...]
    flags: tuple[str, ...]
    choices: Mapping[str, tuple[str, ...]]
    lists: Mapping[str, str]


def words_of(parser: argparse.ArgumentParser) -> Mapping[str, Words]:
    """Collect the words of every command, by its name; verbs as ``command verb``."""
    return dict(_walk("", parser, ""))


def script(shell: str, words: Mapping[str, Words]) -> str:
    """Write the script for one shell."""
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](words)


def _walk(path: str, parser: argparse.ArgumentParser, text: str) -> Iterator[tuple[str, Words]]:
    children = _children(parser)
    yield path, _words(parser, tuple(children), text)
    for name, child in children.items():
        yield from _walk(f"{path} {name}".strip(), child, child.description or "")


def _children(parser: argparse.ArgumentParser) -> Mapping[str, argparse.ArgumentParser]:
    for action in parser._actions:  # noqa: SLF001 - argparse tells its actions in no other way
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - as above
            return dict(action.choices)
    return {}


def _words(parser: argparse.ArgumentParser, verbs: tuple[str, ...], text: str) -> Words:
    actions = [
        action
        for action in parser._actions  # noqa: SLF001 - argparse tells its actions in no other way
        if not isinstance(action, argparse._SubParsersAction)  # noqa: SLF001 - as above
        and action.help != argparse.SUPPRESS
    ]
    choices = {
        flag: tuple(map(str, action.choices))
        for action in actions
        if action.choices
        for flag in (action.option_strings or [""])
    }
    return Words(
        help=text.partition(".")[0],
        verbs=verbs,
        flags=tuple(flag for action in actions for flag in action.option_strings),
        choices=choices,
        lists={
            flag: _LISTS[action.dest]
            for action in actions
            if action.dest in _LISTS and action.type is None
            for flag in (action.option_strings or [""])
        },
    )


def _bash(words: Mapping[str, Words]) -> str:
    cases = []
    for path, known in words.items():
        cases.append(f"    {_quoted(path)})\n      words={_quoted(_after(known))}\n")
        cases += [
            f"      [[ $previous == {flag} ]] && words={_quoted(' '.join(values))}\n"
            for flag, values in known.choices.items()
            if flag
        ]
        cases += [_bash_list(flag, name) for flag, name in known.lists.items()]
        cases.append("      ;;\n")
    return _BASH.replace("@CASES@", "".join(cases).rstrip("\n")).replace(
        "@COMMANDS@", "|".join(_quoted(path) for path in words if path)
    )


def _bash_list(flag: str, name: str) -> str:
    listed = f"$({NAME} completion {name} | cut -f1)"
    if flag:
        return f'      [[ $previous == {flag} ]] && words="{listed}"\n'
    return f'      [[ $current != -* ]] && words+=" {listed}"\n'


def _after(known: Words) -> str:
    return " ".join((*known.verbs, *known.choices.get("", ()), *known.flags))


def _quoted(text: str) -> str:
    return f"'{text}'"


def _zsh(words: Mapping[str, Words]) -> str:
    return "autoload -Uz bashcompinit compinit\ncompinit -u\nbashcompinit\n" + _bash(words)


def _fish(words: Mapping[str, Words]) -> str:
    lines = [f"complete -c {NAME} -f\n"]
    for path, known in words.items():
        condition = _fish_condition(path, words)
        lines += [
            f"{condition} -a {verb} {_fish_help(words, path, verb)}\n" for verb in known.verbs
        ]
        lines += [f"{condition} -a {_quoted(value)}\n" for value in known.choices.get("", ())]
        lines += [_fish_flag(condition, flag, known) for flag in known.flags]
        if "" in known.lists:
            lines.append(f"{condition} -a '({NAME} completion {known.lists['']})'\n")
    return "".join(lines)


def _fish_condition(path: str, words: Mapping[str, Words]) -> str:
    verbs = " ".join(words[path].verbs)
    if not path:
        return f"complete -c {NAME} -n __fish_use_subcommand"
    seen = " && ".join(f"__fish_seen_subcommand_from {part}" for part in path.split())
    if verbs:
        seen += f" && not __fish_seen_subcommand_from {verbs}"
    return f"complete -c {NAME} -n {_quoted(seen)}"


def _fish_flag(condition: str, flag: str, known: Words) -> str:
    option = f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}"
    values = " ".join(known.choices.get(flag, ()))
    if flag in known.lists:
        values = f"({NAME} completion {known.lists[flag]})"
    more = f" -x -a {_quoted(values)}" if values else ""
    return f"{condition} {option}{more}\n"


def _fish_help(words: Mapping[str, Words], path: str, verb: str) -> str:
    text = words[f"{path} {verb}".strip()].help.replace("'", "")
    return f"-d '{text}'"


_BASH: Final = """\
_flue_grpc() {
  local current previous path='' words='' word
  current=${COMP_WORDS[COMP_CWORD]}
  previous=${COMP_WORDS[COMP_CWORD-1]}
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "${path:+$path }$word" in
      @COMMANDS@) path="${path:+$path }$word" ;;
    esac
  done
  case $path in
@CASES@
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _flue_grpc flue-grpc
"""
