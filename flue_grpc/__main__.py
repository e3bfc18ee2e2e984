"""Where ``flue-grpc`` and ``python -m flue_grpc`` begin."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command line; Ctrl-C ends it quietly also while it is still being imported."""
    try:
        from flue_grpc import cli  # noqa: PLC0415  (within reach of the handler)

        return cli.main()
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
