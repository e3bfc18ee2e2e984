"""The scopes and the texts of ``memory``."""

from __future__ import annotations

import pytest


def scopes(out):
    return [line.split("\t")[3] for line in out.splitlines()]


@pytest.mark.parametrize("scope", [".", "../{name}", "{here}/", "{here}/../{name}"])
def test_a_directory_is_one_scope_however_it_is_written(flue, base, monkeypatch, scope):
    monkeypatch.chdir(base)
    scope = scope.format(here=base, name=base.name)
    assert flue("memory", "add", "note", "--scope", scope)[:2] == (0, "1\n")
    assert scopes(flue("memory", "list")[1]) == [str(base)]
    assert scopes(flue("memory", "search", "note", "--scope", scope)[1]) == [str(base)]
    assert flue("memory", "size", scope)[1] == "4\n"


@pytest.mark.parametrize("scope", ["_global", "team"])
def test_other_words_are_scopes_as_they_are(flue, scope):
    assert flue("memory", "add", "note", "--scope", scope)[0] == 0
    assert scopes(flue("memory", "list", "--scope", scope)[1]) == [scope]


@pytest.mark.parametrize("text", ["", " \n"])
def test_an_empty_text_is_refused(flue, text):
    refusal = (
        2, "",
        "flue-grpc: there is no text to remember; `flue-grpc memory delete ID` removes an entry\n",
    )  # fmt: skip
    assert flue("memory", "add", text) == refusal
    flue("memory", "add", "note", "--scope", "x")
    assert flue("memory", "edit", "1", text) == refusal
    assert flue("memory", "list", "--scope", "x")[1].split("\t")[4] == "note\n"
