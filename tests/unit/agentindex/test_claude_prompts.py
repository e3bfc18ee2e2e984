from __future__ import annotations

import pytest

from tests.unit.agentindex.reading import Reading


def line(content=None, **members):
    return {"type": "user", "message": {"role": "user", "content": content}} | members


def block(kind, **members):
    return {"type": kind} | members


@pytest.mark.parametrize(
    ("contents", "prompt"),
    [
        ([[block("image")], "text later"], "[image]"),
        ([[block("image"), block("text", text="what is it?")]], "what is it?"),
        ([[block("document")]], "[document]"),
        ([" \n ", "  two\nlines "], "two\nlines"),
        (["\u00e4" * 5000], "\u00e4" * 2048),
        ([[block("tool_result", content="no prompt")]], ""),
    ],
)
def test_the_first_prompt(contents, prompt):
    reading = Reading("claude", *(line(content=content) for content in contents))
    assert reading.summary.first_prompt == prompt


def command(name, args="", kind="user"):
    text = f"<command-name>{name}</command-name>\n<command-args>{args}</command-args>"
    if kind == "system":
        return {"type": "system", "subtype": "local_command", "content": text}
    return line(content=text)


def test_a_session_of_slash_commands_is_named_by_the_first_with_arguments():
    echoes = [command("/clear"), command("/model", "opus"), command("/cost", kind="system")]
    assert Reading("claude", *echoes).summary.first_prompt == ""
    reading = Reading("claude", *echoes, command("/review", "12", "system"), command("/fix", "3"))
    assert reading.summary.first_prompt == reading.summary.title == "/review 12"
    reading.feed(b'{"type":"user","message":{"content":"a real prompt"}}\n')
    assert reading.summary.first_prompt == "a real prompt"


def test_the_directory_is_the_one_that_names_the_folder():
    lines = [
        line(content="x", cwd=cwd) for cwd in ("/elsewhere", "/home/dev/shop", "/home/dev.shop")
    ]
    assert Reading("claude", *lines).summary.cwd == "/home/dev/shop"
    assert Reading("claude", *lines[:1], lines[2]).summary.cwd == "/home/dev.shop"
    assert Reading("claude", lines[0], line(cwd="/other")).summary.cwd == "/elsewhere"


@pytest.mark.parametrize("cwd", ["", None, 5, "/a\ud800", "/a\0b", "/" + "a" * 5000])
def test_what_cannot_be_a_directory_gives_no_resume(cwd):
    summary = Reading("claude", line(content="x", cwd=cwd)).summary
    assert (summary.cwd, summary.resume) == ("", None)
