"""RANKED search of the real transcripts: what is about the query comes first."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from random import Random
from threading import Event

import pytest

from flue_grpc.agentindex.adapters.base import Context
from flue_grpc.agentindex.hit_filter import HitFilter
from flue_grpc.agentindex.index import AgentIndex
from flue_grpc.agentindex.lines import split_lines
from flue_grpc.agentindex.ranked_search import RankedSearch
from flue_grpc.agentindex.settings import IndexSettings
from flue_grpc.agentindex.snapshots import SnapshotFilter
from flue_grpc.cancel import NEVER
from flue_grpc.listing import Placed
from flue_grpc.text.index_form import index_text
from flue_grpc.text.match import verifier
from flue_grpc.text.query import parse_ranked
from flue_grpc.text.tokenizer import tokens

CORPUS = Path(__file__).resolve().parents[2].parent / "shared" / "corpus"
pytestmark = pytest.mark.skipif(
    not (CORPUS / "make_home").exists(), reason="no corpus beside the repository"
)
WORDS = 200

# What each session is about, from reading it.
ABOUT = [
    ("htmx sqlite saas", "pi", "019f6dc0"),
    ("supabase prisma migration", "codex", "01998190"),
    ("gemini transcript checkpointing", "claude", "c010174c"),
    ("mermaid diagram CI output directory", "claude", "d19ec7f9"),
    ("statusline kimchi", "pi", "019dce0b"),
    ("expected_output assertions llm grader", "codex", "019efedf"),
    ("命令 描述 风格", "codex", "613a9a68"),
    ("STRIPE_PUBLISHABLE_KEY", "claude", "9265dc4e"),
    ("user agent header version harness", "pi", "019dcd91"),
    ("multi-byte UTF-8 truncating", "claude", "97007e37"),
    ('"scroll to bottom" "AI Elements"', "claude", "06381696"),
    ("claude code response types", "claude", "10cd5911"),
    ("quality score labels quarter chart", "codex", "0199812e"),
    ("delete stale branches", "codex", "019eef3d"),
    ("attribution deleted lines", "claude", "466e2cb2"),
    ("restore claim issues AGENTS.md", "claude", "acc53d32"),
    ("custom tool SKILL.md", "pi", "5fd1e58c"),
]


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    base = tmp_path_factory.mktemp("corpus")
    subprocess.run(
        [sys.executable, CORPUS / "make_home", base / "home"], check=True, stdout=subprocess.DEVNULL
    )
    settings = IndexSettings(home=str(base / "home"), directory=base / "index")
    with AgentIndex.open(settings) as index:
        waited = Event()
        while search(index, "x").building:
            waited.wait(0.01)
        yield index


@pytest.fixture(scope="module")
def said(index):
    """Return (tool, id, offset, index, words with an edge round each) of every message."""
    everything = []
    view = index.snapshot(SnapshotFilter(include_subagents=True), None, NEVER)
    for summary in (step.item for step in view.items if isinstance(step, Placed)):
        located = index.locate(summary.tool, summary.id)
        context = Context(mirror=located.context_at(0)[1].mirror)
        for line in split_lines(Path(located.path).read_bytes(), 0):
            messages, _ = located.adapter.messages(line.data, line.offset, context)
            everything += [
                (summary.tool, summary.id, message.offset, message.index, edged(message.text))
                for message in messages
                if message.text
            ]
    return everything


def edged(text):
    return "\0".join(("", *tokens(index_text(text)), ""))


def search(index, query, limit=50, after=None):
    request = RankedSearch(query, HitFilter(include_subagents=True), limit, 2**40)
    return index.search_ranked(request, after, NEVER)


def hits(index, query, limit=1000):
    items = search(index, query, limit).items
    return [step.item for step in items if isinstance(step, Placed)]


@pytest.mark.parametrize(("query", "tool", "prefix"), ABOUT)
def test_a_session_about_the_query_is_on_top(index, query, tool, prefix):
    items = search(index, query).items
    first = next(items).item
    items.close()
    assert (first.tool, first.id[: len(prefix)]) == (tool, prefix)


def draw(said, random):
    """Return a query of some words of one message, or of one of its phrases."""
    while True:
        words = random.choice(said)[-1].split("\0")
        words = [word for word in words if word.isalnum() and len(word) < 40]
        if not words:
            continue
        start = random.randrange(len(words))
        some = " ".join(words[start : start + random.choice((1, 1, 2, 3))])
        return random.choice((some, f'"{some}"', f"{some}*", f"{some} -{random.choice(words)}"))


def test_words_of_the_corpus_find_exactly_the_messages_that_have_them(index, said):
    random, compared = Random(21), 0
    assert len(said) > 5000
    while compared < WORDS:
        query = draw(said, random)
        expected = matching(said, query)
        if len(expected) > 80:
            continue  # the most common words would take minutes and show nothing new
        found = [(hit.tool, hit.id, hit.offset, hit.index) for hit in hits(index, query)]
        assert len(found) == len(set(found))
        assert set(found) == expected, query
        compared += 1


def matching(said, query):
    """Find the messages by looking into each."""
    wanted = verifier(parse_ranked(query))
    return {
        tuple(place)
        for *place, words in said
        if all(needle in words for needle in wanted.required)
        and not any(needle in words for needle in wanted.excluded)
    }


def test_hits_page_to_their_message(index):
    for query, _, _ in ABOUT:
        for hit in hits(index, query)[:5]:
            page = index.read_page(hit.tool, hit.id, hit.offset, "forward", 1, "", NEVER)
            message = page.messages[hit.index]
            assert (message.offset, message.index) == (hit.offset, hit.index)
            assert (message.role, message.kind, message.ts) == (hit.role, hit.kind, hit.ts)


def test_pages_of_hits_are_the_whole_list(index):
    query, whole, after = "test", hits(index, "test"), None
    assert len(whole) > 100
    seen = []
    while len(seen) < len(whole):
        for step in search(index, query, 37, after).items:
            if not isinstance(step, Placed):
                continue
            seen.append(step.item)
            after = step.cursor
            if len(seen) % 37 == 0:
                break
    assert seen == whole
