"""Fuzz one target for some seconds, guided by coverage: ``guided.py TARGET SECONDS``.

Begins with the kept inputs and the fixtures; what it finds lies in ``.cache/fuzz``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import atheris

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
CACHE = ROOT / ".cache" / "fuzz"
sys.path[:0] = [str(ROOT), str(ROOT / "generated" / "python")]

with atheris.instrument_imports(include=["flue_grpc"]):
    from tests.fuzz.targets import TARGETS

from tests.fuzz.seeds import seeds  # noqa: E402 - after what is instrumented


def main() -> None:
    name, seconds = sys.argv[1:]
    found = CACHE / name
    found.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds(name)):
        (found / f"seed-{number}").write_bytes(seed)
    arguments = [
        sys.argv[0],
        f"-max_total_time={seconds}",
        f"-dict={HERE / 'words.dict'}",
        f"-artifact_prefix={found}-",
        "-max_len=4096",
        "-timeout=25",
        "-rss_limit_mb=2048",
        "-print_final_stats=1",
        "-verbosity=0",
        str(found),
    ]
    atheris.Setup(arguments, TARGETS[name])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
