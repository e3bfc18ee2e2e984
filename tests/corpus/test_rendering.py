"""Every real transcript, shown and exported: whole, and without a sequence of its own."""

from __future__ import annotations

import io
import json
import re
import subprocess
import tempfile
from pathlib import Path

import pytest
from rich.console import Console

from flue_grpc.client import Client, Target
from flue_grpc.config import load
from flue_grpc.render.documents import to_json, to_markdown
from flue_grpc.render.html import to_html
from flue_grpc.render.messages import OPEN, one_line, render
from flue_grpc.server import Server

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus"
LARGEST = 200_000  # bytes; drawing Markdown takes long
UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
COLOURS = re.compile(r"\x1b\[[\d;]*m")

pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus is not beside the project")


@pytest.fixture(scope="module")
def client():
    with tempfile.TemporaryDirectory(prefix="flue-") as directory:
        subprocess.run([CORPUS / "make_home", f"{directory}/home"], check=True, capture_output=True)
        flags = {
            "home": f"{directory}/home",
            "data_dir": f"{directory}/data",
            "listen": [f"unix:{directory}/s"],
        }
        server = Server(load(flags, {"HOME": directory}))
        server.start()
        while server.services.index.building:
            pass
        with Client(Target(address=f"unix:{directory}/s")) as client:
            yield client
        server.stop()


def test_every_document_is_whole_and_safe(client):
    seen = 0
    for summary in client.agentindex.snapshot(include_subagents=True):
        messages = list(client.agentindex.read_transcript(summary.tool, summary.id))
        page = "".join(to_html(summary, messages))
        assert page.count("\n<section id=") == page.count("\n</section>") == len(messages)
        assert page.count("<details>") == page.count("</details>")
        assert re.findall(r"<(?:script|img|iframe|object|link|a|form)\b", page) == []
        markdown = "".join(to_markdown(summary, messages))
        document = "".join(to_json(summary, messages))
        assert len(json.loads(document)["messages"]) == len(messages)
        plain = "\n".join(map(one_line, messages))
        assert plain.count("\n") == len(messages) - 1
        for text in (page, markdown, document, plain):
            assert not UNSAFE.search(text)
        seen += 1
    assert seen > 40


def test_no_sequence_is_drawn_but_our_colours(client):
    seen = 0
    for summary in client.agentindex.snapshot(include_subagents=True):
        if summary.file_size > LARGEST:
            continue
        file = io.StringIO()
        console = Console(
            file=file, force_terminal=True, width=100, markup=False, emoji=False, highlight=False
        )
        for message in client.agentindex.read_transcript(summary.tool, summary.id):
            for part in render(message, OPEN):
                console.print(part)
        assert not UNSAFE.search(COLOURS.sub("", file.getvalue())), summary.id
        seen += 1
    assert seen > 20
