"""The Go and TypeScript examples as clients, one after another for the whole time."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import threading
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
BINARIES = ROOT / ".cache" / "soak"
RUN_SECONDS = 60
# How an example may end while transcripts are deleted and servers restarted.
FORESEEN = ("NOTFOUND", "OUTOFRANGE", "UNAVAILABLE", "ENOENT", "ECONNREFUSED")
REST_SECONDS = 1.0


def commands():
    """Build what there are toolchains for; return commands by language."""
    found = {}
    if go := shutil.which("go"):
        BINARIES.mkdir(parents=True, exist_ok=True)
        for name in ("list", "search", "follow"):
            command = [go, "build", "-o", str(BINARIES / name), f"./{name}"]
            subprocess.run(command, cwd=EXAMPLES / "go", check=True)
        found["go"] = {name: [str(BINARIES / name)] for name in ("list", "search", "follow")}
    node, npm = shutil.which("node"), shutil.which("npm")
    if node and npm:
        package = EXAMPLES / "typescript"
        if not (package / "node_modules").exists():
            subprocess.run([npm, "ci", "--no-audit", "--no-fund"], cwd=package, check=True)
        subprocess.run([npm, "run", "--silent", "build"], cwd=package, check=True)
        dist = package / "dist"
        found["connect"] = {n: [node, str(dist / f"{n}.js")] for n in ("list", "search", "follow")}
        main = [node, str(dist / "grpc-js-main.js")]
        found["grpc-js"] = {name: [*main, name] for name in ("list", "search", "follow")}
    return found


class Others:
    """Runs the examples of every language there is, and counts how they end."""

    def __init__(self, address, session_ids):
        self._address = address
        self._session_ids = session_ids
        self._commands = commands()
        self._ending = threading.Event()
        self._threads = []
        self.ended = Counter()
        self.complaints = []

    @property
    def missing(self):
        """Name the languages of the examples that cannot run here."""
        return sorted({"go", "connect", "grpc-js"} - self._commands.keys())

    @property
    def languages(self):
        return sorted(self._commands)

    def start(self):
        for language, programs in self._commands.items():
            thread = threading.Thread(target=self._run, args=(language, programs))
            thread.start()
            self._threads.append(thread)

    def stop(self):
        self._ending.set()
        for thread in self._threads:
            thread.join()

    def _run(self, language, programs):
        dice = random.Random(language)
        while not self._ending.wait(REST_SECONDS):
            name = dice.choice(sorted(programs))
            arguments = {
                "list": [],
                "search": ["timeout"],
                "follow": ["claude", dice.choice(self._session_ids())],
            }[name]
            self._one(language, name, [*programs[name], *arguments], dice.random() * 8 + 2)

    def _one(self, language, name, command, seconds):
        process = subprocess.Popen(
            command,
            env=os.environ | {"FLUE_ADDRESS": self._address},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        try:
            _, errors = process.communicate(timeout=seconds if name == "follow" else RUN_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            self.ended[f"{language} {name}: {'left' if name == 'follow' else 'stuck'}"] += 1
            return
        self.ended[f"{language} {name}: {process.returncode}"] += 1
        said = errors.decode()
        if process.returncode and not any(word in _plain(said) for word in FORESEEN):
            self.complaints.append(f"{language} {name}: {said[-300:]}")


def _plain(text):
    """Without what languages spell differently in the names of codes."""
    return text.upper().replace("_", "").replace(" ", "")
