"""Reading pages of notes in few words."""

from __future__ import annotations

import pytest

from flue_grpc.agentindex import pages
from flue_grpc.cancel import NEVER

BOTH_WAYS = pytest.mark.parametrize("direction", ["forward", "backward"])


def read(found, offset=None, direction="forward", *, limit=100, revision="", cancel=NEVER):
    return pages.read_page(found, offset, direction, limit, revision, cancel)


def stream(found, offset=None, direction="forward", *, limit=0, revision=""):
    return list(pages.read_transcript(found, offset, direction, limit, revision, NEVER))


def texts(page):
    return [message.text for message in page.messages]


def places(page):
    return [(message.offset, message.index) for message in page.messages]
