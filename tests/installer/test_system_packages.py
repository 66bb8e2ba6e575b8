"""Which system packages are missing, and what is said or done about it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import files
from pathlib import Path

import pytest

import system_packages
from labconsole import qt_libraries
from processes import SetupError
from system_packages import Need

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="apt and shared objects are Linux's")
THERE = Need("thing", lambda: True, "there")
MISSING = [
    Need("second", lambda: False, "zulu", "zulu-formula", "Zulu (winget)", essential=True),
    THERE,
    Need("first", lambda: False, "alpha", "alpha-formula", "Alpha (winget)"),
]
ToolMaker = Callable[[str, str], Path]


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ToolMaker:
    """A search path with only the stand-ins that a test puts on it."""
    monkeypatch.setenv("PATH", str(tmp_path))

    def make(name: str, body: str) -> Path:
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)
        return path

    return make


@pytest.fixture
def as_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)


def names(command: str, building: bool) -> set[str]:
    return {need.apt for need in system_packages.needs(command, building)}


@linux_only
def test_each_command_asks_for_what_it_uses() -> None:
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    build = {"build-essential", "libssl-dev", "pkg-config", f"{version}-dev", f"{version}-venv"}
    tests = {"rabbitmq-server", "libnss3", "tshark", "openssl", "poppler-utils", "xvfb"}
    window = {"libxcb-cursor0", "libegl1", "libgl1", "libfontconfig1", "libdbus-1-3", "softhsm2"}
    assert window <= names("run", building=False)
    assert not (build | tests) & names("run", building=False)
    assert names("run", building=True) - names("run", building=False) == build
    assert names("test", building=False) - names("run", building=False) == tests


@linux_only
@pytest.mark.skipif(not shutil.which("apt-get"), reason="fonts are installed through apt")
@pytest.mark.parametrize(("user", "asked"), [(0, True), (1000, False)])
def test_fonts_are_asked_for_where_that_needs_no_question(
    monkeypatch: pytest.MonkeyPatch, user: int, asked: bool
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: user)
    assert ({"fonts-noto-core", "fonts-wqy-microhei"} <= names("run", building=False)) is asked


def test_nothing_is_called_when_nothing_is_missing(tools: ToolMaker, capsys: pytest.CaptureFixture[str]) -> None:
    system_packages.ensure([THERE])
    assert capsys.readouterr().err == ""


@linux_only
@pytest.mark.usefixtures("as_user")
class TestWithoutRights:
    """A user who is not root gets the command, exactly, and only for what is missing."""

    def test_without_sudo(self, tools: ToolMaker) -> None:
        tools("apt-get", "exit 99")
        with pytest.raises(SetupError) as refused:
            system_packages.ensure(MISSING)
        expected = "  apt-get update && apt-get install --no-install-recommends alpha zulu\n"
        assert expected in str(refused.value)

    def test_with_a_sudo_that_would_ask_for_a_password(self, tools: ToolMaker) -> None:
        tools("apt-get", "exit 99")
        tools("sudo", "exit 1")
        with pytest.raises(SetupError) as refused:
            system_packages.ensure(MISSING)
        command = "  sudo apt-get update && sudo apt-get install --no-install-recommends alpha zulu\n"
        assert command in str(refused.value)

    def test_a_sudo_that_does_not_ask_is_used(self, tools: ToolMaker) -> None:
        tools("sudo", 'test "$*" = "-n true"')
        assert system_packages.elevation() == ["sudo", "-n"]


@linux_only
def test_apt_is_run_with_the_missing_packages_alone(
    tools: ToolMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    tools("apt-get", "exit 99")
    monkeypatch.setattr(
        system_packages, "APT_SCRIPT", tools("script", f'echo "$@" | /usr/bin/tee {tmp_path}/installed')
    )
    appears = Need("tool", lambda: (tmp_path / "installed").exists(), "brings-tool")
    system_packages.ensure([THERE, appears])
    assert (tmp_path / "installed").read_text() == "brings-tool\n"
    assert "  brings-tool" in capsys.readouterr().err


@linux_only
def test_packages_that_apt_did_not_install_are_reported(tools: ToolMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    tools("apt-get", "exit 99")
    monkeypatch.setattr(system_packages, "APT_SCRIPT", tools("script", "exit 0"))
    with pytest.raises(SetupError, match="still missing: second, first"):
        system_packages.ensure(MISSING)


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 42 (apt-get)", "holds apt's lock"),
        ("sudo: a password is required", "sudo gave no rights"),
        ("E: Failed to fetch http://x/y.deb  Temporary failure resolving 'x'", "cannot reach its package sources"),
        ("E: Unable to locate package alpha", "sources lack a package"),
        ("dpkg: error: failed to write status: No space left on device", "disk is full"),
        ("dpkg: error processing package alpha", "apt has failed"),
    ],
)
def test_a_failure_of_apt_is_one_sentence(output: str, said: str) -> None:
    assert said in system_packages.explain_apt(output, ["alpha"])


@linux_only
@pytest.mark.skipif(shutil.which("apt-get") is None or os.name == "nt" or os.getuid() != 0, reason="needs apt and root")
def test_message_for_a_held_lock_is_that_of_apt(tmp_path: Path) -> None:
    import fcntl

    (tmp_path / "lists" / "partial").mkdir(parents=True)
    with (tmp_path / "lists" / "lock").open("w") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)
        command = [
            "apt-get",
            "-o",
            f"Dir::State::Lists={tmp_path}/lists",
            "-o",
            "Dir::Etc::SourceList=/dev/null",
            "update",
        ]
        settings = {**os.environ, "LC_ALL": "C"}
        done = subprocess.run(command, capture_output=True, text=True, env=settings, check=False)
    assert done.returncode != 0
    assert "holds apt's lock" in system_packages.explain_apt(done.stderr, ["alpha"])


def test_other_systems_get_the_names_of_what_is_missing() -> None:
    missing = [need for need in MISSING if not need.present()]
    assert "brew install alpha-formula zulu-formula" in system_packages.install_advice(missing, "darwin")
    assert "second: Zulu (winget)" in system_packages.install_advice(missing, "win32")
    assert "second (Debian's zulu)" in system_packages.install_advice(missing, "linux")


@pytest.mark.parametrize(("essential", "stops"), [(True, True), (False, False)])
def test_on_macos_only_what_the_build_needs_stops_the_start(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], essential: bool, stops: bool
) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    missing = Need("thing", lambda: False, "thing", "thing-formula", essential=essential)
    try:
        system_packages.ensure([missing])
    except SetupError as error:
        assert stops
        assert "brew install thing-formula" in str(error)
    else:
        assert not stops
        assert "brew install thing-formula" in capsys.readouterr().err


def test_headers_are_those_of_the_running_python(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(tmp_path))
    assert not system_packages.has_python_headers()
    (tmp_path / "Python.h").touch()
    assert system_packages.has_python_headers()


@linux_only
def test_a_python_that_no_package_can_complete_is_refused(tools: ToolMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    tools("apt-get", "exit 99")
    monkeypatch.setattr("sys.base_prefix", "/home/someone/python")
    lacking = Need("Python headers", system_packages.has_python_headers, "python3-dev")
    monkeypatch.setattr("sysconfig.get_path", lambda name: "/nowhere")
    with pytest.raises(SetupError, match="lacks Python headers, and no package can add that"):
        system_packages.ensure([lacking])


@pytest.mark.skipif(os.name == "nt", reason="the stand-in is a shell script")
def test_openssl_is_asked_of_pkg_config_as_the_build_does(tools: ToolMaker) -> None:
    tools("pkg-config", 'test "$*" != "--exists openssl"')
    assert not system_packages.has_openssl_headers()
    tools("pkg-config", 'test "$*" = "--exists openssl"')
    assert system_packages.has_openssl_headers()


@linux_only
@pytest.mark.skipif(shutil.which("objdump") is None, reason="objdump reads what a library links")
def test_every_library_that_qt_links_is_in_the_table() -> None:
    """A newer Qt that links one more library must not abort on a bare machine."""
    shipped = [Path(str(file.locate())) for file in files("PySide6-Essentials") or [] if ".so" in file.name]
    parts = ("Core", "Gui", "Widgets", "DBus", "Svg", "Network", "OpenGL", "XcbQpa", "WaylandClient")
    wanted = [f"libQt6{part}.so.6" for part in parts] + ["libqxcb.so", "libqoffscreen.so", "libqwayland.so"]
    looked_at = [path for path in shipped if path.name in wanted]
    assert len(looked_at) == len(wanted)
    output = subprocess.run(["objdump", "-p", *looked_at], capture_output=True, text=True, check=True).stdout
    linked = {line.split()[1] for line in output.splitlines() if line.split()[:1] == ["NEEDED"]}
    everywhere = (
        "ld-linux",
        "libc.so",
        "libm.so",
        "libresolv",
        "libgcc_s",
        "libstdc++",
        "libz.so",
        "libzstd",
        "libgthread",
    )
    foreign = {name for name in linked - {path.name for path in shipped} if not name.startswith(everywhere)}
    assert foreign <= set(qt_libraries.PACKAGES)
