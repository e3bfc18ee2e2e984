from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from flue.agentindex.v1 import agent_index_pb2 as pb
from flue_grpc.render import messages
from flue_grpc.render.documents import to_json, to_markdown
from flue_grpc.render.hits import render_hit
from flue_grpc.render.html import to_html
from flue_grpc.render.messages import one_line

SUMMARY = pb.Summary(tool="pi", id="x", title="T", message_count=1)


def call(text, **fields):
    return pb.Message(role=pb.ROLE_ASSISTANT, kind=pb.KIND_TOOL_CALL, text=text, **fields)


def test_no_text_closes_its_fence():
    document = "".join(to_markdown(SUMMARY, [call("a\n````\nb", tool_name="we`ird")]))
    assert "**tool call** `` we`ird ``\n\n`````\na\n````\nb\n`````\n" in document


def test_a_cut_text_says_so():
    message = call("a", truncated=True, text_size=70_000)
    assert "\n*cut: 70000 bytes in all*\n" in "".join(to_markdown(SUMMARY, [message]))
    assert '<p class="note">cut: 70 kB in all</p>' in "".join(to_html(SUMMARY, [message]))


def test_json_is_one_document_with_a_line_for_each_message():
    text = "".join(to_json(SUMMARY, [call("1"), call("2")]))
    assert len(text.splitlines()) == 4
    document = json.loads(text)
    assert [message["text"] for message in document["messages"]] == ["1", "2"]
    assert json.loads("".join(to_json(SUMMARY, [])))["messages"] == []


def test_a_folded_text_shows_its_beginning():
    document = "".join(to_html(SUMMARY, [call("x \n y" + "z" * 500)]))
    assert f"<code>x y{'z' * 117}…</code>" in document
    assert "<code>short</code>" in "".join(to_html(SUMMARY, [call("short")]))


def test_the_facts_of_a_session_act_on_no_terminal():
    evil = "a\x1b]0;x\x07\x9b5m\u202eb"
    document = "".join(to_markdown(pb.Summary(tool=evil, id=evil), []))
    assert document.startswith("# a\ufffdb\n\n- a\ufffdb session `a\ufffdb`\n")


NEWER = {"role": 9, "kind": 9}


@pytest.mark.parametrize(
    ("render", "shown"),
    [
        (to_markdown, "**unspecified**\n\n```\nhello\n```"),
        (to_html, 'class="unspecified unspecified"'),
        (to_json, '"text":"hello"'),
    ],
)
def test_what_only_a_newer_server_knows_counts_as_unspecified(render, shown):
    assert shown in "".join(render(SUMMARY, [pb.Message(text="hello", **NEWER)]))


def test_a_message_and_a_hit_of_a_newer_server_are_shown():
    message = pb.Message(text="hello", **NEWER)
    assert one_line(message) == "0.0\tunspecified\tunspecified\thello"
    console = Console(file=io.StringIO(), width=80)
    console.print(*messages.render(message, messages.FOLDED))
    console.print(render_hit(pb.Hit(snippet="hi there", **NEWER), with_head=True))
    shown = console.file.getvalue()
    assert "hello" in shown
    assert "unspecified hi there" in shown


def test_bars_share_one_scale():
    summary = pb.Summary(
        tool="pi",
        id="x",
        tokens=pb.TokenUsage(input=50, output=50, cache_read=100),
        subagent_tokens=pb.TokenUsage(input=100),
    )
    document = "".join(to_html(summary, []))
    assert '<rect class="input" x="0" y="0" width="250" height="20"/>' in document
    assert '<rect class="output" x="250" y="0" width="250" height="20"/>' in document
    assert '<rect class="input" x="0" y="0" width="500" height="20"/>' in document
    assert "own tokens: 200" in document
    assert "<svg" not in "".join(to_html(SUMMARY, []))
