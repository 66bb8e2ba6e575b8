"""Builds kryoptic, the second PKCS#11 token of the tests and of operators without a device, from its locked crates.

OpenSSL comes as the source of a crate, libclang (for the bindings) as a wheel: neither is needed on the system.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from processes import SetupError, run_shown, say

OLDEST_RUST = (1, 85)
SOURCES = Path(__file__).with_name("kryoptic")
_INPUTS = ("Cargo.toml", "Cargo.lock", "lib.rs")


def built_library(root: Path) -> Path:
    """The path of the built library of the checkout at `root`."""
    return root / "build" / "kryoptic" / f"libkryoptic_pkcs11.{'dylib' if sys.platform == 'darwin' else 'so'}"


def build(root: Path, python: Path) -> Path:
    """Build the library where it is not there yet, and return its path; `python` has pip.

    Raises:
        SetupError: no Rust or one that is too old, or the build fails; the message says what to do.
    """
    library = built_library(root)
    stamp, wanted = library.with_name("built-from"), _digest()
    if library.is_file() and stamp.is_file() and stamp.read_text("utf-8") == wanted:
        return library
    if sys.platform == "win32":
        raise SetupError("kryoptic is built on Linux and macOS only: use SoftHSM2, or the module of your device.")
    cargo = _cargo()
    library.parent.mkdir(parents=True, exist_ok=True)
    clang, target = library.with_name("libclang"), library.with_name("target")
    _install_libclang(python, clang)
    say("building kryoptic with OpenSSL from source: some five minutes, once")
    environment = {
        **os.environ,
        "LIBCLANG_PATH": str(clang / "clang" / "native"),
        "BINDGEN_EXTRA_CLANG_ARGS": " ".join(_compiler_headers()),
        "CARGO_TARGET_DIR": str(target),
    }
    command = [cargo, "build", "--release", "--locked", "--manifest-path", str(SOURCES / "Cargo.toml")]
    code, output = run_shown(command, environment, root)
    if code:
        raise SetupError(explain_cargo(output))
    made = target / "release" / library.name
    fresh = library.with_suffix(".new")
    shutil.copy2(made, fresh)
    fresh.replace(library)
    stamp.write_text(wanted, "utf-8")
    for folder in (target, clang):
        shutil.rmtree(folder, ignore_errors=True)
    return library


def next_steps(library: Path) -> str:
    """What to type to have a token in the library."""
    return (
        f"kryoptic is built: {library}\n"
        "To have a token in it, write a file kryoptic.conf with these lines, in a directory of the token's own:\n"
        '  [[slots]]\n  slot = 1\n  dbtype = "sqlite"\n  dbargs = "/that/directory/token.sql"\n'
        "then add the token and initialise it:\n"
        f"  labconsole hsm add NAME --module {shlex.quote(str(library))} --label NAME "
        "--environment KRYOPTIC_CONF=/that/directory/kryoptic.conf --new\n"
        "  labconsole hsm init NAME --new"
    )


def explain_cargo(output: str) -> str:
    """Return one sentence that says why cargo failed, from what it printed."""
    if "No space left on device" in output:
        return "the disk is full: the build takes about 900 MB for a while; free some space and start again."
    unreachable = ("Could not resolve host", "failed to download", "Couldn't connect", "failed to get a 200 OK")
    if any(sign in output for sign in unreachable):
        return "cargo cannot reach the crate registry: connect this machine, or configure cargo, and start again."
    return "kryoptic could not be built: the last lines above say why; correct that and start again."


def _digest() -> str:
    return hashlib.sha256(b"".join((SOURCES / name).read_bytes() for name in _INPUTS)).hexdigest()


def _cargo() -> str:
    """The path of cargo. Raises SetupError."""
    advice = f"kryoptic needs Rust {'.'.join(map(str, OLDEST_RUST))} or newer: install it (rustup), then start again"
    cargo = shutil.which("cargo")
    if cargo is None:
        raise SetupError(f"there is no cargo on this system; {advice}.")
    asked = subprocess.run([cargo, "--version"], capture_output=True, text=True, check=False)
    version = re.match(r"cargo (\d+)\.(\d+)", asked.stdout)
    if version is None or (int(version[1]), int(version[2])) < OLDEST_RUST:
        said = asked.stdout.strip() or "this cargo gives no version"
        raise SetupError(f"{said}: {advice}.")
    return cargo


def _install_libclang(python: Path, target: Path) -> None:
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--no-input", "install", "--progress-bar", "off"]
    locked = ["--require-hashes", "--only-binary", ":all:", "--requirement", str(SOURCES / "libclang.lock")]
    code, _ = run_shown([*pip, "--upgrade", "--target", str(target), *locked])
    if code:
        raise SetupError("libclang could not be installed: pip's last lines above say why; correct that, start again.")


def _compiler_headers() -> list[str]:
    """Where the C compiler has its own headers, as an option for clang: the wheel of libclang has none."""
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")[0]
    asked = subprocess.run([compiler, "-print-file-name=include"], capture_output=True, text=True, check=False)
    found = Path(asked.stdout.strip())
    return [f"-I{found}"] if found.is_dir() and found.is_absolute() else []
