from __future__ import annotations

import json
import sqlite3
from typing import NamedTuple

import pytest

from flue_grpc import config
from flue_grpc.agentindex.index import AgentIndex
from flue_grpc.doctor import places
from flue_grpc.doctor.findings import Finding, Level, in_bytes
from flue_grpc.services import index_settings
from flue_grpc.store.store import Store
from tests.waiting import wait_until


class Usage(NamedTuple):
    free: int


@pytest.fixture
def environment(tmp_path):
    return {"HOME": str(tmp_path)}


@pytest.fixture
def configuration(tmp_path, environment):
    given = {"data_dir": str(tmp_path / "data"), "home": str(tmp_path)}
    return config.combine(given, environment)


@pytest.fixture
def data(configuration):
    path = configuration.settings.data_dir
    path.mkdir(mode=0o700)
    return path


def levels(findings):
    return [(finding.subject, finding.level.value) for finding in findings]


def test_the_configuration_file_is_named_whether_it_is_there_or_not(environment, tmp_path):
    path = tmp_path / ".config" / "flue" / "grpc.toml"
    (found,) = places.configuration_file({}, environment)
    assert found == Finding("configuration", Level.OK, f"{path}: none, defaults hold")
    path.parent.mkdir(parents=True)
    path.touch()
    (found,) = places.configuration_file({}, environment)
    assert found.text == str(path)


def test_what_is_not_there_yet_is_no_problem_and_is_not_made(configuration, environment, tmp_path):
    found = [*places.store(configuration), *places.index(configuration, environment)]
    assert levels(found) == [("data", "note"), ("index", "note")]
    assert list(tmp_path.iterdir()) == []


def test_a_store_in_order(configuration, data):
    Store.open(data / "store.db").close()
    before = sorted(data.iterdir())
    directory, database = places.store(configuration)
    assert (directory.level, database.level) == (Level.OK, Level.OK)
    assert directory.text.startswith(f"{data} (mode 0700, ")
    assert database.text.startswith(f"{data}/store.db: store, version ")
    assert sorted(data.iterdir()) == before


@pytest.mark.parametrize(
    ("content", "text"),
    [(b"not a database" * 1000, "store.db"), (None, "is a database of another program")],
)
def test_a_database_that_cannot_be_used(configuration, data, content, text):
    if content is None:
        with sqlite3.connect(data / "store.db") as other:
            other.execute("create table invoices(id)")
        other.close()
    else:
        (data / "store.db").write_bytes(content)
    found = list(places.store(configuration))[-1]
    assert (found.subject, found.level) == ("store", Level.PROBLEM)
    assert text in found.text
    assert found.advice


def test_a_directory_that_others_may_write_in(configuration, data):
    data.chmod(0o777)
    found = next(places.store(configuration))
    assert (found.level, found.advice) == (
        Level.PROBLEM,
        f"let {data} be yours alone: `chmod 700 {data}`",
    )


def test_a_network_disk(configuration, data, monkeypatch):
    monkeypatch.setattr(places.files, "filesystem", lambda _path: "nfs4")
    found = next(places.store(configuration))
    assert found.level is Level.PROBLEM
    assert "nfs4" in found.text


def test_a_full_disk(configuration, data, monkeypatch):
    monkeypatch.setattr(places.shutil, "disk_usage", lambda _path: Usage(1024))
    found = next(places.store(configuration))
    assert found == Finding("data", Level.PROBLEM, f"{data} has 1 KiB left", "free some space")


def test_an_index_tells_its_size(configuration, environment):
    AgentIndex.open(index_settings(configuration, environment)).close()
    directory, index = places.index(configuration, environment)
    assert (directory.level, index.level) == (Level.OK, Level.OK)
    assert ": 0 transcripts in 0 files, " in index.text


def test_an_index_is_counted_as_the_metrics_do(configuration, environment):
    """Of two files with one id only one is a session."""
    folder = configuration.settings.home / ".pi" / "agent" / "sessions" / "--srv--"
    folder.mkdir(parents=True)
    lines = (
        {"type": "session", "version": 3, "id": "same", "cwd": "/srv"},
        {"type": "message", "id": "1", "message": {"role": "user", "content": "hello"}},
    )
    text = "".join(json.dumps(line) + "\n" for line in lines)
    for day in (1, 2):
        (folder / f"2026-01-0{day}T00-00-00-000Z_same.jsonl").write_text(text)
    with AgentIndex.open(index_settings(configuration, environment)) as index:
        wait_until(lambda: index.transcripts and not index.building)
        count = index.transcripts
    assert count == 1
    assert ": 1 transcript in 2 files, " in list(places.index(configuration, environment))[-1].text


def test_a_damaged_index_is_no_problem_because_it_is_made_anew(configuration, environment):
    AgentIndex.open(index_settings(configuration, environment)).close()
    (file,) = (configuration.settings.data_dir / "agents").glob("*.db")
    file.write_bytes(b"rubbish" * 1000)
    index = list(places.index(configuration, environment))[-1]
    assert (index.level, index.advice) == (Level.NOTE, "the next start makes it anew")


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1 KiB"), (1536, "1.5 KiB"), (5 * 2**40, "5 TiB")],
)
def test_sizes_are_written_for_people(size, text):
    assert in_bytes(size) == text
