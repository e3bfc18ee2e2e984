from __future__ import annotations

import subprocess
import sys

from flue_grpc.observability.instruments import (
    CALL_INSTRUMENTS,
    DURATION_BUCKETS,
    PRODUCT_INSTRUMENTS,
    SIZE_BUCKETS,
)


def test_the_server_metrics_are_those_of_every_grpc_server():
    assert [(i.name, i.kind, i.unit, i.labels) for i in CALL_INSTRUMENTS] == [
        ("grpc.server.call.started", "counter", "{call}", ("grpc.method",)),
        ("grpc.server.call.duration", "histogram", "s", ("grpc.method", "grpc.status")),
        (
            "grpc.server.call.sent_total_compressed_message_size",
            "histogram",
            "By",
            ("grpc.method", "grpc.status"),
        ),
        (
            "grpc.server.call.rcvd_total_compressed_message_size",
            "histogram",
            "By",
            ("grpc.method", "grpc.status"),
        ),
    ]


def test_the_buckets_are_the_standard_ones():
    text = (
        "0, 0.00001, 0.00005, 0.0001, 0.0003, 0.0006, 0.0008, 0.001, 0.002, 0.003, 0.004, "
        "0.005, 0.006, 0.008, 0.01, 0.013, 0.016, 0.02, 0.025, 0.03, 0.04, 0.05, 0.065, 0.08, "
        "0.1, 0.13, 0.16, 0.2, 0.25, 0.3, 0.4, 0.5, 0.65, 0.8, 1, 2, 5, 10, 20, 50, 100"
    )
    assert tuple(float(bound) for bound in text.split(", ")) == DURATION_BUCKETS
    sizes = (
        "0, 1024, 2048, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864, "
        "268435456, 1073741824, 4294967296"
    )
    assert tuple(float(bound) for bound in sizes.split(", ")) == SIZE_BUCKETS


def test_the_products_own_names_are_unique_and_under_one_prefix():
    names = [instrument.name for instrument in PRODUCT_INSTRUMENTS]
    assert len(set(names)) == len(names)
    assert all(name.startswith("flue.") for name in names)


def test_what_is_off_is_not_imported():
    script = (
        "import sys\n"
        "from flue_grpc.observability import calls, instruments, trace_context\n"
        "print([m for m in sys.modules if m.startswith(('prometheus', 'opentelemetry', 'http'))])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert done.stdout == b"[]\n"
