"""No rest of an escape sequence is left in a snippet (behaviour B1)."""

from __future__ import annotations

import pytest

from flue_grpc.text.snippets import Snippet, literal_snippet


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        # Many terminals end colours with SI (tput sgr0), and spinners go back with BS.
        ("\x1b[m\x0f\x1b[31mneedle", Snippet("needle", ((0, 6),), 9)),
        ("\x08\x1b[1mneedle", Snippet("needle", ((0, 6),), 5)),
        ("built \x0f\x1b[31mneedle", Snippet("built needle", ((6, 12),), 12)),
        ("\x7f\x1b]0;title\x07needle", Snippet("needle", ((0, 6),), 11)),
        ("\x84\x9b31mneedle", Snippet("needle", ((0, 6),), 7)),
    ],
)
def test_a_control_character_before_an_escape_sequence_hides_it_not(text, shown):
    assert literal_snippet(text, "needle") == shown


def test_an_escape_sequence_that_begins_in_the_context_is_removed_whole():
    link = f"\x1b]8;;http://example.org/{'u' * 400}\x1b\\"
    assert literal_snippet(f"needle {link}here", "needle") == Snippet("needle here", ((0, 6),), 0)


def test_an_escape_sequence_that_ends_in_the_context_is_removed_whole():
    link = f"\x1b]8;;http://example.org/{'u' * 400}\x1b\\"
    shown = literal_snippet(f"{link}a needle", "needle")
    assert shown == Snippet("a needle", ((2, 8),), len(link) + 2)
