"""A real server on a Unix socket whose Store does what a test asks of it."""

from __future__ import annotations

import shutil
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest

from flue.agentindex.v1 import agent_index_pb2_grpc
from flue.store.v1 import store_pb2, store_pb2_grpc
from flue_grpc import config
from flue_grpc.rpc.calls import ContextCancel
from flue_grpc.rpc.interceptors.budgets import BudgetSizes
from flue_grpc.rpc.interceptors.deadlines import Patiences
from flue_grpc.rpc.runtime import Runtime, RuntimeSettings
from flue_grpc.server import Server
from tests.waiting import wait_until
from tests.wire import homes
from tests.wire.live import append
from tests.wire.process import Process

TIMEOUT = 20.0


@pytest.fixture(name="wait_until")
def wait_until_fixture():
    return wait_until


@pytest.fixture
def short_path():
    """A directory whose name leaves room for a socket's."""
    path = Path(tempfile.mkdtemp(prefix="flue"))
    yield path
    shutil.rmtree(path)


class Probe(store_pb2_grpc.StoreServicer):
    """A Store that is told by its requests what to do."""

    def __init__(self) -> None:
        self.behaviours = {}
        self.gate = threading.Event()
        self.entered = threading.Semaphore(0)
        self.left = []

    def GetSession(self, request, context):
        return self.behaviours[request.id](request, context)

    def ListMessages(self, request, context):
        yield from self.behaviours[request.session_id](request, context)

    def ListSessions(self, request, context):
        yield from self.behaviours["sessions"](request, context)

    def answer(self, request, context):
        return store_pb2.GetSessionResponse(session=store_pb2.Session(id=request.id))

    def hold(self, request, context):
        self.entered.release()
        self.gate.wait(TIMEOUT)
        return self.answer(request, context)

    def hold_stream(self, request, context):
        self.entered.release()
        try:
            cancel = ContextCancel(context)
            yield store_pb2.ListMessagesResponse()
            while not self.gate.is_set():
                cancel.check()
                self.gate.wait(0.005)
        finally:
            self.left.append(request.session_id)

    def pour(self, request, context):
        """Send for ever, as fast as the client takes it."""
        self.entered.release()
        response = store_pb2.ListMessagesResponse(
            messages=[store_pb2.Message(content="x" * 100_000)]
        )
        try:
            while True:
                yield response
        finally:
            self.left.append(request.session_id)


class ProbeServer:
    """The server, its runtime and a channel to it."""

    def __init__(self, path, settings, observing=(), services=None) -> None:
        self.errors = []
        self.probe = Probe()
        self.runtime = Runtime(settings, self.errors.append, observing)
        self.host_pool = ThreadPoolExecutor(2)
        options = (("grpc.max_concurrent_streams", 100_000),)
        self.server = grpc.server(self.host_pool, options=options)
        registrar = self.runtime.registrar(self.server)
        store_pb2_grpc.add_StoreServicer_to_server(self.probe, registrar)
        self.runtime.add_health(registrar)
        if services is not None:
            services(registrar)
        self.address = f"unix:{path}/s"
        self.server.add_insecure_port(self.address)
        self.server.start()
        self.channels = []
        self.channel = self.connect()
        self.stub = store_pb2_grpc.StoreStub(self.channel)

    def connect(self, **options):
        """Open one more connection; options are channel arguments of gRPC."""
        pairs = [("grpc.use_local_subchannel_pool", 1)]
        pairs += [(f"grpc.{name.replace('__', '.')}", value) for name, value in options.items()]
        channel = grpc.insecure_channel(self.address, pairs)
        self.channels.append(channel)
        return channel

    def get(self, name, **arguments):
        return self.stub.GetSession(store_pb2.GetSessionRequest(id=name), **arguments)

    def get_later(self, name, **arguments):
        return self.stub.GetSession.future(store_pb2.GetSessionRequest(id=name), **arguments)

    def list(self, name, follow=False, **arguments):
        request = store_pb2.ListMessagesRequest(session_id=name, follow=follow)
        return self.stub.ListMessages(request, **arguments)

    def mute(self, method="GetSession", channel=None):
        """Open a call and send no request; returns (call, release)."""
        release = threading.Event()

        def never():
            release.wait(TIMEOUT)
            yield from ()

        path = f"/flue.store.v1.Store/{method}"
        call = (channel or self.channel).stream_stream(path)(never())
        return call, release

    def used(self):
        return {kind.value: budget.used for kind, budget in self.runtime.budgets.by_kind.items()}

    def is_idle(self):
        return (
            not any(self.used().values())
            and self.runtime.drain.running == 0
            and self.runtime.workers.unread == 0
            and self.runtime.guard.watching == 0
        )

    def close(self):
        self.probe.gate.set()
        for channel in self.channels:
            channel.close()
        self.server.stop(0).wait()
        self.runtime.close()
        self.host_pool.shutdown()


@contextmanager
def probe_server(path, observing=(), services=None, guard_interval=0.01, unread=60.0, **patiences):
    settings = RuntimeSettings(
        BudgetSizes(live=4, finite=3, unary=2), Patiences(**patiences), unread, guard_interval
    )
    server = ProbeServer(path, settings, observing, services)
    try:
        yield server
    finally:
        server.close()


@pytest.fixture(name="probe_server")
def probe_server_fixture(short_path):
    """Start probe servers with given budgets and patiences."""

    @contextmanager
    def start(**arguments):
        with probe_server(short_path, **arguments) as server:
            yield server

    return start


@pytest.fixture
def server(probe_server):
    with probe_server() as started:
        started.probe.behaviours["ok"] = started.probe.answer
        yield started


class Flue:
    """The product in this process, on a Unix socket, seen through its stubs."""

    def __init__(self, directory, **settings) -> None:
        self.home = directory / "home"
        self.home.mkdir(exist_ok=True)
        self.data = directory / "data"
        self.socket = directory / "run" / "s"
        self.settings = {
            "home": self.home,
            "data_dir": self.data,
            "listen": f"unix:{self.socket}",
            "sweep_interval_seconds": 0.01,
        } | settings
        self.server = None
        self.channel = None

    def start(self):
        self.server = Server(config.combine(self.settings))
        self.server.start()
        self.channel = grpc.insecure_channel(
            self.server.addresses[0].target, [("grpc.use_local_subchannel_pool", 1)]
        )
        self.store = store_pb2_grpc.StoreStub(self.channel)
        self.index = agent_index_pb2_grpc.AgentIndexStub(self.channel)
        return self

    def stop(self):
        if self.server is not None:
            self.channel.close()
            self.server.stop()
            self.server = None

    def restart(self):
        self.stop()
        return self.start()

    def swept(self):
        """Wait until every transcript that lies in the home now is indexed."""
        index = self.server.services.index
        names = [path.stem for path in self.home.glob(".claude/projects/*/*.jsonl")]

        def is_swept():
            index.poke()
            return all(index.find("claude", name) for name in names) and not index.building

        wait_until(is_swept)
        return self


@pytest.fixture
def flue(short_path):
    """The product with an empty home."""
    started = Flue(short_path).start()
    yield started
    started.stop()


@pytest.fixture
def make_flue(short_path):
    """The product with settings that a test gives, not yet started."""
    made = []

    def make(**settings):
        made.append(Flue(short_path, **settings))
        return made[-1]

    yield make
    for each in made:
        each.stop()


@pytest.fixture
def session(flue):
    flue.store.CreateSession(store_pb2.CreateSessionRequest(id="s", title="t"))
    append(flue, "one", "two")
    return flue


@pytest.fixture
def transcript(flue):
    """A transcript of two messages, and a function that adds bytes to it."""
    homes.write_session(flue.home, 1)
    flue.swept()
    path = homes.transcript_path(flue.home, 1)

    def write(text):
        with path.open("ab") as file:
            file.write(text.encode() if isinstance(text, str) else text)

    write.path = path
    return write


@pytest.fixture
def run(short_path):
    """Start ``flue-grpc`` with arguments; killed when the test ends."""
    started = []

    def start(*arguments, **options):
        started.append(Process(short_path, *arguments, **options))
        return started[-1]

    yield start
    for each in started:
        if not each.process.stdout.closed:
            each.kill()
