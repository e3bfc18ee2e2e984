"""Print a transcript and go on as it grows, also after a lost connection."""

from __future__ import annotations

import sys

from connecting import own_server, quoted

from flue.agentindex.v1 import agent_index_pb2 as pb


def main() -> None:
    """Follow; after a break it goes on at the same offset of the same file."""
    if len(sys.argv) != 3:
        sys.exit("usage: follow.py TOOL ID")
    tool, session_id = sys.argv[1:]
    with own_server() as client:
        for message in client.agentindex.read_transcript(tool, session_id, follow=True):
            role = pb.Role.Name(message.role).removeprefix("ROLE_")
            print(message.offset, role, quoted(message.text), sep="\t", flush=True)


if __name__ == "__main__":
    main()
