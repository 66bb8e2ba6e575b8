"""The virtual environment: made once, completed when its locks change, created again when its contents are unknown.

Packages come from a folder of small wheels made here, so that the real venv and the real pip run without a network.
"""

from __future__ import annotations

import hashlib
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


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout whose locked packages are the wheels in `wheels/`, and a pip that looks nowhere else."""
    root = tmp_path / "checkout"
    for folder in ("requirements", "wheels"):
        (root / folder).mkdir(parents=True)
    (root / environment.BUILD_LOCK).write_text(lock(wheel(root / "wheels", "builder", "builder", "")))
    proton = wheel(root / "wheels", "python_qpid_proton", "proton", PROTON.format(tls=True))
    (root / environment.CONSOLE_LOCK).write_text(lock(proton))
    (root / "pyproject.toml").write_text(PROJECT + 'version = "1"\n')
    (root / "backend.py").write_text(BACKEND)
    wheel(root, "console", "console", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(root / "wheels"))
    return root


@pytest.fixture(scope="session")
def empty_venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with pip and nothing else, to be copied: creating one takes 4 s."""

    def create(folder: Path) -> None:
        subprocess.run([sys.executable, "-m", "venv", folder / ".venv"], check=True)

    return shared_once(tmp_path_factory, "empty venv", create) / ".venv"


@pytest.fixture
def furnished(checkout: Path, empty_venv: Path) -> Path:
    """That checkout with an environment made by hand, which is only filled."""
    shutil.copytree(empty_venv, checkout / ".venv", symlinks=True)
    return checkout


def installed(made: Environment, module: str) -> bool:
    return subprocess.run([made.python, "-c", f"import {module}"], capture_output=True, check=False).returncode == 0


def test_from_nothing_to_complete_and_then_nothing_more(checkout: Path, capfd: pytest.CaptureFixture[str]) -> None:
    made = Environment(checkout)
    assert made.step() is Step.MAKE
    made.ensure()
    assert made.step() is Step.NOTHING
    assert all(installed(made, module) for module in ("builder", "proton", "console"))
    assert capfd.readouterr().out == "", "stdout belongs to the application"

    extra = wheel(checkout / "wheels", "extra", "extra", "")
    with (checkout / environment.CONSOLE_LOCK).open("a") as file:
        file.write(lock(extra))
    kept = made.path / "kept"
    kept.touch()
    assert made.step() is Step.UPDATE
    made.ensure()
    assert installed(made, "extra")
    assert kept.exists(), "a changed lock completes the environment and does not replace it"


def test_interrupted_setup_is_re_created(furnished: Path) -> None:
    (furnished / "wheels" / "builder-1-py3-none-any.whl").unlink()
    made = Environment(furnished)
    assert made.step() is Step.UPDATE
    with pytest.raises(SetupError):
        made.ensure()
    leftover = made.path / "leftover"
    leftover.touch()
    assert made.step() is Step.MAKE
    wheel(furnished / "wheels", "builder", "builder", "")
    (furnished / environment.BUILD_LOCK).write_text(lock(furnished / "wheels" / "builder-1-py3-none-any.whl"))
    made.ensure()
    assert made.step() is Step.NOTHING
    assert not leftover.exists()


def test_incomplete_venv_without_pip_is_re_created(checkout: Path) -> None:
    made = Environment(checkout)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", made.path], check=True)
    assert made.step() is Step.UPDATE
    made.ensure()
    assert made.step() is Step.NOTHING


def test_proton_without_tls_is_built_again_and_then_refused(furnished: Path, capfd: pytest.CaptureFixture[str]) -> None:
    plain = wheel(furnished / "wheels", "python_qpid_proton", "proton", PROTON.format(tls=False))
    (furnished / environment.CONSOLE_LOCK).write_text(lock(plain))
    with pytest.raises(SetupError, match="cannot be built with TLS"):
        Environment(furnished).ensure()
    assert "building it again" in capfd.readouterr().err
    assert Environment(furnished).step() is Step.MAKE


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (f"builder==1 \\\n    --hash=sha256:{'0' * 64}\n", "has not the hash that is locked"),
        ("builder==1\n", "pip has failed"),
    ],
)
def test_a_package_with_another_hash_or_none_is_refused(furnished: Path, entry: str, said: str) -> None:
    (furnished / environment.BUILD_LOCK).write_text(entry)
    with pytest.raises(SetupError, match=said):
        Environment(furnished).ensure()


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
