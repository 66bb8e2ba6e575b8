"""The virtual environment: made once, completed when its locks change, created again when its contents are unknown.

Packages come from a folder of small wheels made here, so that the real venv and the real pip run without a network.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import zipfile
from dataclasses import asdict, replace
from pathlib import Path

import pytest

import environment
from alone import alone
from environment import Environment, State, Step, decide, explain_pip, requirement_lines, wanted_state
from processes import SetupError
from tests.helpers.shared_once import shared_once

ROOT = Path(__file__).resolve().parents[2]
PROTON = "class SSL:\n    @staticmethod\n    def present():\n        return {tls}\n"
BACKEND = """
import shutil
def build_editable(folder, settings=None, metadata=None):
    return shutil.copy("console-1-py3-none-any.whl", folder).rsplit("/", 1)[-1]
"""
PROJECT = (
    '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n[project]\nname = "console"\n'
)
WANTED = State("digest", "3.11", "/checkout/.venv")


def wheel(folder: Path, name: str, module: str, source: str) -> Path:
    """Make a wheel of one module, version 1."""
    path = folder / f"{name}-1-py3-none-any.whl"
    about = f"{name}-1.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{module}.py", source)
        archive.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
        archive.writestr(
            f"{about}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{about}/RECORD", f"{module}.py,,\n{about}/METADATA,,\n{about}/WHEEL,,\n{about}/RECORD,,\n")
    return path


def lock(*wheels: Path) -> str:
    hashed = [(path.name.split("-")[0], hashlib.sha256(path.read_bytes()).hexdigest()) for path in wheels]
    return "".join(f"{name.replace('_', '-')}==1 \\\n    --hash=sha256:{digest}\n" for name, digest in hashed)


def create_checkout(root: Path) -> None:
    """A checkout whose locked packages are the wheels in `wheels/`."""
    for folder in ("requirements", "wheels"):
        (root / folder).mkdir(parents=True)
    (root / environment.BUILD_LOCK).write_text(lock(wheel(root / "wheels", "builder", "builder", "")))
    proton = wheel(root / "wheels", "python_qpid_proton", "proton", PROTON.format(tls=True))
    (root / environment.CONSOLE_LOCK).write_text(lock(proton))
    (root / "pyproject.toml").write_text(PROJECT + 'version = "1"\n')
    (root / "backend.py").write_text(BACKEND)
    wheel(root, "console", "console", "")


def use_wheels(patch: pytest.MonkeyPatch, root: Path) -> None:
    """A pip that looks nowhere else.

    It is compiled where it is installed and copied so: with a prefix each environment would compile it again.
    """
    patch.setenv("PIP_NO_INDEX", "1")
    patch.setenv("PIP_FIND_LINKS", str(root / "wheels"))
    patch.delenv("PYTHONPYCACHEPREFIX", raising=False)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout of the test."""
    root = tmp_path / "checkout"
    create_checkout(root)
    use_wheels(monkeypatch, root)
    return root


FROM_NOTHING = """
import json, sys
from pathlib import Path
from environment import Environment
made = Environment(Path(sys.argv[1]))
steps = [made.step().name]
made.ensure()
steps.append(made.step().name)
Path(sys.argv[2]).write_text(json.dumps(steps))
"""


@pytest.fixture(scope="session")
def from_nothing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a `checkout` that was set up from nothing, the `steps` before and after, and what `stdout` got.

    The real venv installs its pip from the archive of Python and compiles it, which takes 5 s: nightly tests have it.
    """

    def create(folder: Path) -> None:
        root = folder / "checkout"
        create_checkout(root)
        command = [sys.executable, "-c", FROM_NOTHING, root, folder / "steps"]
        with pytest.MonkeyPatch.context() as patch, (folder / "stdout").open("wb") as stdout:
            use_wheels(patch, root)
            patch.setenv("PYTHONPATH", str(ROOT / "installer"))
            subprocess.run(command, check=True, stdout=stdout)

    return shared_once(tmp_path_factory, "environment-from-nothing", create)


@pytest.fixture(scope="session")
def empty_venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the pip of the test's environment, which is compiled; to be copied."""

    def create(folder: Path) -> None:
        pip = Path(importlib.metadata.distribution("pip").locate_file("pip")).parent
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / ".venv"], check=True)
        (packages,) = folder.rglob("site-packages")
        for path in (pip / "pip", *pip.glob("pip-*.dist-info")):
            shutil.copytree(path, packages / path.name)

    return shared_once(tmp_path_factory, "empty venv", create) / ".venv"


@pytest.fixture
def furnished(checkout: Path, empty_venv: Path) -> Path:
    """That checkout with an environment made by hand, which is only filled: pip writes no file in place."""
    shutil.copytree(empty_venv, checkout / ".venv", symlinks=True, copy_function=os.link)
    return checkout


def installed(made: Environment, *modules: str) -> bool:
    """Whether all of them can be imported."""
    code = f"import {', '.join(modules)}"
    return subprocess.run([made.python, "-c", code], capture_output=True, check=False).returncode == 0


@pytest.fixture
def complete(from_nothing: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Environment:
    """A copy of that environment, complete at its new place."""
    checkout = Path(shutil.copytree(from_nothing / "checkout", tmp_path / "checkout", symlinks=True))
    use_wheels(monkeypatch, checkout)
    made = Environment(checkout)
    assert made.step() is Step.MAKE, "it has another place"
    made._record(asdict(wanted_state(checkout, made.path)))
    return made


@pytest.mark.nightly
def test_from_nothing_to_complete_and_then_nothing_more(from_nothing: Path, complete: Environment) -> None:
    """Nightly: alone finds that Python's own venv does not give the environment a pip.

    The steps from nothing to complete, the command that creates the environment, and what is installed are judged in
    CI by `test_interrupted_setups_are_re_created_until_the_environment_is_complete`.
    """
    assert json.loads((from_nothing / "steps").read_text()) == ["MAKE", "NOTHING"]
    assert (from_nothing / "stdout").read_bytes() == b"", "stdout belongs to the application"
    assert complete.step() is Step.NOTHING
    assert installed(complete, "builder", "proton", "console")


@pytest.mark.nightly
def test_changed_lock_completes_the_environment_and_does_not_replace_it(complete: Environment) -> None:
    """Nightly: alone finds that a package which is added to the lock is not installed.

    That a changed lock is completed, and what completing keeps, is judged in CI by
    `test_the_recorded_state_decides` and `test_a_package_with_another_hash_or_none_is_refused`.
    """
    extra = wheel(complete.root / "wheels", "extra", "extra", "")
    with (complete.root / environment.CONSOLE_LOCK).open("a") as file:
        file.write(lock(extra))
    kept = complete.path / "kept"
    kept.touch()
    assert complete.step() is Step.UPDATE
    complete.ensure()
    assert installed(complete, "extra")
    assert kept.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="the stand-in is a shell script")
def test_interrupted_setups_are_re_created_until_the_environment_is_complete(
    checkout: Path,
    empty_venv: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """From an incomplete venv without pip, by way of a proton without TLS, which is built again and then refused.

    One test, since each of pip's runs takes more than 1 s of CPU. `venv --clear` copies an environment here.
    """
    made = Environment(checkout)
    assert made.step() is Step.MAKE, "there is nothing"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", made.path], check=True)
    assert made.step() is Step.UPDATE and not made._has_pip()
    python = tmp_path / "python"
    python.write_text(
        f'#!/bin/sh\ntest "$1 $2 $3" = "-m venv --clear" || exit 9\nrm -rf "$4" && cp -a "{empty_venv}" "$4"\n'
    )
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    plain = wheel(checkout / "wheels", "python_qpid_proton", "proton", PROTON.format(tls=False))
    (checkout / environment.CONSOLE_LOCK).write_text(lock(plain))
    with pytest.raises(SetupError, match="cannot be built with TLS"):
        made.ensure()
    printed = capfd.readouterr()
    assert "building it again" in printed.err
    assert printed.out == "", "stdout belongs to the application"
    assert made._has_pip()

    leftover = made.path / "leftover"
    leftover.touch()
    assert made.step() is Step.MAKE
    proton = wheel(checkout / "wheels", "python_qpid_proton", "proton", PROTON.format(tls=True))
    (checkout / environment.CONSOLE_LOCK).write_text(lock(proton))
    made.ensure()
    assert made.step() is Step.NOTHING
    assert not leftover.exists()
    assert installed(made, "builder", "proton", "console")
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (f"builder==1 \\\n    --hash=sha256:{'0' * 64}\n", "has not the hash that is locked"),
        ("builder==1\n", "pip has failed"),
    ],
)
def test_a_package_with_another_hash_or_none_is_refused(furnished: Path, entry: str, said: str) -> None:
    (furnished / environment.BUILD_LOCK).write_text(entry)
    kept = furnished / ".venv" / "kept"
    kept.touch()
    with pytest.raises(SetupError, match=said):
        Environment(furnished).ensure()
    assert kept.exists(), "an environment is completed and not replaced"


def test_unreachable_index_is_reported(furnished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "1")
    with pytest.raises(SetupError, match="pip cannot reach the package index"):
        Environment(furnished).ensure()


def test_file_at_the_venv_path_is_reported(checkout: Path) -> None:
    (checkout / ".venv").touch()
    with pytest.raises(SetupError, match="in the way"):
        Environment(checkout).ensure()


@pytest.mark.parametrize(
    ("recorded", "step"),
    [
        (asdict(WANTED), Step.NOTHING),
        (asdict(replace(WANTED, digest="older")), Step.UPDATE),
        (asdict(replace(WANTED, python="3.12")), Step.MAKE),
        (asdict(replace(WANTED, place="/elsewhere/.venv")), Step.MAKE),
        ("installing", Step.MAKE),
        ({}, Step.MAKE),
    ],
)
def test_the_recorded_state_decides(recorded: object, step: Step) -> None:
    assert decide(recorded, WANTED) is step


def test_the_state_follows_each_defining_file(checkout: Path) -> None:
    before = wanted_state(checkout, checkout / ".venv")
    seen = {before.digest}
    for name in environment.DEFINING_FILES:
        with (checkout / name).open("a") as file:
            file.write("# changed\n")
        seen.add(wanted_state(checkout, checkout / ".venv").digest)
    assert len(seen) == 1 + len(environment.DEFINING_FILES)


def test_truncated_state_file_is_ignored(checkout: Path) -> None:
    made = Environment(checkout)
    made.python.parent.mkdir(parents=True)
    made.python.touch()
    (made.path / "labconsole-state.json").write_text(json.dumps(asdict(WANTED))[:20])
    assert made.step() is Step.MAKE


def test_protons_entry_of_the_real_lock_has_its_hashes() -> None:
    lines = requirement_lines(
        (ROOT / environment.CONSOLE_LOCK).read_text("utf-8").splitlines(True), "python-qpid-proton"
    )
    assert lines[0].startswith("python-qpid-proton==0.40.")
    assert all("--hash=sha256:" in line or line.strip().startswith("#") for line in lines[1:])
    assert len(lines) > 1


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("SSLError(... [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed", "PIP_CERT"),
        ("after connection broken by 'NewConnectionError('<...>: Failed to establish a new connection", "cannot reach"),
        ("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device", "disk is full"),
        ("ERROR: Failed building wheel for python-qpid-proton", "could not be compiled"),
        ("something else", "pip has failed"),
    ],
)
def test_a_failure_of_pip_is_one_sentence(output: str, said: str) -> None:
    assert said in explain_pip(output)


def test_a_second_start_at_the_same_time_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    code = "import sys; from pathlib import Path; from alone import alone\nwith alone(Path(sys.argv[1])): print('held')"
    command = [sys.executable, "-c", code, str(path)]
    variables = {**os.environ, "PYTHONPATH": str(ROOT / "installer")}
    with alone(path):
        refused = subprocess.run(command, capture_output=True, text=True, env=variables, check=False)
    assert "another start is setting this checkout up" in refused.stderr
    again = subprocess.run(command, capture_output=True, text=True, env=variables, check=False)
    assert again.stdout == "held\n"
