"""Brokers in Java: Java itself, and archives that Maven gets from its repository, once."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import system_packages
from processes import SetupError, run_shown, say
from system_packages import Need

OLDEST_JAVA = 17
_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"


@dataclass(frozen=True)
class Archive:
    """A `.tar.gz` in Maven's repository, and the folder in it that has the program."""

    coordinates: str
    sha256: str
    content: str


def java() -> str:
    """The path of Java. Raises SetupError: there is none."""
    found = shutil.which("java")
    if found is None:
        raise SetupError(f"there is no java on the search path: install Java {OLDEST_JAVA} or newer and start again.")
    return found


def is_java_new_enough() -> bool:
    """Whether Java is installed in a version that the brokers run on."""
    found = shutil.which("java")
    if found is None:
        return False
    asked = subprocess.run([found, "-version"], capture_output=True, text=True, check=False)
    version = re.search(r'version "(\d+)', asked.stderr)
    return version is not None and int(version[1]) >= OLDEST_JAVA


def install(archive: Archive, software: Path) -> Path:
    """The folder in `software` with the unpacked archive, which is got where it is missing. Raises SetupError."""
    java_need = Need(
        f"Java {OLDEST_JAVA} or newer",
        is_java_new_enough,
        "default-jre-headless",
        "openjdk",
        "EclipseAdoptium.Temurin.21.JRE (winget)",
        essential=True,
    )
    target = folder_of(archive, software)
    if target.is_dir():
        system_packages.ensure([java_need])
        return target
    maven = Need("Maven", lambda: shutil.which("mvn") is not None, "maven", "maven", "Maven", essential=True)
    system_packages.ensure([java_need, maven])
    software.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=software) as name:
        fresh = Path(name)
        packed = _download(archive, fresh)
        with tarfile.open(packed) as tar:
            # Not the argument `filter`: Python 3.11.2, which Debian 12 has, does not know it: there owners
            # and modes are those of the archive, whose hash was checked.
            tar.extraction_filter = getattr(tarfile, "data_filter", None)
            tar.extractall(fresh)
        (fresh / archive.content).rename(target)
    return target


def folder_of(archive: Archive, software: Path) -> Path:
    """Where the archive is unpacked."""
    _group, name, version, *_ = archive.coordinates.split(":")
    return software / f"{name}-{version}"


def _download(archive: Archive, folder: Path) -> Path:
    say(f"getting {archive.coordinates} with Maven: about 45 MB, once")
    # By its name: it is a batch file on Windows.
    maven = shutil.which("mvn") or "mvn"
    options = [f"-Dartifact={archive.coordinates}", f"-DoutputDirectory={folder}"]
    code, output = run_shown([maven, "--batch-mode", "--quiet", _PLUGIN, *options])
    if code:
        raise SetupError(explain_maven(output))
    (packed,) = folder.glob("*.tar.gz")
    if hashlib.sha256(packed.read_bytes()).hexdigest() != archive.sha256:
        raise SetupError(
            f"{packed.name} has not the hash that is expected, so it was not unpacked: check your Maven repository."
        )
    return packed


def explain_maven(output: str) -> str:
    """Return one sentence that says why Maven failed, from what it printed."""
    if "No space left on device" in output:
        return "the disk is full: a broker takes about 100 MB; free some space and start again."
    unreachable = ("Unknown host", "Connection refused", "Temporary failure in name resolution", "Connect timed out")
    if any(sign in output for sign in unreachable):
        return "Maven cannot reach its repository: connect this machine, or configure Maven, and start again."
    return "Maven has failed: the last lines above say why; correct that and start again."


def environment() -> dict[str, str]:
    """The environment of a broker: nothing of the caller's that Java would heed."""
    kept = ("PATH", "HOME", "LANG", "SYSTEMROOT", "TEMP", "TMP")
    return {name: os.environ[name] for name in kept if name in os.environ}
