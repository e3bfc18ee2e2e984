"""Executes the Dockerfile step by step, without a container engine.

Each stage is an overlay over this machine's root, entered with chroot in a mount
namespace of its own: steps write to absolute paths and see nothing of the
repository but what COPY brought. This machine's Python stands in for the base
image's, at the same place.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import grpc
import pytest

from flue.agentindex.v1 import agent_index_pb2, agent_index_pb2_grpc
from tests.tools import packaged

ROOT = Path(__file__).parents[2]
USER = 65532
FROM_HOST = re.compile(r"(PIP_|SSL_|REQUESTS_CA|CURL_CA|https?_proxy|no_proxy)", re.IGNORECASE)
ENTER = """
set -e
mount -t overlay overlay -o "lowerdir=/,upperdir=$UPPER,workdir=$WORK" "$MERGED"
mount -t tmpfs -o mode=1777 tmpfs "$MERGED/tmp"
mount -t tmpfs tmpfs "$MERGED$HIDDEN"
mount --bind "$PYTHON" "$MERGED/usr/local"
mount --rbind /dev "$MERGED/dev"
mount --rbind /proc "$MERGED/proc"
while [ "$1" != -- ]; do
    mkdir -p "$MERGED$2"
    mount --bind "$1" "$MERGED$2"
    [ "$3" = rw ] || mount -o remount,bind,ro "$MERGED$2"
    shift 3
done
shift
[ "$SEALED" = no ] || mount -o remount,ro "$MERGED"
exec chroot "$MERGED" setpriv --reuid "$UID_" --regid "$UID_" --clear-groups $LESS \
    env -i -C "$DIRECTORY" "$@"
"""


def can_enter_namespaces():
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        return False
    with tempfile.TemporaryDirectory() as name:
        for part in ("u", "w", "m"):
            (Path(name) / part).mkdir()
        options = f"lowerdir=/,upperdir={name}/u,workdir={name}/w"
        mount = ["mount", "-t", "overlay", "overlay", "-o", options, f"{name}/m"]
        return subprocess.run(["unshare", "--mount", *mount], check=False).returncode == 0


needs_namespaces = pytest.mark.skipif(
    "not os.environ.get('CI') and not can_enter_namespaces()",
    reason="needs root, mount namespaces and overlayfs to execute the Dockerfile's steps",
)


class Step:
    def __init__(self, line):
        self.name, _, rest = line.partition(" ")
        words = shlex.split(rest) if self.name != "RUN" else []
        self.flags = dict(
            word.removeprefix("--").split("=", 1) for word in words if word.startswith("--")
        )
        self.words = [word for word in words if not word.startswith("--")]
        self.text = re.sub(r"^(--\S+ +)+", "", rest)

    @property
    def argv(self):
        """The words of an exec form, a JSON list."""
        return json.loads(self.text.removeprefix("CMD").strip())


def parse(path):
    text = re.sub(r"^#.*\n", "", path.read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    return [Step(re.sub(r"\s+", " ", line).strip()) for line in text.splitlines() if line.strip()]


def stages(steps):
    found = []
    for step in steps:
        if step.name == "FROM":
            found.append([])
        found[-1].append(step)
    return found


def ignored(path, patterns):
    """Tell as .dockerignore does: the last pattern that matches the path decides."""
    verdict = False
    for pattern in patterns:
        bare = pattern.removeprefix("!")
        expression = re.escape(bare).replace(r"\*\*/", "(?:.*/)?").replace(r"\*", "[^/]*")
        if re.fullmatch(f"{expression}(?:/.*)?", path):
            verdict = not pattern.startswith("!")
    return verdict


def copy_context(source, target):
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    patterns = [line for line in lines if line and not line.startswith("#")]
    base = ROOT / source
    files = [base] if base.is_file() else sorted(p for p in base.rglob("*") if p.is_file())
    copied = 0
    for file in files:
        if ignored(str(file.relative_to(ROOT)), patterns):
            continue
        to = target / file.relative_to(base) if base.is_dir() else target / file.name
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, to)
        copied += 1
    assert copied, f"COPY {source}: the build context has no such file"


class Stage:
    """One FROM and what its steps have made of it so far."""

    def __init__(self, directory):
        self.paths = {name: directory / name for name in ("upper", "work", "merged")}
        for path in self.paths.values():
            path.mkdir(parents=True)
        self.environment = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            # A shared libpython is looked for where this Python was built for.
            "LD_LIBRARY_PATH": "/usr/local/lib",
        }
        self.directory = "/"
        self.user = 0

    def command(self, argv, *, sealed=False, mounts=(), network=False):
        environment = dict(self.environment)
        if network:
            environment |= {k: v for k, v in os.environ.items() if FROM_HOST.match(k)}
        flat = [str(part) for mount in mounts for part in mount]
        variables = [f"{name}={value}" for name, value in environment.items()]
        return ["unshare", "--mount", "sh", "-c", ENTER, "sh", *flat, "--", *variables, *argv], {
            "UPPER": self.paths["upper"],
            "WORK": self.paths["work"],
            "MERGED": self.paths["merged"],
            "PYTHON": sys.base_prefix,
            "HIDDEN": f"/{ROOT.parts[1]}",
            "SEALED": "yes" if sealed else "no",
            "UID_": str(self.user),
            "LESS": "--no-new-privs --inh-caps=-all --bounding-set=-all" if self.user else "",
            "DIRECTORY": self.directory,
            "PATH": os.environ["PATH"],
        }

    def apply(self, step, others):
        getattr(self, f"_{step.name.lower()}", self._remember)(step, others)

    def _remember(self, step, _others):
        assert step.name in {"FROM", "VOLUME", "STOPSIGNAL", "HEALTHCHECK", "ENTRYPOINT", "CMD"}

    def _env(self, step, _others):
        for word in step.words:
            name, value = word.split("=", 1)
            self.environment[name] = value.replace("$PATH", self.environment["PATH"])

    def _workdir(self, step, _others):
        self.directory = step.words[0]
        (self.paths["upper"] / self.directory.lstrip("/")).mkdir(parents=True, exist_ok=True)

    def _user(self, step, _others):
        self.user = int(step.words[0].split(":")[0])

    def _run(self, step, _others):
        argv, environment = self.command(["sh", "-c", step.text], network=True)
        done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"RUN {step.text}\n{done.stdout}{done.stderr}"

    def _copy(self, step, others):
        *sources, target = step.words
        to = self.paths["upper"] / str(Path(self.directory) / target).lstrip("/")
        for source in sources:
            if "from" in step.flags:
                origin = others[step.flags["from"]].paths["upper"] / source.lstrip("/")
                to.parent.mkdir(parents=True, exist_ok=True)
                subprocess.run(["cp", "-a", "--", origin, to], check=True)
            else:
                copy_context(source, to)


@pytest.fixture(scope="module")
def steps():
    return parse(ROOT / "Dockerfile")


@pytest.fixture(scope="module")
def image(steps):
    """The last stage, after every step of every stage."""
    with tempfile.TemporaryDirectory(prefix="image") as name:
        made = {}
        for number, stage_steps in enumerate(stages(steps)):
            stage = Stage(Path(name) / str(number))
            for step in stage_steps:
                stage.apply(step, made)
            made[stage_steps[0].words[-1]] = stage
        yield stage


@pytest.fixture
def outside(image):
    """Directories of the host that the container mounts; short, for the socket's sake."""
    with tempfile.TemporaryDirectory(prefix="c") as name:
        for part in ("data", "run", "home"):
            (Path(name) / part).mkdir()
            os.chown(Path(name) / part, image.user, image.user)
        (Path(name) / "home" / ".claude" / "projects" / "-w").mkdir(parents=True)
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture
def container(image, steps, outside):
    """What `docker run --read-only` with the image's own command would start."""
    last = {step.name: step for step in stages(steps)[-1]}
    argv, environment = image.command(
        [*last["ENTRYPOINT"].argv, *last["CMD"].argv],
        sealed=True,
        mounts=[
            (outside / "data", "/var/lib/flue-grpc", "rw"),
            (outside / "run", "/run/flue-grpc", "rw"),
            (outside / "home", "/home/agent", "ro"),
        ],
    )
    process = subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, text=True)
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def inside(process, image, argv):
    """Run a command in the container, as its engine does for HEALTHCHECK."""
    variables = [f"{name}={value}" for name, value in image.environment.items()]
    enter = ["nsenter", "--target", str(process.pid), "--mount", "--root", "--wd=/"]
    drop = ["setpriv", "--reuid", str(image.user), "--regid", str(image.user), "--clear-groups"]
    return subprocess.run(
        [*enter, *drop, "env", "-i", *variables, *argv],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_linter_has_nothing_to_say():
    done = subprocess.run(
        [packaged("hadolint"), ROOT / "Dockerfile"], capture_output=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, b"")


def test_the_context_holds_only_what_is_copied(steps):
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    allowed = {line[1:] for line in lines if line.startswith("!")}
    copied = {
        source.rstrip("/")
        for step in steps
        if step.name == "COPY" and "from" not in step.flags
        for source in step.words[:-1]
    }
    assert copied == allowed


def test_the_image_runs_as_nobody_and_stops_by_sigterm(steps):
    last = {step.name: step for step in stages(steps)[-1]}
    assert last["USER"].words == [f"{USER}:{USER}"]
    assert last["STOPSIGNAL"].words == ["SIGTERM"]
    assert last["HEALTHCHECK"].argv == ["flue-grpc", "health"]
    assert last["ENTRYPOINT"].argv == ["flue-grpc"]


def test_the_line_to_run_it_takes_everything_away(steps):
    text = (ROOT / "docs" / "operations.md").read_text().replace("\\\n", " ")
    (line,) = re.findall(r"^docker run (.*)$", text, re.MULTILINE)
    flags = f" {' '.join(line.split())} "
    for flag in ("--read-only", "--cap-drop ALL", "--security-opt no-new-privileges"):
        assert f" {flag} " in flags
    assert " --network none " in flags
    mounts = dict(re.findall(r"-v \S+:(/\S+?)(:ro)? ", flags))
    volumes = next(step for step in stages(steps)[-1] if step.name == "VOLUME")
    # What is mounted to be written is what the image declares, and the home is only read.
    assert {path for path, mode in mounts.items() if not mode} == set(volumes.argv)
    assert all(path.startswith("/home/agent/.") for path, mode in mounts.items() if mode)
    assert "--cap-add" not in flags
    assert "--privileged" not in flags


@needs_namespaces
def test_the_image_holds_the_wheel_and_no_sources(image):
    upper = image.paths["upper"]
    assert (upper / "opt/flue-grpc/bin/flue-grpc").exists()
    program = upper / "opt/flue-grpc"
    brought = [p for p in upper.rglob("*") if p.is_file() and program not in p.parents]
    assert brought == []
    assert not list(upper.glob("opt/flue-grpc/lib/python*/site-packages/pip"))
    packages = {p.name for p in upper.glob("opt/flue-grpc/lib/python*/site-packages/*")}
    assert {"flue", "flue_grpc", "grpc", "apsw", "prometheus_client"} <= packages


@needs_namespaces
def test_the_container_serves_with_a_read_only_root_and_drains(image, steps, container, outside):
    line = container.stdout.readline()
    assert "flue.sock" in line
    socket = outside / "run" / "flue.sock"
    with grpc.insecure_channel(f"unix:{socket}") as channel:
        index = agent_index_pb2_grpc.AgentIndexStub(channel)
        responses = list(index.Snapshot(agent_index_pb2.SnapshotRequest(), timeout=30))
    assert responses[-1].next_page_token == ""
    last = {step.name: step for step in stages(steps)[-1]}
    health = inside(container, image, last["HEALTHCHECK"].argv)
    assert health.returncode == 0, health.stderr
    refused = inside(container, image, ["sh", "-c", "touch /opt/flue-grpc/new"])
    assert "Read-only file system" in refused.stderr
    container.send_signal(getattr(signal, last["STOPSIGNAL"].words[0]))
    assert container.wait(timeout=30) == 0
    assert {path.stat().st_uid for path in (outside / "data").rglob("*")} == {USER}
