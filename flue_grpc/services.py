"""The Store and the AgentIndex on a gRPC server, with all that stands round their calls."""

from __future__ import annotations

import logging
import os
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final, Self

from flue.agentindex.v1 import agent_index_pb2_grpc
from flue.store.v1 import store_pb2_grpc
from flue_grpc.agentindex import index_file
from flue_grpc.agentindex.index import AgentIndex
from flue_grpc.agentindex.settings import IndexSettings, ReadLimits
from flue_grpc.errors import ConfigError, DatabaseCorruptError, StoreStoppedError
from flue_grpc.rpc.agentindex_service import AgentIndexService
from flue_grpc.rpc.health import OVERALL
from flue_grpc.rpc.interceptors.budgets import BudgetSizes
from flue_grpc.rpc.interceptors.deadlines import Patiences
from flue_grpc.rpc.reflection import add_reflection
from flue_grpc.rpc.runtime import AGENT_INDEX_NAME, STORE_NAME, Runtime, RuntimeSettings
from flue_grpc.rpc.store_service import StoreService
from flue_grpc.settings import xdg
from flue_grpc.store.files import lock_path as database_lock
from flue_grpc.store.store import Store
from flue_grpc.store.values import StoreSettings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

    import grpc

    from flue_grpc.config import Configuration
    from flue_grpc.errors import FlueError
    from flue_grpc.rpc.interceptors.chain import Interceptor, Registrar
    from flue_grpc.settings import Settings

_LOGGER: Final = logging.getLogger("flue_grpc.services")
DATABASE_NAME: Final = "store.db"
_LAST_WAIT_SECONDS: Final = 5.0  # for calls that were told to end and have not


class Services:
    """Both services, open; ``close`` them after the last call."""

    def __init__(
        self,
        configuration: Configuration,
        observing: Sequence[Interceptor] = (),
        admitting: Sequence[Interceptor] = (),
    ) -> None:
        """Open the Store and the index, and become their owner.

        The interceptors are those of ``Runtime``. Raises a StartupError that
        says what to do; nothing is left open then.
        """
        settings = configuration.settings
        if not settings.home.is_dir():
            _LOGGER.warning("the home %s is not there: it has no transcripts", settings.home)
        self.database = settings.data_dir / DATABASE_NAME
        with ExitStack() as opened:
            self.store = Store.open(self.database, _store_settings(settings))
            opened.callback(self.store.close)
            self.index = AgentIndex(index_settings(configuration, os.environ))
            opened.callback(self.index.close)
            self.runtime = Runtime(
                _runtime_settings(settings), self._on_error, observing, admitting
            )
            opened.callback(self.runtime.close)
            self._opened = opened.pop_all()
        self._settings = settings

    def add_to(self, server: grpc.Server) -> None:
        """Register both services, health and reflection; not serving yet."""
        registrar = self.runtime.registrar(server)
        store_pb2_grpc.add_StoreServicer_to_server(
            StoreService(self.store, self.runtime.drain), registrar.as_server()
        )
        service = AgentIndexService(self.index, self._settings, self.runtime.drain)
        agent_index_pb2_grpc.add_AgentIndexServicer_to_server(service, registrar.as_server())
        self.runtime.add_health(registrar)
        if self._settings.channelz:
            _add_channelz(registrar)
        add_reflection(registrar)

    def start(self) -> None:
        """Begin the first sweep, then say that the services serve."""
        self.index.begin()
        self.runtime.health.set(AGENT_INDEX_NAME, serves=True)
        self._report_store()

    def drain(self, seconds: float) -> bool:
        """Refuse new calls and wait for those that run; False when some still do."""
        self.runtime.begin_drain()
        return self.runtime.drain.wait(seconds)

    def close(self) -> None:
        """Close everything, the database last; calling it again does nothing."""
        self.runtime.begin_drain()
        self.runtime.drain.wait(_LAST_WAIT_SECONDS)
        self._opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _on_error(self, error: FlueError) -> None:
        if isinstance(error, (StoreStoppedError, DatabaseCorruptError)):
            self._report_store()

    def _report_store(self) -> None:
        serves = self.store.state in ("serving", "read_only")
        for name in (STORE_NAME, OVERALL):
            self.runtime.health.set(name, serves=serves)


def add_services(server: grpc.Server, configuration: Configuration) -> Services:
    """Add the Store, the AgentIndex, health and reflection to somebody else's server.

    ``server`` is a synchronous one that is not started yet; calls run on threads
    of our own, whatever its pool. Close what is returned when the server has
    stopped: ``drain`` it first to let running calls finish. Raises StartupError.
    """
    services = Services(configuration)
    try:
        services.add_to(server)
    except BaseException:
        services.close()
        raise
    services.start()
    return services


def index_settings(configuration: Configuration, environment: Mapping[str, str]) -> IndexSettings:
    """Say where transcripts and index lie (contract "Transport and trust").

    With a home that somebody named, the variables of the tools mean another one.
    """
    settings = configuration.settings
    return IndexSettings(
        home=str(settings.home),
        directory=_index_directory(configuration, environment),
        env={} if configuration.is_explicit("home") else dict(environment),
        ranked=settings.ranked_index,
        sweep_interval=settings.sweep_interval_seconds,
        reading=ReadLimits(
            settings.page_file_bytes,
            settings.page_message_text_bytes,
            settings.snippet_code_points,
        ),
    )


def store_lock(configuration: Configuration) -> Path:
    """Name the lock of whoever owns the Store."""
    return database_lock(configuration.settings.data_dir / DATABASE_NAME)


def index_lock(configuration: Configuration, environment: Mapping[str, str]) -> Path:
    """Name the lock of whoever owns the index of this home's transcripts."""
    settings = index_settings(configuration, environment)
    return index_file.lock_path(index_file.index_path(settings.directory, settings.home))


def _index_directory(configuration: Configuration, environment: Mapping[str, str]) -> Path:
    if configuration.is_explicit("data_dir"):
        return configuration.settings.data_dir / "agents"
    return xdg(environment, "XDG_CONFIG_HOME", ".config") / "flue" / "agents"


def _store_settings(settings: Settings) -> StoreSettings:
    return StoreSettings(durability="normal" if settings.durability == "normal" else "full")


def _runtime_settings(settings: Settings) -> RuntimeSettings:
    return RuntimeSettings(
        BudgetSizes(settings.live_streams, settings.finite_streams, settings.unary_calls),
        Patiences(
            settings.unary_deadline_seconds,
            settings.stream_idle_seconds,
            settings.stall_seconds,
        ),
    )


def _add_channelz(registrar: Registrar) -> None:
    try:
        from grpc_channelz.v1 import channelz, channelz_pb2_grpc  # noqa: PLC0415  (an extra)
    except ImportError as error:
        raise ConfigError(
            "channelz needs its package: pip install 'flue-grpc[channelz]'"
        ) from error
    channelz_pb2_grpc.add_ChannelzServicer_to_server(
        channelz.ChannelzServicer(), registrar.as_server()
    )
