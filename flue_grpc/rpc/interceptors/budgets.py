"""How many calls of each kind may run at once (contract rule 5)."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from flue_grpc import limits
from flue_grpc.errors import BusyError
from flue_grpc.rpc.calls import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flue_grpc.rpc.calls import Call


@dataclass(frozen=True, slots=True)
class BudgetSizes:
    """The most calls of each kind at once."""

    live: int = limits.LIVE_STREAMS
    finite: int = limits.FINITE_STREAMS
    unary: int = limits.UNARY_CALLS

    @property
    def workers(self) -> int:
        """Threads for all of them, and for the refusals of the others."""
        return (
            self.live
            + self.finite
            + self.unary
            + limits.REFLECTION_STREAMS
            + limits.REFUSAL_WORKERS
        )


class Budget:
    """A number of places that are taken and given back, never waited for.

    ``refused`` counts the times that there was none.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.refused = 0
        self._used = 0
        self._lock = threading.Lock()

    @property
    def used(self) -> int:
        """The places that are taken now."""
        return self._used

    def take(self) -> bool:
        """Take a place; False when there is none."""
        with self._lock:
            if self._used >= self.size:
                self.refused += 1
                return False
            self._used += 1
            return True

    def give_back(self) -> None:
        """Give a place back."""
        with self._lock:
            self._used -= 1


class Budgets:
    """Refuses a call at once when the budget of its kind is spent.

    A place is held while the call's worker runs, not a moment longer or less:
    the worker is what is scarce.
    """

    def __init__(self, sizes: BudgetSizes) -> None:
        self.by_kind = MappingProxyType(
            {
                Kind.LIVE: Budget(sizes.live),
                Kind.FINITE: Budget(sizes.finite),
                Kind.UNARY: Budget(sizes.unary),
                Kind.REFLECTION: Budget(limits.REFLECTION_STREAMS),
            }
        )

    @contextmanager
    def around(self, call: Call) -> Iterator[None]:
        """Hold a place for the call."""
        kind = call.kind
        budget = self.by_kind.get(kind)
        if budget is None:  # health is answered whatever happens
            yield
            return
        if not budget.take():
            raise BusyError(
                "too many calls of this kind at once",
                {"budget": kind.value, "limit": str(budget.size)},
            )
        try:
            yield
        finally:
            budget.give_back()
