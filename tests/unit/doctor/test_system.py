from __future__ import annotations

import resource

import pytest

from flue_grpc.doctor import system
from flue_grpc.doctor.findings import Level


def test_versions_name_everything_that_a_report_needs():
    subjects = {finding.subject: finding.text for finding in system.versions()}
    assert set(subjects) == {"version", "packages", "extras"}
    for name in ("grpcio", "protobuf", "SQLite"):
        assert name in subjects["packages"]
    assert subjects["version"].startswith("flue-grpc ")


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setattr(system, "_is_installed", lambda package: package != "hyperscan")
    text = list(system.versions())[-1].text
    assert text.endswith("; not installed: fast")


@pytest.mark.parametrize(
    ("soft", "level"),
    [(256, Level.PROBLEM), (1024, Level.OK), (resource.RLIM_INFINITY, Level.OK)],
)
def test_the_limit_of_open_files(monkeypatch, soft, level):
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (soft, 4096))
    (found,) = system.open_files()
    assert found.level is level
    assert ("ulimit -n 1024" in found.advice) is (level is Level.PROBLEM)


@pytest.mark.parametrize(("limit", "level"), [("2", Level.PROBLEM), ("3", Level.OK)])
def test_the_limit_of_watches_is_compared_with_the_directories(tmp_path, monkeypatch, limit, level):
    kernel, root = tmp_path / "kernel", tmp_path / "root"
    kernel.mkdir()
    (kernel / "max_user_watches").write_text(f"{limit}\n")
    (kernel / "max_user_instances").write_text("128\n")
    (root / "a" / "b").mkdir(parents=True)
    monkeypatch.setattr(system, "_INOTIFY", kernel)
    (found,) = system.file_watches([str(root), str(tmp_path / "missing")])
    assert found.level is level
    assert found.text.startswith(f"3 directories to watch, the kernel allows {limit} ")
    assert ("fs.inotify.max_user_watches=6" in found.advice) is (level is Level.PROBLEM)


def test_a_kernel_without_inotify_is_no_problem(tmp_path, monkeypatch):
    monkeypatch.setattr(system, "_INOTIFY", tmp_path)
    (found,) = system.file_watches([str(tmp_path)])
    assert found.level is Level.NOTE


def test_a_watcher_that_the_system_refuses_is_a_problem(tmp_path, monkeypatch):
    monkeypatch.setattr(system, "why_polling", lambda roots: f"no watcher for {len(roots)}")
    (found,) = system.file_watches(iter([str(tmp_path)]))
    assert found.level is Level.PROBLEM
    assert found.text.endswith(", but: no watcher for 1: changes are noticed by polling")
