"""Read every transcript of a home once, and nothing else: ``python benchmarks/read_pass.py HOME``."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Read all files through one buffer of 1 MiB; print the bytes."""
    buffer = bytearray(1 << 20)
    total = 0
    for directory, _, names in os.walk(sys.argv[1]):
        for name in names:
            if name.endswith(".jsonl"):
                with open(os.path.join(directory, name), "rb", buffering=0) as file:  # noqa: PTH118, PTH123
                    while size := file.readinto(buffer):
                        total += size
    print(total)


if __name__ == "__main__":
    main()
