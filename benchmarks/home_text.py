"""Text for synthetic transcripts: prose in several languages, code, and base64.

Everything is made in its JSON-escaped form at once, so that a home of gigabytes is
written about as fast as the disk takes it.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random

_PROSE = (
    "The gateway closes idle connections after one second, so the client has to retry.",
    "I looked at the failing test and the fixture creates the table twice.",
    "Let me check how the scheduler decides which worker takes the next job.",
    "We should keep the old column until every reader has been updated.",
    "Die Konfiguration wird erst nach dem Neustart übernommen, deshalb schlägt der Aufruf fehl.",
    "Bitte prüfe, ob die Größe der Datei größer als das Limit ist.",
    "Le délai d'attente est dépassé parce que la file n'est jamais vidée.",
    "La función devuelve una lista vacía cuando el índice todavía no está listo.",
    "数据库连接池在高负载下会耗尽，需要增加超时时间。",  # noqa: RUF001 - Chinese has its own comma
    "テストは成功しましたが、警告がまだ残っています。",
    "Кэш нужно очищать после каждой записи, иначе ответ устаревает.",
    "빌드가 실패하면 로그를 먼저 확인하세요.",
    'Run `make test` and look for "timeout" in the output.',
)
_CODE = (
    "def parse_line(line: bytes) -> Record | None:",
    '    if not line.startswith(b"{"):',
    "        return None",
    "    for index, item in enumerate(self._pending):",
    '\tlogger.debug("retry %d of %d", attempt, limit)',
    "src/pay.py:9: timeout = 1  # seconds",
    "+    connection.execute('select id, title from sessions where id = ?', (key,))",
    "-    return sorted(values, key=lambda value: value.updated_at)",
    "}  // namespace billing",
    'ERROR [worker-3] request 7f3a failed: {"code": 14, "path": "C:\\\\temp"}',
    "drwxr-xr-x  5 dev dev 4096 Mar  1 09:00 migrations",
    '  File "/srv/app/handlers.py", line 214, in handle',
)
_PIECES = 512


class Text:
    """Texts of about a wanted size, from a seeded pool of paragraphs."""

    def __init__(self, rng: random.Random) -> None:
        """Fill the pools from ``rng``."""
        self._rng = rng
        self._prose = [self._paragraph(_PROSE, " ") for _ in range(_PIECES)]
        self._code = [self._paragraph(_CODE, "\n") for _ in range(_PIECES)]
        self._random = base64.b64encode(rng.randbytes(96 * 1024)).decode()

    def prose(self, size: float) -> str:
        """Return JSON-escaped sentences of about ``size`` bytes."""
        return self._take(self._prose, int(size))

    def code(self, size: float) -> str:
        """Return JSON-escaped source lines and logs of about ``size`` bytes."""
        return self._take(self._code, int(size))

    def base64(self, size: int) -> str:
        """Return ``size`` characters of base64."""
        start = self._rng.randrange(1024)
        return (self._random[start:] * (size // len(self._random) + 2))[:size]

    def skewed(self, median: float, spread: float = 1.2) -> float:
        """Return a log-normal size: most are near the median, a few far above."""
        return min(self._rng.lognormvariate(0, spread) * median, 400_000)

    def _paragraph(self, lines: tuple[str, ...], joint: str) -> str:
        text = joint.join(self._rng.choice(lines) for _ in range(self._rng.randint(1, 6)))
        return json.dumps(text + joint, ensure_ascii=False)[1:-1]

    def _take(self, pool: list[str], size: int) -> str:
        at = self._rng.randrange(len(pool))
        parts: list[str] = []
        while size > 0:
            parts.append(pool[at])
            size -= len(pool[at])
            at = (at + 1) % len(pool)
        return "".join(parts)
