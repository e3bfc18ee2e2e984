"""Print the sessions of every coding agent, newest first."""

from __future__ import annotations

from connecting import connect_from_environment


def main() -> None:
    """List them; a list that breaks goes on by itself."""
    with connect_from_environment() as client:
        for summary in client.agentindex.snapshot():
            ended = summary.ended_at.ToJsonString() if summary.HasField("ended_at") else "-"
            count = f"{summary.message_count} messages"
            print(ended, summary.tool, summary.id, count, ascii(summary.title), sep="\t")


if __name__ == "__main__":
    main()
