"""Kill the server at random moments under concurrent writers, with backups beside.

Every answered write is there once, of one without an answer all or nothing, and a
repeat of it by its request id is never written twice (contract rule 8, behaviour A1).
"""

from __future__ import annotations

import random
import threading
import time
from contextlib import closing

import pytest

from flue.store.v1 import store_pb2 as pb
from flue_grpc.store.backup import backup
from flue_grpc.store.checking import check
from flue_grpc.store.store import Store
from flue_grpc.store.values import StoreSettings
from tests.torture.clients import Client, settle
from tests.torture.victim import Victim, until

CLIENTS = 4
CHECK_EVERY = 10


@pytest.fixture
def victim(directory):
    with closing(Victim(directory, "--no-ranked-index")) as started:
        yield started


def test_killed_servers_lose_and_double_nothing(victim, kills, seed, record_property):
    dice = random.Random(seed)
    clients = [Client(number, dice.random()) for number in range(CLIENTS)]
    for turn in range(kills):
        victim.start()
        for client in clients:
            settle(victim.store, client)
            client.start(victim.store)
        copy = _Copy(victim, clients) if turn % CHECK_EVERY == 5 else None
        until(time.monotonic() + dice.expovariate(1 / 0.05))
        victim.kill()
        for client in clients:
            client.join()
            assert client.errors == []
        if copy is not None:
            copy.verify()
        if turn % CHECK_EVERY == 0:
            _check_index(victim)
    victim.start()
    for client in clients:
        settle(victim.store, client)
        _find_some(victim, client)
    victim.stop()
    _check_index(victim)
    assert sum(client.answered for client in clients) > kills
    assert victim.lives == kills + 1
    record_property("kills", kills)
    record_property("answered", sum(client.answered for client in clients))


def _check_index(victim):
    """Hold database and search index against each other, as they lie after the kill."""
    checked = check(victim.database, StoreSettings())
    assert checked.is_sound, checked


def _find_some(victim, client):
    """Find the latest texts by their first word, which no other text has."""
    for messages in client.known.sessions.values():
        for number, text in messages[-3:]:
            request = pb.SearchMessagesRequest(query=text.split()[0], limit=10)
            results = [r for each in victim.store.SearchMessages(request) for r in each.results]
            found = [(result.message.id, result.message.content) for result in results]
            assert (number, text) in found


class _Copy:
    """A backup that runs while the server is written to, and killed."""

    def __init__(self, victim, clients):
        self._path = victim.directory / f"backup-{victim.lives}"
        self._before = [
            (client, {name: list(stored) for name, stored in list(client.known.sessions.items())})
            for client in clients
        ]
        self._error = None
        self._thread = threading.Thread(target=self._run, args=(victim.database,))
        self._thread.start()

    def _run(self, database):
        try:
            backup(database, self._path, StoreSettings())
        except Exception as error:  # noqa: BLE001 - told by verify
            self._error = error

    def verify(self):
        """The copy is sound and holds all that was answered before it began."""
        self._thread.join()
        assert self._error is None
        assert check(self._path, StoreSettings()).is_sound
        with closing(Store.open(self._path)) as copy:
            for client, sessions in self._before:
                for name, stored in sessions.items():
                    if not _may_be_gone(client, name):
                        listed = [placed.item for placed in copy.list_messages(name)]
                        there = [(message.id, message.content) for message in listed]
                        assert there[: len(stored)] == stored
        self._path.unlink()


def _may_be_gone(client, session):
    is_in_doubt = client.doubt is not None and client.doubt.call == "DeleteSession"
    return session not in client.known.sessions or (
        is_in_doubt and client.doubt.request.id == session
    )
