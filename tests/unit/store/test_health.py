from __future__ import annotations

import pytest

from flue_grpc.errors import (
    DatabaseBusyError,
    DatabaseCorruptError,
    StoreReadOnlyError,
    StoreStoppedError,
)
from flue_grpc.store.health import Health

CORRUPT = DatabaseCorruptError("damaged")
READ_ONLY = StoreReadOnlyError("read-only")


def test_it_serves_until_something_is_wrong():
    health = Health()
    health.check_writable()
    health.failed(DatabaseBusyError("busy"))
    assert health.state == "serving"


def test_read_only_lasts_until_a_write_succeeds():
    health = Health()
    health.failed(READ_ONLY)
    assert health.state == "read_only"
    health.check_writable()
    health.written()
    assert health.state == "serving"


@pytest.mark.parametrize("later", [CORRUPT, READ_ONLY])
def test_stopped_lasts(later):
    health = Health()
    health.stop()
    health.failed(later)
    health.written()
    assert health.state == "stopped"
    with pytest.raises(StoreStoppedError):
        health.check_writable()


def test_corrupt_lasts_but_a_failed_sync_is_worse():
    health = Health()
    health.failed(CORRUPT)
    health.failed(READ_ONLY)
    health.written()
    assert health.state == "corrupt"
    with pytest.raises(DatabaseCorruptError):
        health.check_writable()
    health.stop()
    assert health.state == "stopped"
