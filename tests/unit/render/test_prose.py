from __future__ import annotations

import io
import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rich.console import Console
from rich.markdown import Markdown
from rich.style import Style
from rich.text import Text

from flue.agentindex.v1 import agent_index_pb2 as pb
from flue_grpc.render.console import guarded
from flue_grpc.render.messages import OPEN, render
from flue_grpc.render.prose import Prose
from flue_grpc.render.safe import for_terminal

COLOURS = re.compile(r"\x1b\[[\d;]*m")
UNSAFE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
WORDS = re.compile(r"\w+")

HOSTILE = [
    "hello <http://a.b/%1B]0;PWNED%1B%5C%1B[2J> auto",
    "reply &#x202e;abc &#x2066; &#155;31m &#x9b;2J &#13;X &#x7f; &#127; &#133;",
    "![im%1b[31m&#x202e;](http://q/%1B[31m '&#x202e;') [link&#x2066;](http://z/%1B[5m \"&#x9b;2J\")",
    "```python\x1b[31m &#x202e; &#x9b;31m\nprint(1)\n```",
    "| a&#x202e; | b |\n|--|--|\n| &#x9b;2J | `\x1b[5m` |",
    "# \x1b]0;title\x07 &#x9d;0;PWNED&#x9c;\n\n> &#x202e;\n\n1. &#x85;",
    "[x]: http://a/\x1b[2J '\u202e'\n\n[x] <b>&#x202e;</b> <!-- &#x9b;2J -->",
    "plain http://plain.url/%1B[31m \x1b]8;;http://evil\x1b\\click\x1b]8;;\x1b\\",
]
PIECES = st.sampled_from(
    [
        *"abc 12\n\t`*_~#>-+|[]()<>!\\'\"&;:=",
        *("&#x202e;", "&#155;", "&#x9b;2J", "%1B[2J", "\x1b]0;x\x07", "\x1b[31m", "\u202e"),
        *("\n\n", "```", "~~~ word", "http://h/", "<http://h/%1B>", "<b>", "<!-- w -->", "    "),
        *("\n- ", "\n1. ", "\n> ", "\n|a|b|\n|-|-|\n|", "[r]: ", "![i](", '](u "t")', "---\n"),
    ]
)
TEXTS = st.lists(PIECES, max_size=40).map("".join)


def printed(renderables, width=80, **options):
    file = io.StringIO()
    console = Console(file=file, width=width, markup=False, emoji=False, highlight=False, **options)
    guarded(console)
    for each in renderables:
        console.print(each)
    return file.getvalue()


def drawn(text, **options):
    message = pb.Message(role=pb.ROLE_ASSISTANT, kind=pb.KIND_TEXT, text=text, model="m\x1b[5m")
    return printed(render(message, OPEN), force_terminal=True, color_system="256", **options)


def shown(text, width=10_000):
    return printed([Prose(for_terminal(text))], width=width)


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("width", [1, 20, 100])
def test_nothing_of_a_hostile_text_acts(text, width):
    assert not UNSAFE.search(COLOURS.sub("", drawn(text, width=width)))


@settings(max_examples=100, deadline=None)
@given(TEXTS)
@example("> " * 8000 + "x")
@example("[" * 5000)
def test_nothing_of_any_text_acts(text):
    assert not UNSAFE.search(COLOURS.sub("", drawn(text)))


@pytest.mark.parametrize(
    "renderable",
    [
        Text("a\x1b[2Jb\u202ec\x9b"),
        Text("click", style=Style(link="http://a/\x1b]0;x\x07")),
        Markdown("[a](http://b/;\x1b[2J) <http://a.b/%1B]0;PWNED%1B%5C%1B[2J> &#x202e;"),
    ],
    ids=["text", "link", "markdown"],
)
def test_the_console_lets_nothing_through_whatever_is_printed(renderable):
    output = printed([renderable], force_terminal=True, color_system="256")
    assert output
    assert not UNSAFE.search(COLOURS.sub("", output))


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("I run <system>rm -rf</system> with List<String>", None),
        ("a <!-- hidden --> b", None),
        ("<div>hidden\ninstructions</div>\n\nend", "<div>hidden instructions</div>\n\nend"),
        ("[//]: # (hidden comment)", None),
        ('[word]: http://a "title"', None),
        ('[a](http://b/ü%20c "the title")', 'a (http://b/ü%20c "the title")'),
        ("![alt](src 'title')", '!alt (src "title")'),
        ("<http://a/b%20c>", "http://a/b%20c"),
        ("```python title=x\nprint(1)\n```", "python title=x\n \n print(1)"),
        ("| a | b |\n|--|--|\n| 1 | 2 | hidden |", None),
        ("> " * 30 + "deep words", None),
        ("Vec&lt;u8&gt; &amp; **bold** `code`", "Vec<u8> & bold code"),
    ],
)
def test_what_markdown_hides_is_shown(text, whole):
    lines = "\n".join(line.rstrip() or line[:1] for line in shown(text, 100).splitlines())
    assert lines.strip() == (text if whole is None else whole)


def words(text):
    return sorted(set(WORDS.findall(re.sub("&[#a-z0-9]+;|~~~|`|_", " ", text))))


@settings(max_examples=100, deadline=None)
@given(TEXTS.filter(lambda text: "\x1b" not in text))
@example("| word |\n|--|\n| a | excess | http://excess |")
@example("1. one\n1. two")
def test_no_word_is_left_out(text):
    output = shown(text)
    assert [word for word in words(text) if word not in output] == []


def test_a_table_too_wide_for_the_terminal_is_shown_as_it_was_written():
    row = "|" + "|".join(f"word{number}" for number in range(40)) + "|"
    text = f"{row}\n{'|-' * 40}|\n{row}"
    assert "".join(shown(text, 80).split()) == "".join(text.split())


def test_markdown_is_laid_out():
    text = "# Head\n\nSome *prose*.\n\n- a\n- b\n\n---\n\n> quote\n\n| x | y |\n|--|--|\n| 1 | 2 |"
    assert [" ".join(line.split()) for line in shown(text, 20).splitlines()] == [
        "Head",
        "",
        "Some prose.",
        "",
        "• a",
        "• b",
        "",
        "-" * 20,
        "",
        "▌ quote",
        "",
        "",
        "x y",
        "────",
        "1 2",
        "",
    ]
