"""Print the messages that hold a text, as they are found."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from connecting import own_server, quoted

if TYPE_CHECKING:
    from flue.agentindex.v1.agent_index_pb2 import Hit


def marked(hit: Hit) -> str:
    """Mark the matches, whose ranges are bytes of the snippet."""
    snippet = hit.snippet.encode()
    parts, start = [], 0
    for found in hit.ranges:
        parts += [snippet[start : found.start], b"[", snippet[found.start : found.end], b"]"]
        start = found.end
    return b"".join([*parts, snippet[start:]]).decode()


def main() -> None:
    """Search; a stream that breaks goes on from the last hit."""
    if len(sys.argv) != 2:
        sys.exit("usage: search.py TEXT")
    with own_server() as client:
        for hit in client.agentindex.search(sys.argv[1]):
            print(hit.tool, hit.id, hit.offset, quoted(marked(hit)), sep="\t")


if __name__ == "__main__":
    main()
