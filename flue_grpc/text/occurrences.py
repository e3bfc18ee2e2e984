"""Which places of a text a ranked query matches."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from typing import TYPE_CHECKING, Final

import msgspec

from flue_grpc.text.locate import located_tokens

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from flue_grpc.text.query import Term

_LOOK_ON: Final = 64 * 1024  # code points behind the first occurrence that may be better


class Occurrence(msgspec.Struct, frozen=True, gc=False):
    """A term's number in the query, and the code points where it stands."""

    start: int
    end: int
    term: int


def occurrences(text: str, terms: Sequence[Term]) -> Iterator[Occurrence]:
    """Yield each place where one of ``terms`` stands, in the order of their last tokens."""
    by_last: dict[str, list[int]] = defaultdict(list)
    prefixes = [(term.tokens[-1], number) for number, term in enumerate(terms) if term.is_prefix]
    for number, term in enumerate(terms):
        if not term.is_prefix:
            by_last[term.tokens[-1]].append(number)
    starts: deque[int] = deque(maxlen=max((len(term.tokens) for term in terms), default=0))
    before: deque[str] = deque(maxlen=starts.maxlen)
    for located in located_tokens(text):
        starts.append(located.start)
        before.append(located.token)
        ending = [number for stem, number in prefixes if located.token.startswith(stem)]
        for number in (*by_last.get(located.token, ()), *ending):
            tokens = terms[number].tokens
            if _ends_with(before, tokens[:-1]):
                yield Occurrence(starts[-len(tokens)], located.end, number)


def best_window(found: Iterable[Occurrence], width: int) -> list[tuple[int, int]]:
    """Return the spans from the first place on where most terms stand within ``width``.

    ``width`` and the spans, sorted and disjoint, are in code points; empty when nothing
    was found.
    """
    places = _early(found)
    best, most = 0, 0
    counts: Counter[int] = Counter()
    end = 0
    for first, place in enumerate(places):
        while end < len(places) and places[end].start < place.start + width:
            counts[places[end].term] += 1
            end += 1
        if len(counts) > most:
            best, most = first, len(counts)
        counts[place.term] -= 1
        if not counts[place.term]:
            del counts[place.term]
    return _disjoint(places[best:])


def _ends_with(before: deque[str], tokens: Sequence[str]) -> bool:
    """Say whether ``tokens`` stand before the last of ``before``."""
    size = len(tokens)
    return size < len(before) and all(
        before[number - size - 1] == token for number, token in enumerate(tokens)
    )


def _early(found: Iterable[Occurrence]) -> list[Occurrence]:
    """Return the occurrences that are not far behind the first, by place."""
    places: list[Occurrence] = []
    for place in found:
        if places and place.end > places[0].end + _LOOK_ON:
            break
        places.append(place)
    return sorted(places, key=lambda place: (place.start, -place.end))


def _disjoint(places: Iterable[Occurrence]) -> list[tuple[int, int]]:
    """Join spans that overlap."""
    spans: list[tuple[int, int]] = []
    for place in places:
        if spans and place.start < spans[-1][1]:
            spans[-1] = (spans[-1][0], max(spans[-1][1], place.end))
        else:
            spans.append((place.start, place.end))
    return spans
