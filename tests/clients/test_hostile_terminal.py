"""What a hostile transcript does to the terminal of whoever looks at it: nothing."""

from __future__ import annotations

import re
import signal
import subprocess

import pytest

from tests.clients.terminal import Terminal

HOSTILE = [
    "auto <http://a.b/%1B]0;PWNED%1B%5C%1B[2J> \x1b]0;PWNED\x07\x9b2J",
    "entities &#x202e;abc &#x2066; &#155;2J &#x9d;0;PWNED&#x9c; &#13;X \u202e",
    '![im%1b[31m](http://q/%1B[31m "&#x202e;") [link](http://z/%1B[5m "&#x202e;")',
    "```python\x1b[5m &#x202e;\nprint(1) # \u202e\x9b5m\n```",
    "| a&#x202e; | `b\x1b[5m` |\n|--|--|\n| <http://a.b/%1B[2J> | &#x9b;2J |",
    "# \x1b]8;;http://evil\x1b\\click\x1b]8;;\x1b\\\n\n<b>&#x202e;</b> [r]\n\n[r]: %1B[2J '&#x202e;'",
    "the end",
]
UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
# Of colours and weights alone, as rich writes them: none that blinks or hides.
COLOURS = re.compile(r"\x1b\[(?:[0-47]|3[0-7]|38;5;\d+|4[0-9]|9[0-7]|10[0-7]|;)*m")


@pytest.mark.parametrize(
    "command",
    [("show", "--no-pager"), ("show",), ("tail",), ("show", "--plain"), ("show", "--raw")],
    ids=" ".join,
)
@pytest.mark.parametrize("pager", ["", "cat"], ids=["unpaged", "paged"])
def test_only_colours_reach_the_terminal(flags, pi_session, command, pager):
    pi_session("hostile", *HOSTILE)
    name, *options = command
    terminal = Terminal([name, "hostile", *options, *flags], stderr=subprocess.DEVNULL, PAGER=pager)
    terminal.read_until("the end")
    if name == "tail":
        terminal.process.send_signal(signal.SIGINT)
    code, output = terminal.finish()
    assert code in {0, 130}
    # A terminal adds the carriage return to each line.
    text = COLOURS.sub("", output.replace("\r\n", "\n"))
    assert UNSAFE.search(text) is None
    assert "PWNED" in text
