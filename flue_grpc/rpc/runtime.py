"""What all services of one server share: workers, guard, budgets, drain, health."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from flue_grpc import limits
from flue_grpc.rpc.calls import Kind
from flue_grpc.rpc.guard import Guard
from flue_grpc.rpc.health import NAME as HEALTH_NAME
from flue_grpc.rpc.health import Health, add_health
from flue_grpc.rpc.interceptors.access_log import AccessLog
from flue_grpc.rpc.interceptors.budgets import Budgets, BudgetSizes
from flue_grpc.rpc.interceptors.chain import Registrar
from flue_grpc.rpc.interceptors.courtesy import Courtesy
from flue_grpc.rpc.interceptors.deadlines import Deadlines, Patiences
from flue_grpc.rpc.interceptors.drain import Drain
from flue_grpc.rpc.interceptors.errors import Errors
from flue_grpc.rpc.reflection import NAMES as REFLECTION_NAMES
from flue_grpc.rpc.workers import CallWorkers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import grpc

    from flue_grpc.errors import FlueError
    from flue_grpc.rpc.interceptors.chain import Interceptor

STORE_NAME: Final = "flue.store.v1.Store"
AGENT_INDEX_NAME: Final = "flue.agentindex.v1.AgentIndex"
_KINDS: Final[Mapping[str, Kind]] = {
    HEALTH_NAME: Kind.HEALTH,
    f"/{AGENT_INDEX_NAME}/Watch": Kind.LIVE,
    **dict.fromkeys(REFLECTION_NAMES, Kind.REFLECTION),
}


@dataclass(frozen=True, slots=True)
class RuntimeSettings:
    """How many calls at once, and how long things may take, in seconds."""

    budgets: BudgetSizes = field(default_factory=BudgetSizes)
    patiences: Patiences = field(default_factory=Patiences)
    unread: float = limits.UNREAD_SECONDS
    guard_interval: float = limits.GUARD_INTERVAL_SECONDS


class Runtime:
    """Made once per server, before its services are added; closed after they are done."""

    def __init__(
        self,
        settings: RuntimeSettings,
        on_error: Callable[[FlueError], None],
        observing: Sequence[Interceptor] = (),
        admitting: Sequence[Interceptor] = (),
    ) -> None:
        """Start nothing yet.

        ``on_error`` sees each domain error; ``observing`` interceptors see how calls
        end, ``admitting`` ones may refuse a call before its request is read.
        """
        self.guard = Guard(settings.guard_interval)
        self.workers = CallWorkers(settings.budgets.workers, self.guard, settings.unread)
        self.budgets = Budgets(settings.budgets)
        self.drain = Drain()
        self.health = Health((STORE_NAME, AGENT_INDEX_NAME), self.guard)
        self._interceptors: tuple[Interceptor, ...] = (
            *observing,
            AccessLog(),
            Errors(on_error),
            *admitting,
            self.drain,
            self.budgets,
            Courtesy(),
            Deadlines(self.guard, settings.patiences),
        )

    def registrar(self, server: grpc.Server) -> Registrar:
        """Make what the services are added to in place of ``server``."""
        return Registrar(server, self.workers, self._interceptors, _KINDS)

    def add_health(self, registrar: Registrar) -> None:
        """Add the health service."""
        add_health(self.health, registrar)

    def begin_drain(self) -> None:
        """Say NOT_SERVING, refuse new calls, and end the streams that have no end.

        Calls whose request has not come end too. Again does nothing.
        """
        if not self.drain.is_draining:
            self.health.end()
            self.drain.begin()
            self.workers.end_unread()

    def close(self) -> None:
        """Free the threads; calls are over by now."""
        self.begin_drain()
        self.health.close()
        self.workers.shutdown(wait=not self.drain.running, cancel_futures=True)
        self.guard.close()
