"""``flue-grpc`` with one item in each response: what batches are compared with."""

from __future__ import annotations

import sys

from flue_grpc import cli, limits

limits.BATCH_START_ITEMS = 1  # type: ignore[misc]  # for this process alone
limits.BATCH_MAX_ITEMS = 1  # type: ignore[misc]

if __name__ == "__main__":
    sys.exit(cli.main())
