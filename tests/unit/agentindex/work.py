"""Counts what is done to the files below a directory: opened, and bytes read."""

from __future__ import annotations

import os


class Work:
    def __init__(self, monkeypatch, below):
        self.opened = []
        self.read = 0
        self._descriptors = set()
        self._below = str(below)
        plain_open, plain_pread, plain_preadv = os.open, os.pread, os.preadv

        def counting_open(path, flags, *more, **named):
            descriptor = plain_open(path, flags, *more, **named)
            self._descriptors.discard(descriptor)
            if str(path).startswith(self._below):
                self.opened.append(str(path))
                self._descriptors.add(descriptor)
                assert flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) == 0
            return descriptor

        def counting_pread(descriptor, size, offset):
            data = plain_pread(descriptor, size, offset)
            self.read += len(data) if descriptor in self._descriptors else 0
            return data

        def counting_preadv(descriptor, buffers, offset, *more):
            count = plain_preadv(descriptor, buffers, offset, *more)
            self.read += count if descriptor in self._descriptors else 0
            return count

        monkeypatch.setattr(os, "open", counting_open)
        monkeypatch.setattr(os, "pread", counting_pread)
        monkeypatch.setattr(os, "preadv", counting_preadv)

    def reset(self):
        self.opened.clear()
        self.read = 0
