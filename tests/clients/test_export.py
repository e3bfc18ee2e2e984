"""Transcripts and the Store, exported."""

from __future__ import annotations

import json

import pytest

from tests.clients.test_commands import CLAUDE


def test_a_transcript_is_exported(flue, base):
    file = base / "page.html"
    assert flue("export", "--transcript", "5f0c", "-o", str(file))[:2] == (0, "")
    assert "<title>Checkout timeout</title>" in file.read_text("utf-8")
    _, out, _ = flue("export", "--transcript", "5f0c", "--format", "json")
    document = json.loads(out)
    assert document["summary"]["id"] == CLAUDE
    assert [m["kind"] for m in document["messages"]] == [
        "text", "thinking", "tool_call", "tool_result", "text",
    ]  # fmt: skip
    _, out, _ = flue("export", "--transcript", "5f0c", "--format", "markdown")
    assert out.startswith("# Checkout timeout\n")
    assert '**tool call** `Bash`\n\n```\n{"command":"rg timeout src","limit":10}\n```\n' in out


@pytest.mark.parametrize(
    ("name", "chosen", "beginning"),
    [
        ("a.md", (), "# Checkout timeout"),
        ("a.JSON", (), '{"summary":'),
        ("a.html", (), "<!DOCTYPE html>"),
        ("a.txt", (), "<!DOCTYPE html>"),
        ("a.html", ("--format", "markdown"), "# Checkout timeout"),
    ],
)
def test_the_name_of_a_file_tells_its_format(flue, base, name, chosen, beginning):
    file = base / name
    assert flue("export", "--transcript", "5f0c", "-o", str(file), *chosen)[0] == 0
    assert file.read_text("utf-8").startswith(beginning)


def test_a_name_that_fits_no_format_of_the_store_is_refused(flue, base):
    code, _, err = flue("export", "-o", str(base / "a.json"))
    assert code == 2
    assert err.startswith("flue-grpc: --format json is not one of jsonl, markdown; ")
    assert not (base / "a.json").exists()


def test_an_exported_text_is_whole(flue, pi_session):
    pi_session("long", "y" * 40_000)
    _, out, _ = flue("export", "--transcript", "long", "--format", "json")
    assert [len(m["text"]) for m in json.loads(out)["messages"]] == [40_000]


HINT = "; the transcript of an agent is exported by --transcript ID"


def test_a_format_must_fit_what_is_exported(flue):
    code, _, err = flue("export", "--format", "html")
    assert (code, err) == (2, f"flue-grpc: --format html is not one of jsonl, markdown{HINT}\n")
    code, _, err = flue("export", "--transcript", "5f0c", "--format", "jsonl")
    assert (code, err) == (2, "flue-grpc: --format jsonl is not one of html, markdown, json\n")
    code, _, _ = flue("export", "--transcript", "x", "--session", "y")
    assert code == 2
