"""The product's own metrics, read from the services when somebody asks."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from flue_grpc.observability.instruments import Reading

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from flue_grpc.agentindex.index import AgentIndex
    from flue_grpc.rpc.interceptors.budgets import Budgets
    from flue_grpc.services import Services
    from flue_grpc.store.store import Store


def readings_of(services: Services) -> Iterator[Reading]:
    """Read every value of PRODUCT_INSTRUMENTS that there is now."""
    yield from _budgets(services.runtime.budgets)
    yield from _store(services.store, services.database)
    yield from _index(services.index)


def _budgets(budgets: Budgets) -> Iterator[Reading]:
    for kind, budget in budgets.by_kind.items():
        labels = (kind.value,)
        yield Reading("flue.budget.in_use", budget.used, labels)
        yield Reading("flue.budget.limit", budget.size, labels)
        yield Reading("flue.budget.refusals", budget.refused, labels)


def _store(store: Store, database: Path) -> Iterator[Reading]:
    yield Reading("flue.store.queue", store.waiting)
    yield Reading("flue.store.commits", store.commits)
    yield Reading("flue.store.writes", store.writes)
    yield Reading("flue.store.state", 1, (store.state,))
    with suppress(OSError):
        yield Reading("flue.store.database.size", database.stat().st_size)
    with suppress(OSError):
        wal = database.with_name(f"{database.name}-wal")
        yield Reading("flue.store.wal.size", wal.stat().st_size)


def _index(index: AgentIndex) -> Iterator[Reading]:
    yield Reading("flue.index.transcripts", index.transcripts)
    yield Reading("flue.index.building", int(index.building))
    yield Reading("flue.index.lagging", int(index.lags))
    yield Reading("flue.index.polling", int(index.file_events == "polling"))
    sweeps = index.sweeps
    yield Reading("flue.index.sweeps", sweeps.finished)
    if sweeps.finished:
        yield Reading("flue.index.sweep.duration", sweeps.last_seconds)
        yield Reading("flue.index.sweep.age", sweeps.age_seconds())
