"""Lets ``python -m flue_grpc`` do what ``flue-grpc`` does."""

from __future__ import annotations

import sys

from flue_grpc.cli import main

if __name__ == "__main__":
    sys.exit(main())
