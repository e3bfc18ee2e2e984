"""The examples of every language against a real server, and after a broken stream."""

from __future__ import annotations

import functools
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from flue.agentindex.v1 import agent_index_pb2 as ai
from flue_grpc.client import connect
from flue_grpc.listeners import UnixAddress
from tests.clients.scripted import BROKEN, Script, playing
from tests.tools import tool

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
LANGUAGES = ("python", "go", "connect", "grpc-js")
CODEX = "019f1f1f-0000-7000-8000-00000000000a"

# Compilers and package managers keep their caches where they always are.
ENVIRONMENT = dict(os.environ)


def run(command, directory=ROOT, **environment):
    return subprocess.run(
        command, cwd=directory, env={**ENVIRONMENT, **environment}, capture_output=True, text=True,
        check=True, timeout=300,
    ).stdout  # fmt: skip


def built_go():
    output = ROOT / ".cache" / "examples" / "go"
    run([tool("go"), "build", "-o", f"{output}/", "./list", "./search", "./follow"],
        EXAMPLES / "go")  # fmt: skip
    return {name: [str(output / name)] for name in ("list", "search", "follow")}


@functools.cache
def built_typescript():
    npm, package = tool("npm"), EXAMPLES / "typescript"
    if not (package / "node_modules/typescript").is_dir():
        run([npm, "ci", "--no-audit", "--no-fund", "--loglevel=error"], package)
    run([npm, "run", "--silent", "build"], package)
    return tool("node"), package / "dist"


@functools.cache
def programs(language):
    """Build what has to be built, and name the commands that list, search and follow."""
    if language == "python":
        files = {"list": "list_sessions.py", "search": "search.py", "follow": "follow.py"}
        return {k: [sys.executable, str(EXAMPLES / "python" / f)] for k, f in files.items()}
    if language == "go":
        return built_go()
    node, dist = built_typescript()
    if language == "connect":
        return {name: [node, str(dist / f"{name}.js")] for name in ("list", "search", "follow")}
    main = str(dist / "grpc-js-main.js")
    return {name: [node, main, name] for name in ("list", "search", "follow")}


class CuttingProxy:
    """Passes bytes on between a socket of its own and the server's, until they are cut."""

    def __init__(self, path, target):
        self._target = target
        self._lock = threading.Lock()
        self._sockets = set()
        self._threads = []
        self.connections = 0
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        self._start(self._accept)

    def cut(self):
        """End every connection that there is; new ones are taken."""
        with self._lock:
            for each in self._sockets:
                each.shutdown(socket.SHUT_RDWR)

    def close(self):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()
        for thread in self._threads:
            thread.join()

    def _start(self, target, *arguments):
        thread = threading.Thread(target=target, args=arguments)
        thread.start()
        self._threads.append(thread)
        return thread

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(str(self._target))
            with self._lock:
                self.connections += 1
                self._sockets |= {client, server}
            self._start(self._serve, client, server)

    def _serve(self, client, server):
        back = threading.Thread(target=self._pass, args=(server, client))
        back.start()
        self._pass(client, server)
        back.join()
        with self._lock:
            self._sockets -= {client, server}
            client.close()
            server.close()

    @staticmethod
    def _pass(source, sink):
        try:
            while data := source.recv(65_536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass


@pytest.fixture
def server(base, home):
    """A server's default socket below a runtime directory; the process ends in order."""
    path = base / "flue-grpc" / "flue.sock"
    log = (base / "server.log").open("wb")
    process = subprocess.Popen(
        [sys.executable, "-m", "flue_grpc", "serve", "--home", str(home),
         "--data-dir", str(base / "data"), "--sweep-interval-seconds", "0.2"],
        stdout=subprocess.PIPE, stderr=log, text=True, cwd=ROOT,
        env={**os.environ, "XDG_RUNTIME_DIR": str(base)},
    )  # fmt: skip
    assert process.stdout.readline() == f"flue-grpc listens on unix:{path}\n"
    yield path
    process.terminate()
    process.communicate(timeout=30)
    log.close()
    assert process.returncode == 0


@pytest.fixture
def ready(server):
    """The server has read every transcript."""
    with connect(f"unix:{server}") as client:
        while len(list(client.agentindex.snapshot())) < 3:
            pass
    return server


def await_session(server, name):
    with connect(f"unix:{server}") as client:
        while name not in {summary.id for summary in client.agentindex.snapshot()}:
            pass


@pytest.mark.parametrize("language", LANGUAGES)
def test_listing_and_searching(language, ready):
    commands = programs(language)
    address = f"unix:{ready}"
    listed = [line.split("\t") for line in run(commands["list"], FLUE_ADDRESS=address).splitlines()]
    assert [(row[1], row[3]) for row in listed] == [
        ("codex", "4 messages"), ("claude", "5 messages"), ("pi", "5 messages"),
    ]  # fmt: skip
    assert listed[0][2] == CODEX
    found = run([*commands["search"], "TIMEOUT"], FLUE_ADDRESS=address).splitlines()
    assert len(found) == 4
    tool, session, offset, snippet = found[1].split("\t")
    assert (tool, session, int(offset) > 0) == ("codex", CODEX, True)
    assert snippet[1:-1] == "The gateway [timeout] is 9 s now."


@pytest.mark.parametrize("language", LANGUAGES)
def test_following_goes_on_after_a_broken_stream(language, ready, base, pi_session):
    commands = programs(language)
    session = pi_session("followed", "first", "second")
    await_session(ready, "followed")
    proxy = CuttingProxy(base / "proxy.sock", ready)
    process = subprocess.Popen(
        [*commands["follow"], "pi", "followed"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**ENVIRONMENT, "FLUE_ADDRESS": f"unix:{base}/proxy.sock"},
    )  # fmt: skip

    def texts(count):
        lines = [process.stdout.readline() for _ in range(count)]
        assert all(lines), process.stderr.read()
        return [line.rstrip("\n").split("\t")[2][1:-1] for line in lines]

    try:
        assert texts(2) == ["first", "second"]
        session.say("third")
        assert texts(1) == ["third"]
        for number in range(3):
            proxy.cut()
            session.say(f"after cut {number}", f"and again {number}")
            assert texts(2) == [f"after cut {number}", f"and again {number}"]
        assert proxy.connections == 4
    finally:
        process.kill()
        process.communicate()
        proxy.close()


@pytest.fixture
def script(base):
    script = Script()
    with playing(script, f"unix:{base}/scripted"):
        yield script


def summaries(*ids, token=""):
    return ai.SnapshotResponse(summaries=[ai.Summary(id=i) for i in ids], next_page_token=token)


def hits(numbers, token="", **flags):
    found = [ai.Hit(tool="pi", id=str(n)) for n in numbers]
    return ai.SearchResponse(hits=found, next_page_token=token, **flags)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_break_after_the_last_response_is_the_end(language, script, base):
    """The trailers are lost: what was printed is all, and is printed once."""
    script.answers = [
        [summaries("a", "b", token="t"), BROKEN],
        [summaries("c"), BROKEN],
        [hits(range(30), "x"), BROKEN],
        [hits(range(30, 50), "y", truncated=True), BROKEN],
        [hits(range(2)), BROKEN],
    ]
    commands, place = programs(language), {"FLUE_ADDRESS": f"unix:{base}/scripted"}
    listed = run(commands["list"], **place).splitlines()
    assert [line.split("\t")[2] for line in listed] == ["a", "b", "c"]
    for count in (50, 2):
        found = run([*commands["search"], "x"], **place).splitlines()
        assert [line.split("\t")[1] for line in found] == list(map(str, range(count)))
    assert [(r.limit, r.page_token) for r in script.requests] == [
        (0, ""), (0, "t"), (50, ""), (20, "x"), (50, ""),
    ]  # fmt: skip


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_socket_of_any_name_is_reached(language, base):
    script, path = Script(), base / "a%41#?b c"
    script.answers = [[summaries("a")]]
    with playing(script, UnixAddress(path).target):
        assert "\ta\t" in run(programs(language)["list"], FLUE_ADDRESS=f"unix:{path}")


def failed(command, **environment):
    """Run a command that ends with one line of complaint, and return that line."""
    done = subprocess.run(
        command, env={**ENVIRONMENT, **environment}, capture_output=True, text=True,
        check=False, timeout=60,
    )  # fmt: skip
    assert (done.stdout, done.returncode) == ("", 1)
    [line] = done.stderr.splitlines()
    return line


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_goes_wrong_is_one_line(language, ready, base):
    commands, address = programs(language), f"unix:{ready}"
    for name in ("search", "follow"):
        assert failed(commands[name], FLUE_ADDRESS=address).startswith("usage: ")
    refusal = failed([*commands["follow"], "claude", "nowhere"], FLUE_ADDRESS=address)
    assert refusal.endswith("there is no such transcript")
    missing = base / "missing.sock"
    assert str(missing) in failed(commands["list"], FLUE_ADDRESS=f"unix:{missing}")


@pytest.mark.parametrize("language", LANGUAGES)
def test_texts_and_roles_are_printed_alike(language, ready, pi_session):
    pi_session("said", '\u279c "\u7d50\u5e33" a\tb\x1b[2J\x9b\u202e')
    await_session(ready, "said")
    commands, environment = programs(language), {"FLUE_ADDRESS": f"unix:{ready}"}
    listed = run(commands["list"], **environment)
    [title] = [line.split("\t")[4] for line in listed.splitlines() if "\tsaid\t" in line]
    assert title.startswith('"\u279c \\"\u7d50\u5e33\\" a')
    command = shlex.join([*commands["follow"], "pi", "said"])
    offset, role, text = first_line_of(command, ROOT, **environment).split("\t")
    assert (int(offset) > 0, role) == (True, "USER")
    assert text.startswith('"\u279c \\"\u7d50\u5e33\\" a\\tb\\')
    assert text.rstrip("\n").isprintable()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make the file of another user")
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_default_socket_of_another_user_is_refused(language, ready, base):
    assert run(programs(language)["list"], XDG_RUNTIME_DIR=str(base)).count("\n") == 3
    os.chown(ready, 12_345, -1)
    refusal = failed(programs(language)["list"], XDG_RUNTIME_DIR=str(base))
    assert f"{ready} belongs to user 12345" in refusal


CALL_WITH_CONNECT = """
import { createClient } from "@connectrpc/connect";
import { AgentIndex } from "flue-grpc/agentindex/v1";
import { isBroken, openTransport } from "./dist/connect.js";

const client = createClient(AgentIndex, openTransport({ address: process.argv[1] }));
try {
  await client.resolve({ tool: "claude", id: "nowhere" });
} catch (error) {
  console.log(isBroken(error));
}
"""


def test_a_server_that_is_not_there_is_a_broken_connection_and_a_refusal_is_none(ready, base):
    node, dist = built_typescript()
    (base / "nobody-listens.sock").touch()
    for path, is_broken in (
        (base / "missing.sock", "true\n"),
        (base / "nobody-listens.sock", "true\n"),
        (ready, "false\n"),
    ):
        command = [node, "--input-type=module", "-e", CALL_WITH_CONNECT, f"unix:{path}"]
        assert run(command, dist.parent) == is_broken


def shell_lines(readme):
    blocks = re.findall(r"```sh\n(.*?)```", readme.read_text("utf-8"), re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


def first_line_of(command, directory, **environment):
    """Run a command that has no end of its own until its first line is there."""
    process = subprocess.Popen(
        ["bash", "-c", command], cwd=directory, env={**ENVIRONMENT, **environment},
        stdout=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        return process.stdout.readline()
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@pytest.mark.parametrize("language", ["python", "go", "typescript"])
def test_the_commands_of_the_readme_work_as_pasted(language, ready, base):
    """On the default socket: nothing but the runtime directory says where the server is."""
    if language != "python":
        tool({"go": "go", "typescript": "npm"}[language])
    first, *lines = shell_lines(EXAMPLES / language / "README.md")
    assert first == "make serve"
    assert "FLUE_ADDRESS" not in ENVIRONMENT
    place = {"XDG_RUNTIME_DIR": str(base)}
    endless = [line for line in lines if line.endswith("claude SESSION_ID")]
    finite = "\n".join(line for line in lines if line not in endless)
    shown = run(["bash", "-ec", finite], **place).splitlines()
    programs = len(endless)
    assert sum(CODEX in line and "4 messages" in line for line in shown) == programs
    assert sum("[timeout]" in line for line in shown) == 4 * programs
    directory = ROOT / (lines[0].removeprefix("cd ") if lines[0].startswith("cd ") else ".")
    for line in endless:
        command = line.replace("claude SESSION_ID", f"codex {CODEX}")
        followed = first_line_of(command, directory, **place)
        assert "USER" in followed
        assert "Raise the gateway timeout" in followed
