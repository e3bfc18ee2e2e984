"""The metrics by name: those of every gRPC server, and those of this product.

The names, units, labels and buckets of the first come from gRFC A66. The others
are read when somebody asks, so they cost nothing in between.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

METHOD_LABEL: Final = "grpc.method"
STATUS_LABEL: Final = "grpc.status"

_MILLISECONDS_TO_100: Final = (1, 2, 3, 4, 5, 6, 8, 10, 13, 16, 20, 25, 30, 40, 50, 65, 80, 100)
DURATION_BUCKETS: Final = (
    *(0.0, 0.00001, 0.00005, 0.0001, 0.0003, 0.0006, 0.0008),
    *(milliseconds / 1000 for milliseconds in _MILLISECONDS_TO_100),
    *(0.13, 0.16, 0.2, 0.25, 0.3, 0.4, 0.5, 0.65, 0.8),
    *(1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0),
)
SIZE_BUCKETS: Final = (0.0, *(float(2**power) for power in (*range(10, 13), *range(14, 33, 2))))

Kind = Literal["counter", "gauge", "histogram"]


class Instrument(msgspec.Struct, frozen=True):
    """One metric; ``unit`` is written as UCUM does: ``s``, ``By``, ``{call}``."""

    name: str
    kind: Kind
    unit: str
    description: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


class Reading(msgspec.Struct, frozen=True):
    """The value of one of PRODUCT_INSTRUMENTS now; one label value per label."""

    name: str
    value: float
    labels: tuple[str, ...] = ()


if TYPE_CHECKING:
    ReadingSource = Callable[[], Iterable[Reading]]

CALL_STARTED: Final = Instrument(
    "grpc.server.call.started", "counter", "{call}", "RPCs begun", (METHOD_LABEL,)
)
CALL_DURATION: Final = Instrument(
    "grpc.server.call.duration",
    "histogram",
    "s",
    "Time from the arrival of an RPC to its end",
    (METHOD_LABEL, STATUS_LABEL),
    DURATION_BUCKETS,
)
CALL_SENT: Final = Instrument(
    "grpc.server.call.sent_total_compressed_message_size",
    "histogram",
    "By",
    "Bytes of the responses of an RPC",
    (METHOD_LABEL, STATUS_LABEL),
    SIZE_BUCKETS,
)
CALL_RECEIVED: Final = Instrument(
    "grpc.server.call.rcvd_total_compressed_message_size",
    "histogram",
    "By",
    "Bytes of the requests of an RPC",
    (METHOD_LABEL, STATUS_LABEL),
    SIZE_BUCKETS,
)

CALL_INSTRUMENTS: Final = (CALL_STARTED, CALL_DURATION, CALL_SENT, CALL_RECEIVED)
PRODUCT_INSTRUMENTS: Final = (
    Instrument("flue.budget.in_use", "gauge", "{call}", "Calls that hold a place now", ("budget",)),
    Instrument("flue.budget.limit", "gauge", "{call}", "Places there are", ("budget",)),
    Instrument("flue.budget.refusals", "counter", "{call}", "Calls refused with BUSY", ("budget",)),
    Instrument("flue.store.queue", "gauge", "{operation}", "Writes that wait for the writer"),
    Instrument("flue.store.commits", "counter", "{commit}", "Transactions committed"),
    Instrument("flue.store.writes", "counter", "{operation}", "Writes committed"),
    Instrument("flue.store.database.size", "gauge", "By", "Size of the database file"),
    Instrument("flue.store.wal.size", "gauge", "By", "Size of the write-ahead log"),
    Instrument("flue.store.state", "gauge", "1", "1 for the state the Store is in", ("state",)),
    Instrument("flue.index.transcripts", "gauge", "{transcript}", "Transcripts known"),
    Instrument("flue.index.building", "gauge", "1", "1 while a sweep runs"),
    Instrument("flue.index.lagging", "gauge", "1", "1 while RANKED search is behind the summaries"),
    Instrument("flue.index.sweeps", "counter", "{sweep}", "Sweeps finished"),
    Instrument("flue.index.sweep.duration", "gauge", "s", "Duration of the last sweep"),
    Instrument("flue.index.sweep.age", "gauge", "s", "Time since the last sweep ended"),
    Instrument("flue.index.polling", "gauge", "1", "1 while the system gives no file events"),
)
