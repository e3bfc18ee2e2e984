"""Print the sessions of every coding agent, newest first."""

from __future__ import annotations

from connecting import own_server, quoted


def main() -> None:
    """List them; a list that breaks goes on by itself."""
    with own_server() as client:
        for summary in client.agentindex.snapshot():
            ended = summary.ended_at.ToJsonString() if summary.HasField("ended_at") else "-"
            count = f"{summary.message_count} messages"
            print(ended, summary.tool, summary.id, count, quoted(summary.title), sep="\t")


if __name__ == "__main__":
    main()
