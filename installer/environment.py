"""The virtual environment `.venv` of a checkout: made once with the locked dependencies, then only recognised.

A small state file in it says for which locks, which Python and which place it was completed. It is written last, and
says `installing` before: an environment whose set-up was interrupted is created again, since its contents are unknown.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path

from alone import alone
from processes import SetupError, run_shown, say
from system_packages import build_environment

BUILD_LOCK = Path("requirements", "build.lock")
CONSOLE_LOCK = Path("requirements", "console.lock")
DEFINING_FILES = (BUILD_LOCK, CONSOLE_LOCK, Path("pyproject.toml"))
INSTALLING = "installing"
PROTON_WITHOUT_TLS = 3
PROTON_CHECK = f"import proton; raise SystemExit(0 if proton.SSL.present() else {PROTON_WITHOUT_TLS})"


@dataclass(frozen=True)
class State:
    """What a complete environment was made of; equal states mean that there is nothing to do."""

    digest: str
    python: str
    place: str


class Step(Enum):
    """What is to be done with the environment."""

    NOTHING = "nothing"
    UPDATE = "update"
    MAKE = "make"


class Environment:
    """The virtual environment of the checkout at `root`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.path = root / ".venv"
        self.python = self.path / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        self._state_file = self.path / "labconsole-state.json"

    def step(self) -> Step:
        """Say what is to be done, by looking at two files only."""
        if not self.python.exists():
            return Step.MAKE
        try:
            recorded = json.loads(self._state_file.read_text("utf-8"))
        except FileNotFoundError:
            return Step.UPDATE  # made by hand: it belongs to its maker and is completed, not replaced
        except ValueError:
            return Step.MAKE
        return decide(recorded, wanted_state(self.root, self.path))

    def ensure(self) -> None:
        """Make or complete the environment.

        Raises:
            SetupError: it cannot be made or filled, or another start is about to; the message says why.
        """
        with alone(self.root / CONSOLE_LOCK):
            step = self.step()
            if step is Step.NOTHING:
                return
            if step is Step.MAKE or not self._has_pip():
                self._make()
            self._record(INSTALLING)
            self._fill()
            self._record(asdict(wanted_state(self.root, self.path)))
        say("the environment is complete.")

    def _has_pip(self) -> bool:
        """Whether pip is there and complete: its RECORD is what an installation writes last.

        Without one, pip can still be that of the system: Python is asked, which takes half a second.
        """
        packages = "Lib/site-packages" if os.name == "nt" else "lib/python*/site-packages"
        if any(self.path.glob(f"{packages}/pip-*.dist-info/RECORD")):
            return True
        return subprocess.run([self.python, "-m", "pip", "--version"], capture_output=True, check=False).returncode == 0

    def _make(self) -> None:
        if self.path.exists() and not self.path.is_dir():
            raise SetupError(f"{self.path} is in the way of the virtual environment: move it away and start again.")
        say(f"creating the virtual environment {self.path}" + (" again" if self.path.exists() else ""))
        code, _ = run_shown([sys.executable, "-m", "venv", "--clear", str(self.path)])
        if code:
            raise SetupError(f"the virtual environment {self.path} could not be created: the last lines above say why.")

    def _fill(self) -> None:
        say("installing the locked dependencies: about 550 MB on the disk, a few minutes the first time")
        self._pip("--require-hashes", "--requirement", str(BUILD_LOCK))
        self._pip("--require-hashes", "--no-build-isolation", "--requirement", str(CONSOLE_LOCK))
        if not self._proton_has_tls():
            # A wheel that pip built and kept when the OpenSSL headers were not there yet.
            say("python-qpid-proton was built without TLS: building it again")
            locked = write_proton_requirement(self.root / CONSOLE_LOCK, self.path / "proton.lock")
            again = ("--no-cache-dir", "--force-reinstall", "--no-deps", "--no-build-isolation")
            self._pip("--require-hashes", *again, "--requirement", str(locked))
            if not self._proton_has_tls():
                raise SetupError(
                    "python-qpid-proton cannot be built with TLS: `pkg-config --exists openssl` must succeed "
                    "(Debian: libssl-dev and pkg-config); correct that and start again."
                )
        self._pip("--no-build-isolation", "--no-deps", "--editable", ".")

    def _pip(self, *arguments: str) -> None:
        pip = [str(self.python), "-m", "pip", "--disable-pip-version-check", "--no-input"]
        install = [*pip, "install", "--progress-bar", "off", *arguments]
        environment = {**build_environment(), "PYTHONUNBUFFERED": "1"}
        code, output = run_shown(install, environment, self.root)
        if code:
            raise SetupError(explain_pip(output))

    def _proton_has_tls(self) -> bool:
        result = subprocess.run([self.python, "-c", PROTON_CHECK], capture_output=True, text=True, check=False)
        if result.returncode not in (0, PROTON_WITHOUT_TLS):
            raise SetupError(f"python-qpid-proton does not load: {result.stderr.strip().splitlines()[-1]}")
        return result.returncode == 0

    def _record(self, state: object) -> None:
        fresh = self._state_file.with_suffix(".new")
        fresh.write_text(json.dumps(state), "utf-8")
        fresh.replace(self._state_file)


def wanted_state(root: Path, venv: Path) -> State:
    """Return the state that a complete environment of this checkout and this Python has."""
    digest = hashlib.sha256()
    for name in DEFINING_FILES:
        digest.update((root / name).read_bytes())
    return State(digest.hexdigest(), f"{sys.version_info.major}.{sys.version_info.minor}", str(venv))


def decide(recorded: object, wanted: State) -> Step:
    """Say what an environment with the `recorded` state needs to have the `wanted` one."""
    if not isinstance(recorded, dict) or (recorded.get("python"), recorded.get("place")) != (
        wanted.python,
        wanted.place,
    ):
        return Step.MAKE  # interrupted, of another Python, or moved: its scripts point elsewhere
    return Step.NOTHING if recorded == asdict(wanted) else Step.UPDATE


def write_proton_requirement(lock: Path, target: Path) -> Path:
    """Write the entry of python-qpid-proton in `lock`, with its hashes, to `target`."""
    target.write_text(
        "".join(requirement_lines(lock.read_text("utf-8").splitlines(True), "python-qpid-proton")), "utf-8"
    )
    return target


def requirement_lines(lines: Iterable[str], name: str) -> list[str]:
    """Return the lines of one requirement of a lock: its first, and the indented ones that follow."""
    taken: list[str] = []
    for line in lines:
        if line.startswith(f"{name}=="):
            taken = [line]
        elif taken and line.startswith("    "):
            taken.append(line)
        elif taken:
            break
    return taken


def explain_pip(output: str) -> str:
    """Return one sentence that says why pip failed, from what it printed."""
    if "CERTIFICATE_VERIFY_FAILED" in output:
        return "pip does not trust the certificate of the package index: name its CA file in PIP_CERT and start again."
    unreachable = ("NewConnectionError", "NameResolutionError", "ConnectTimeoutError", "ReadTimeoutError", "ProxyError")
    if any(sign in output for sign in (*unreachable, "Failed to establish a new connection", "Network is unreachable")):
        return "pip cannot reach the package index: connect this machine, or configure pip's proxy, and start again."
    if "DO NOT MATCH THE HASHES" in output:
        return (
            "a downloaded package has not the hash that is locked, so it was not installed: check your package index."
        )
    if "No space left on device" in output:
        return "the disk is full: the environment takes about 550 MB; free some space and start again."
    if "Failed building wheel for python-qpid-proton" in output or "Failed to build python-qpid-proton" in output:
        return "python-qpid-proton could not be compiled: the lines above say why; correct that and start again."
    return "pip has failed: its last lines above say why; correct that and start again."
