"""Finding transcript files below the roots of the adapters (behaviour B2, formats §1.8)."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from flue_grpc.agentindex.records import FileKey, Place, Record
from flue_grpc.agentindex.shortage import is_shortage

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from flue_grpc.agentindex.adapters.base import Adapter, Root, Source

Known = dict[Place, dict[str, Record]]
"""What the index has, by place and path."""


@dataclass(frozen=True, slots=True)
class RealRoot:
    """A root with its symbolic links resolved, and the adapter that reads below it."""

    adapter: Adapter[Any]
    root: Root
    place: Place

    @property
    def prefix(self) -> str:
        """What every path below it begins with."""
        return self.place.root.rstrip("/") + "/"


@dataclass(frozen=True, slots=True)
class Found:
    """A file that the index does not know as it is now; ``path`` has no symlinks."""

    path: str
    place: Place
    source: Source
    key: FileKey


@dataclass(slots=True)
class Discovery:
    """One walk: the files that are new or changed, and the paths of all there are."""

    dirty: list[Found] = field(default_factory=list)
    paths: set[str] = field(default_factory=set)


def real_roots(
    adapters: Sequence[Adapter[Any]], home: str, env: Mapping[str, str]
) -> tuple[RealRoot, ...]:
    """Return each root once, by its real path; missing ones too, they may appear later."""
    roots: dict[str, RealRoot] = {}
    for adapter in adapters:
        for root in adapter.roots(home, env):
            real = os.path.realpath(root.path)
            place = Place(adapter.tool, root.kind, real)
            roots.setdefault(real, RealRoot(adapter, root, place))
    return tuple(roots.values())


def discover(roots: Sequence[RealRoot], known: Known) -> Discovery:
    """Walk all roots, comparing each file with what is ``known`` of it.

    Nothing is opened but directories. One that cannot be read holds nothing; raises
    OSError when that is for a shortage of ours.
    """
    walk = _Walk(roots, known)
    for root in roots:
        walk.descend(root)
    walk.follow_links()
    return walk.result


def judge(roots: Sequence[RealRoot], path: str) -> Found | None:
    """Judge one file at ``path``, absolute and without symlinks, as a walk would."""
    for root in roots:
        if path.startswith(root.prefix):
            relative = tuple(path.removeprefix(root.prefix).split("/"))
            if all(map(_is_plain, relative)) and _is_entered(root, relative[:-1]):
                source = root.adapter.candidate(root.root, relative)
                key = _regular_key(path)
                if source is not None and key is not None and os.path.realpath(path) == path:
                    return Found(path, root.place, source, key)
    return None


class _Walk:
    """One walk over the roots; symbolic links wait until all real files are seen."""

    def __init__(self, roots: Sequence[RealRoot], known: Known) -> None:
        self.result = Discovery()
        self._roots = roots
        self._known = known
        self._links: list[tuple[str, RealRoot, tuple[str, ...]]] = []

    def descend(self, root: RealRoot) -> None:
        known = self._known.get(root.place, {})
        pending: list[tuple[str, tuple[str, ...]]] = [(root.place.root, ())]
        while pending:
            path, relative = pending.pop()
            for entry in _entries(path):
                try:
                    pending.extend(self._entry(entry, relative, root, known))
                except OSError:
                    continue  # it vanished while we looked

    def _entry(
        self,
        entry: os.DirEntry[str],
        relative: tuple[str, ...],
        root: RealRoot,
        known: Mapping[str, Record],
    ) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Take note of a file or link; return a directory to walk into."""
        if entry.is_file(follow_symlinks=False):
            self._file(entry, relative, root, known)
        elif _is_plain(entry.name):
            below = (*relative, entry.name)
            if entry.is_symlink():
                self._links.append((entry.path, root, below))
            elif entry.is_dir(follow_symlinks=False) and root.adapter.enters(root.root, below):
                return ((entry.path, below),)
        return ()

    def _file(
        self,
        entry: os.DirEntry[str],
        relative: tuple[str, ...],
        root: RealRoot,
        known: Mapping[str, Record],
    ) -> None:
        path = entry.path
        record = known.get(path)
        status = entry.stat(follow_symlinks=False)
        if record is not None:
            self.result.paths.add(path)
            if record.key != FileKey.of(status):
                self._dirty(path, root.place, record.source, status)
            return
        if path not in self.result.paths and _is_plain(entry.name):
            source = root.adapter.candidate(root.root, (*relative, entry.name))
            if source is not None:
                self.result.paths.add(path)
                self._dirty(path, root.place, source, status)

    def follow_links(self) -> None:
        """Accept a link whose target is a regular file inside a root, not met itself."""
        for path, root, relative in sorted(self._links, key=lambda link: link[0]):
            source = root.adapter.candidate(root.root, relative)
            real = os.path.realpath(path)
            target = next((r.place for r in self._roots if real.startswith(r.prefix)), None)
            key = _regular_key(real)
            if source is None or target is None or key is None or real in self.result.paths:
                continue
            self.result.paths.add(real)
            place = Place(root.place.tool, root.place.kind, target.root, is_linked=True)
            record = self._known.get(place, {}).get(real)
            if record is None or record.key != key or record.source != source:
                self.result.dirty.append(Found(real, place, source, key))

    def _dirty(self, path: str, place: Place, source: Source, status: os.stat_result) -> None:
        self.result.dirty.append(Found(path, place, source, FileKey.of(status)))


def _entries(path: str) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(path) as entries:
            yield from entries
    except OSError as error:
        if is_shortage(error):
            raise


def _is_plain(name: str) -> bool:
    """Whether a name is UTF-8 and neither hidden nor empty."""
    return name[:1] not in {"", "."} and (name.isascii() or _is_utf8(name))


def _is_utf8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_entered(root: RealRoot, folders: tuple[str, ...]) -> bool:
    return all(
        root.adapter.enters(root.root, folders[:depth]) for depth in range(1, len(folders) + 1)
    )


def _regular_key(path: str) -> FileKey | None:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return FileKey.of(status) if stat.S_ISREG(status.st_mode) else None
