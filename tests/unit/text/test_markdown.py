from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from flue_grpc.text.markdown import code, fenced

UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
NASTY = st.text(st.sampled_from("ab`\n\t\r\x1b[]0;m\x07\x9b\u202e"))


@settings(max_examples=100, deadline=None)
@given(NASTY)
@example("``\x1b[m`\n``\x1b[m`")
def test_nothing_in_a_fence_closes_it_or_acts(text):
    opening, *lines, closing = fenced(text, "sh").split("\n")[:-1]
    assert (opening, set(closing)) == (f"{closing}sh", {"`"})
    assert not any(closing in line for line in lines)
    assert not UNSAFE.search("\n".join(lines))


@settings(max_examples=100, deadline=None)
@given(NASTY)
@example("`\x1b[m`")
def test_nothing_in_code_closes_it_or_acts(text):
    line = code(text)
    ticks = re.match("`+", line)[0]
    assert not UNSAFE.search(line)
    assert "\n" not in line
    if "`" in text:
        assert re.findall("`+", line)[1:-1].count(ticks) == 0


@pytest.mark.parametrize(
    ("text", "written"),
    [("ls", "`ls`"), ("a`b", "`` a`b ``"), ("a``b", "``` a``b ```"), ("a\x1b[5m\nb", "`a b`")],
)
def test_code_among_prose(text, written):
    assert code(text) == written
