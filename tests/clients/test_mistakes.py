"""Flags that contradict each other, numbers and keys that cannot be, and what is not there."""

from __future__ import annotations

import pytest

from flue_grpc.cli import main
from tests.clients.test_commands import rows


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["sessions", "--json", "--plain"], "--plain: not allowed with argument --json"),
        (["usage", "--csv", "--json"], "--json: not allowed with argument --csv"),
        (["show", "x", "--raw", "--json"], "--json: not allowed with argument --raw"),
        (["show", "x", "--last", "1", "--at", "0"], "--at: not allowed with argument --last"),
        (["show", "x", "--last", "0"], "--last: at least 1 is needed"),
        (["show", "x", "--at", "-1"], "--at: at least 0 is needed"),
        (["show", "x", "--limit", "-1"], "--limit: at least 0 is needed"),
        (
            ["usage", "--by", "day,mode"],
            "--by: 'mode' is none of day, model, tool, cwd, session, none",
        ),
    ],
)
def test_a_mistake_in_flags_is_told(capsys, arguments, words):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert capsys.readouterr().err.endswith(f": error: argument {words}\n")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["show", "x", "--last", "1", "--limit", "1"], "--last and --limit contradict each other"),
        (["usage", "--by", "none,day"], "--by none and another key contradict each other"),
    ],
)
def test_a_contradiction_is_told(flue, arguments, words):
    assert flue(*arguments) == (2, "", f"flue-grpc: {words}\n")


def test_keys_of_usage_may_have_commas_between_them(flue):
    apart = flue("usage", "--by", "day", "--by", "tool")
    assert flue("usage", "--by", "day,tool") == apart
    assert rows(apart[1])[0][:2] == ["2026-01-02", "pi"]


def test_an_offset_behind_the_end_is_told(flue):
    code, out, err = flue("show", "5f0c", "--at", "999999")
    assert (code, out) == (1, "")
    assert err == "flue-grpc: there is no message at offset 999999 or after it\n"


def test_a_ranked_query_without_a_word_is_told(flue):
    code, out, err = flue("search", "--ranked", "***")
    assert (code, out) == (1, "")
    assert err == "flue-grpc: a ranked query needs a word; without --ranked any text is found\n"
