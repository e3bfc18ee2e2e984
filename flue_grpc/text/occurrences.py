"""Which places of a text a ranked query matches."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import accumulate
from typing import TYPE_CHECKING, Final

import msgspec

from flue_grpc.text.locate import chunks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from flue_grpc.text.query import Term

_EDGE: Final = "\0"  # no token holds it
_LOOK_ON: Final = 64 * 1024  # code points behind the first occurrence that may be better


class Occurrence(msgspec.Struct, frozen=True, gc=False):
    """A term's number in the query, and the code points where it stands."""

    start: int
    end: int
    term: int


def occurrences(text: str, terms: Sequence[Term]) -> Iterator[Occurrence]:
    """Yield each place where one of ``terms`` stands, in the order of their last tokens."""
    exact: dict[str, list[int]] = defaultdict(list)
    prefixes: list[tuple[str, int]] = []
    for number, term in enumerate(terms):
        if term.is_prefix:
            prefixes.append((term.tokens[-1], number))
        else:
            exact[term.tokens[-1]].append(number)
    stems = tuple(stem for stem, _ in prefixes)
    leads = ["".join(f"{_EDGE}{token}" for token in term.tokens[:-1]) + _EDGE for term in terms]
    for chunk in chunks(text, max((len(term.tokens) for term in terms), default=1)):
        words = [token for _, _, token in chunk.tokens]
        joined = _EDGE.join(("", *words))
        starts = list(accumulate((1 + len(word) for word in words), initial=0))
        for last, word in enumerate(words):
            if last < chunk.repeated or (word not in exact and not word.startswith(stems)):
                continue
            ending = [number for stem, number in prefixes if word.startswith(stem)]
            for number in exact.get(word, []) + ending:
                first = last - len(terms[number].tokens) + 1
                if first >= 0 and joined.startswith(leads[number], starts[first]):
                    yield Occurrence(*chunk.place(first, last), number)


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
