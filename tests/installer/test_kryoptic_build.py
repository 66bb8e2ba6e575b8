"""kryoptic's build: what it refuses with a sentence, what it recognises as built, and once, slowly, the real build."""

from __future__ import annotations

import re
import shutil
import sys
import tomllib
from pathlib import Path

import pytest

import kryoptic_build
from processes import SetupError

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="kryoptic is built on Linux and macOS only")


@pytest.mark.parametrize(
    ("version", "said"),
    [
        (None, r"^there is no cargo on this system; kryoptic needs Rust 1\.85 or newer: install it \(rustup\)"),
        ("cargo 1.63.0", r"^cargo 1\.63\.0: kryoptic needs Rust 1\.85 or newer"),
        ("what?", r"^what\?: kryoptic needs Rust"),
    ],
)
def test_a_missing_or_old_rust_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str | None, said: str
) -> None:
    commands = tmp_path / "bin"
    commands.mkdir()
    if version is not None:
        (commands / "cargo").write_text(f"#!/bin/sh\necho '{version}'\n")
        (commands / "cargo").chmod(0o755)
    monkeypatch.setenv("PATH", str(commands))
    with pytest.raises(SetupError, match=said):
        kryoptic_build.build(tmp_path, Path(sys.executable))
    assert not (tmp_path / "build").exists()


def test_what_is_built_already_is_not_built_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = kryoptic_build.built_library(tmp_path)
    library.parent.mkdir(parents=True)
    library.write_bytes(b"library")
    library.with_name("built-from").write_text(kryoptic_build._digest())
    monkeypatch.setenv("PATH", "")
    assert kryoptic_build.build(tmp_path, Path(sys.executable)) == library
    assert f"--module {library}" in kryoptic_build.next_steps(library)
    library.with_name("built-from").write_text("other crates")
    with pytest.raises(SetupError, match="no cargo"):
        kryoptic_build.build(tmp_path, Path(sys.executable))


def test_every_crate_and_wheel_is_locked_by_its_hash() -> None:
    packages = tomllib.loads((kryoptic_build.SOURCES / "Cargo.lock").read_text("utf-8"))["package"]
    assert all("checksum" in package for package in packages if package["name"] != "labconsole-kryoptic")
    assert {"kryoptic-lib", "openssl-src"} <= {package["name"] for package in packages}
    assert re.search(
        r"^libclang==\S+ \\\n    --hash=sha256:", (kryoptic_build.SOURCES / "libclang.lock").read_text("utf-8"), re.M
    )


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("error: failed to download from the registry", "cannot reach the crate registry"),
        ("ld: No space left on device", "the disk is full"),
        ("error[E0308]: mismatched types", "the last lines above say why"),
    ],
)
def test_a_failed_build_is_explained(output: str, said: str) -> None:
    assert said in kryoptic_build.explain_cargo(output)


@pytest.mark.nightly
@pytest.mark.skipif(shutil.which("cargo") is None, reason="needs Rust")
def test_the_locked_crates_build_a_module(tmp_path: Path) -> None:
    library = kryoptic_build.build(tmp_path, Path(sys.executable))
    assert library.stat().st_size > 1_000_000
    assert sorted(path.name for path in library.parent.iterdir()) == ["built-from", library.name]
