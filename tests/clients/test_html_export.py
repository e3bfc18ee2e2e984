"""An exported page in a real browser: nothing runs, nothing is fetched, all is shown."""

from __future__ import annotations

import subprocess
import threading
from html.parser import HTMLParser
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from flue.agentindex.v1 import agent_index_pb2 as pb
from flue_grpc.render.html import to_html
from tests.tools import tool

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--allow-file-access-from-files",
)
VOID = {"meta", "rect"}
ELEMENTS = {
    "html", "head", "meta", "title", "style", "body", "main", "header", "h1", "h2", "dl", "dt",
    "dd", "figure", "figcaption", "span", "svg", "rect", "section", "details", "summary", "pre",
    "p", "b", "i", "code", "time",
}  # fmt: skip


@pytest.fixture
def chromium():
    return tool("chromium")


@pytest.fixture
def listener():
    """A server on this machine that notes every path that is asked for."""
    seen = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            seen.append(self.path)
            self.send_response(200)
            self.end_headers()

        do_POST = do_GET  # noqa: N815 - http.server's own name

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    server.seen = seen
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def attacks(url):
    """What tries to run or to fetch, by every way in that HTML has."""
    owned = f"document.title='owned';new Image().src='{url}/ran'"
    return [
        f"<script>{owned}</script>",
        f"</pre></details></section><script>{owned}</script>",
        f"</title></style><script>{owned}</script>",
        f"<img src='{url}/img' onerror=\"{owned}\">",
        f"<svg onload=\"{owned}\"><image href='{url}/svg'/></svg>",
        f"<iframe src='{url}/frame'></iframe><object data='{url}/object'></object>",
        f"<link rel=stylesheet href='{url}/css'><style>@import '{url}/import';</style>",
        f"<meta http-equiv=refresh content='0;url={url}/refresh'>",
        f"<base href='{url}/'><form action='{url}/form'><input autofocus onfocus=\"{owned}\">",
        f'" onmouseover="{owned}" style="background:url({url}/attribute)"',
        "'><a href='javascript:alert(1)'>x</a>",
        "<!-- --!><b>comment</b><![CDATA[x]]>&lt;b&gt;&#60;i&#62;",
        "\x00\x1b]0;owned\x07\x1b[31m<b>\x9b0m\u2028",
    ]


def page(texts):
    """A page with each text wherever a transcript's own words stand."""
    messages = [
        pb.Message(
            role=role, kind=kind, text=text, model=text, tool_name=text, offset=n, truncated=True,
            ts=Timestamp(seconds=1_772_355_600),
        )
        for n, text in enumerate(texts)
        for role, kind in [
            (pb.ROLE_USER, pb.KIND_TEXT), (pb.ROLE_ASSISTANT, pb.KIND_TOOL_CALL),
            (pb.ROLE_SYSTEM, pb.KIND_TEXT), (pb.ROLE_USER, pb.KIND_TOOL_RESULT),
        ]
    ]  # fmt: skip
    hostile = "".join(texts)
    summary = pb.Summary(
        tool=hostile, id=hostile, title=hostile, cwd=hostile, git_branch=hostile,
        models=[hostile], tokens=pb.TokenUsage(input=4, output=1, cache_read=3),
    )  # fmt: skip
    return "".join(to_html(summary, messages))


def dump(chromium, file, profile, *more):
    """Load a file, let it settle, and return the document that came of it."""
    return subprocess.run(
        [chromium, *FLAGS, *more, f"--user-data-dir={profile}", "--virtual-time-budget=2000",
         "--dump-dom", file.as_uri()],
        capture_output=True, text=True, check=True, timeout=120,
    ).stdout  # fmt: skip


class Elements(HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.found, self.attributes, self.texts = [], [], []

    def handle_starttag(self, tag, attrs):
        self.found.append(tag)
        self.attributes += [name for name, _ in attrs]

    def handle_data(self, data):
        self.texts.append(data)


def parsed(document):
    elements = Elements()
    elements.feed(document)
    elements.close()
    return elements


def test_a_hostile_transcript_neither_runs_nor_fetches(chromium, listener, tmp_path):
    url = f"http://127.0.0.1:{listener.server_port}"
    file = tmp_path / "page.html"
    file.write_text(page(attacks(url)), encoding="utf-8")
    document = dump(chromium, file, tmp_path / "profile")
    elements = parsed(document)
    assert listener.seen == []
    assert set(elements.found) == ELEMENTS
    assert not [name for name in elements.attributes if name.startswith("on")]
    assert "<title>owned" not in document
    shown = "".join(elements.texts)
    assert shown.count(f"<img src='{url}/img'") > 4


def exported(flue, pi_session, texts, file):
    """Write a transcript of these texts, and export it as a person does."""
    pi_session("hostile", *texts)
    code, _, complaint = flue("export", "--transcript", "hostile", "-o", str(file))
    assert (code, complaint) == (0, "")
    return file


def elsewhere(listener):
    """Resolve the attacks' host to the listener, and nothing that the browser itself asks."""
    place = f"127.0.0.1:{listener.server_port}"
    return f"--host-resolver-rules=MAP *.example {place},MAP * ~NOTFOUND"


HOST = "http://attacker.example"


def test_what_export_writes_of_a_hostile_file_asks_no_host(
    chromium, listener, flue, pi_session, base
):
    file = exported(flue, pi_session, attacks(HOST), base / "page.html")
    document = dump(chromium, file, base / "profile", elsewhere(listener))
    assert listener.seen == []
    assert "<title>owned" not in document
    shown = "".join(parsed(document).texts)
    for attack in attacks(HOST)[:10]:
        assert attack in shown


def test_the_same_file_unescaped_would_ask_that_host(chromium, listener, tmp_path):
    file = tmp_path / "page.html"
    file.write_text("".join(attacks(HOST)[:4]), encoding="utf-8")
    dump(chromium, file, tmp_path / "profile", elsewhere(listener))
    assert {"/ran", "/img"} <= set(listener.seen)


def test_the_same_text_unescaped_would_run_and_fetch(chromium, listener, tmp_path):
    url = f"http://127.0.0.1:{listener.server_port}"
    file = tmp_path / "page.html"
    file.write_text("".join(attacks(url)[:4]), encoding="utf-8")
    document = dump(chromium, file, tmp_path / "profile")
    assert "/ran" in listener.seen
    assert "<title>owned" in document


def test_the_policy_alone_stops_what_would_run_and_fetch(chromium, listener, tmp_path):
    url = f"http://127.0.0.1:{listener.server_port}"
    text = page(["harmless"]).replace("</main>", "".join(attacks(url)[:7]) + "</main>")
    file = tmp_path / "page.html"
    file.write_text(text, encoding="utf-8")
    document = dump(chromium, file, tmp_path / "profile")
    assert listener.seen == []
    assert "<title>owned" not in document


def console(chromium, file, profile):
    """Load a file and return what the browser's console says."""
    return subprocess.run(
        [chromium, *FLAGS, f"--user-data-dir={profile}", "--enable-logging=stderr",
         "--virtual-time-budget=2000", "--dump-dom", file.as_uri()],
        capture_output=True, text=True, check=True, timeout=120,
    ).stderr  # fmt: skip


def test_the_policy_lets_the_page_have_its_own_style(chromium, tmp_path):
    file = tmp_path / "page.html"
    file.write_text(page(["x"]), encoding="utf-8")
    assert "Content Security Policy" not in console(chromium, file, tmp_path / "one")
    file.write_text(page(["x"]).replace("<style>", "<style>/**/"), encoding="utf-8")
    assert "Content Security Policy" in console(chromium, file, tmp_path / "two")


def test_the_page_is_well_formed_and_folds_what_is_no_prose():
    messages = [
        pb.Message(role=pb.ROLE_USER, kind=pb.KIND_TEXT, text="a < b", offset=0),
        pb.Message(
            role=pb.ROLE_ASSISTANT, kind=pb.KIND_TOOL_CALL, text="{}", tool_name="Bash", offset=9,
            index=1, text_size=2,
        ),
        pb.Message(
            role=pb.ROLE_USER, kind=pb.KIND_TOOL_RESULT, text="no", is_error=True, offset=20
        ),
    ]  # fmt: skip
    document = "".join(to_html(pb.Summary(tool="pi", id="x", title="A & B"), messages))
    assert "<title>A &amp; B</title>" in document
    assert '<section id="m0-0" class="user text">\n<h2><b>user</b></h2>\n' in document
    assert '<pre dir="auto">a &lt; b</pre>' in document
    assert '<section id="m9-1" class="assistant tool_call">\n<details>\n' in document
    assert "<summary><b>Bash</b> <code>{}</code> <i>2 B</i></summary>" in document
    assert 'class="user tool_result error"' in document
    assert document.count("<details>") == document.count("</details>") == 2
    assert 'http-equiv="Content-Security-Policy" content="default-src &#x27;none&#x27;;' in (
        document
    )
    assert "http://" not in document
    assert "https://" not in document
