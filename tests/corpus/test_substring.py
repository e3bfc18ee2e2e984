"""Searches of the real transcripts, against looking into every message."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest

from flue_grpc.agentindex.adapters.base import Context
from flue_grpc.agentindex.escapes import Escape
from flue_grpc.agentindex.hit_filter import HitFilter
from flue_grpc.agentindex.index import AgentIndex
from flue_grpc.agentindex.lines import split_lines
from flue_grpc.agentindex.settings import IndexSettings
from flue_grpc.agentindex.snapshots import SnapshotFilter
from flue_grpc.agentindex.substring import SubstringSearch
from flue_grpc.cancel import NEVER
from flue_grpc.listing import Placed, Stop
from tests.waiting import wait_until

CORPUS = Path(__file__).resolve().parents[2].parent / "shared" / "corpus"
pytestmark = pytest.mark.skipif(
    not (CORPUS / "make_home").exists(), reason="no corpus beside the repository"
)
WORDS = 200


def fold(text):
    return "".join(c.lower() if len(c.lower()) == 1 else c for c in text)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    base = tmp_path_factory.mktemp("corpus")
    subprocess.run(
        [sys.executable, CORPUS / "make_home", base / "home"], check=True, stdout=subprocess.DEVNULL
    )
    for path in sorted(base.glob("home/**/*.jsonl"))[::8]:
        path.write_bytes(b"".join(map(escaped, path.read_bytes().splitlines(keepends=True))))
    return base / "home"


def escaped(line):
    """Write a line as other programs might: in ASCII, a letter of a common word escaped too."""
    try:
        told = json.loads(line)
    except ValueError:
        return line
    return json.dumps(told).replace(" the ", r" \u0074he ").encode() + b"\n"


@contextmanager
def settled_index(home, ranked):
    """Open an index of its own, swept, and filled where RANKED is on."""
    directory = home.with_name("ranked" if ranked else "index")
    with AgentIndex.open(IndexSettings(str(home), directory, ranked=ranked)) as index:
        wait_until(lambda: not (index.building or index.lags))
        yield index


@pytest.fixture(scope="module")
def index(home):
    with settled_index(home, ranked=False) as index:
        yield index


@pytest.fixture(scope="module", params=["escapes not known", "escapes known"])
def searched(request, home, index):
    """Both kinds of index: the one that is filled tells SUBSTRING what its files may hide."""
    if request.param == "escapes not known":
        yield index
        return
    with settled_index(home, ranked=True) as filled:
        known = filled._searches._escapes()
        kinds = {known(session).kinds for session in filled._catalog.view().sessions}
        assert {Escape.NONE, Escape.WIDE | Escape.ASCII} <= kinds
        yield filled


@pytest.fixture(scope="module")
def said(index):
    """Return (tool, id, offset, index, folded text) of every message, in the order of hits."""
    everything = []
    view = index.snapshot(SnapshotFilter(include_subagents=True), None, NEVER)
    for summary in (step.item for step in view.items if isinstance(step, Placed)):
        located = index.locate(summary.tool, summary.id)
        context = Context(mirror=located.context_at(0)[1].mirror)
        for line in split_lines(Path(located.path).read_bytes(), 0):
            messages, _ = located.adapter.messages(line.data, line.offset, context)
            everything += [
                (summary.tool, summary.id, m.offset, m.index, fold(m.text)) for m in messages
            ]
    return everything


def draw(said, random):
    """Return a word, or a piece across words, of some message."""
    while True:
        text = random.choice(said)[-1]
        start = random.randrange(len(text) + 1)
        word = text[start:].split(maxsplit=1)[:1] if random.random() < 0.5 else [text[start:]]
        piece = "".join(word)[: random.choice((5, 8, 12, 40))].strip()
        if len(piece) >= 4:
            return piece


def test_words_of_the_corpus_are_found_wherever_they_stand(searched, said, monkeypatch):
    random = Random(20)
    assert len(said) > 5000
    for number in range(WORDS):
        query = draw(said, random)
        if number == WORDS // 2:
            monkeypatch.setattr("flue_grpc.agentindex.matchers.has_hyperscan", lambda: False)
        asked = query.upper() if query.isascii() and random.random() < 0.3 else query
        request = SubstringSearch(asked, HitFilter(include_subagents=True))
        steps = list(searched.search(request, None, NEVER).items)
        assert not any(isinstance(step, Stop) for step in steps)
        hits = [step.item for step in steps if isinstance(step, Placed)]
        expected = [place for *place, text in said if query in text]
        assert [[h.tool, h.id, h.offset, h.index] for h in hits] == expected, query


def read_all(index, tool, session_id, direction, limit):
    found, offset = [], None
    while True:
        page = index.read_page(tool, session_id, offset, direction, limit, "", NEVER)
        places = [(message.offset, message.index) for message in page.messages]
        if direction == "forward":
            found, offset = found + places, page.next
            if page.eof:
                return found
        else:
            found, offset = places + found, page.start
            if page.start == 0:
                return found


def test_the_pages_of_every_transcript_tile(index, said):
    of_session = {}
    for tool, session_id, offset, number, _ in said:
        of_session.setdefault((tool, session_id), []).append((offset, number))
    for (tool, session_id), expected in of_session.items():
        for direction, step in (("forward", 7), ("backward", 200)):
            found = read_all(index, tool, session_id, direction, step)
            assert found == expected, (tool, session_id, direction)
