"""The doctor's checks: each says what was found, what it is needed for, and what to do when it is missing."""

from __future__ import annotations

import ssl
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from labconsole import doctor, qt_libraries, script_fonts
from labconsole.paths import HOME_VARIABLE
from labconsole.security.token import softhsm


@pytest.fixture
def checks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, doctor.Check]:
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path / "home"))
    return {check.name: check for check in doctor.checks()}


def test_doctor_checks_every_requirement(checks: dict[str, doctor.Check]) -> None:
    expected = {"Python", "SQLite", "OpenSSL (Python)", "OpenSSL (cryptography)", "PKCS#11", "SoftHSM2", "tshark"}
    assert expected | {"Qt", "display", "data directory"} <= set(checks)
    assert ("Qt's libraries" in checks) == (sys.platform == "linux")


def test_only_missing_requirements_have_a_remedy(checks: dict[str, doctor.Check]) -> None:
    for check in checks.values():
        assert check.found
        assert check.needed_for
        assert bool(check.remedy) != check.ok, check


def test_openssl_of_python_is_named(checks: dict[str, doctor.Check]) -> None:
    assert checks["OpenSSL (Python)"].found == ssl.OPENSSL_VERSION
    assert checks["OpenSSL (cryptography)"].found.startswith("OpenSSL ")


@pytest.mark.parametrize(("number", "noted"), [((3, 40, 1), True), ((3, 51, 2), True), ((3, 51, 3), False)])
def test_an_older_sqlite_is_noted_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, number: tuple[int, int, int], noted: bool
) -> None:
    monkeypatch.setattr("sqlite3.sqlite_version_info", number)
    check = doctor.sqlite()
    assert check.ok
    assert ("WAL-reset" in check.found) == noted


def test_the_package_for_tokens_is_named_with_its_version_and_not_loaded() -> None:
    found = doctor.pkcs11_package()
    assert found.ok and found.found == f"python-pkcs11 {version('python-pkcs11')}"
    code = "import sys; from labconsole import doctor; doctor.pkcs11_package(); sys.exit('pkcs11' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_tools_off_the_search_path_are_missed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not doctor.tshark().ok
    tool = tmp_path / ("tshark.exe" if sys.platform == "win32" else "tshark")
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    assert doctor.tshark() == doctor.Check("tshark", True, str(tool), "a second reader of captured messages", "")


def test_softhsm_is_found_by_its_library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    library = tmp_path / "libsofthsm2.so"
    monkeypatch.setattr(softhsm, "PLACES", (str(tmp_path / "nowhere"), str(tmp_path)))
    library.touch()
    assert softhsm.library() == library
    assert doctor.softhsm() == doctor.Check("SoftHSM2", True, str(library), "HSM trials on a software token", "")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux asks for a display server")
def test_a_display_is_one_of_x11_or_wayland(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    assert not doctor.display().ok
    monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-0")
    assert doctor.display().found == "WAYLAND_DISPLAY=wayland-0"


@pytest.mark.skipif(sys.platform != "linux", reason="shared objects are looked for by name on Linux only")
def test_a_missing_library_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(qt_libraries, "PACKAGES", {"libc.so.6": "libc6", "libnowhere.so.7": "libnowhere7"})
    check = doctor.qt_system_libraries()
    assert (check.ok, check.found, check.remedy) == (False, "missing: libnowhere.so.7", "install libnowhere7")


@pytest.mark.skipif(sys.platform != "linux", reason="fonts are looked for in folders of Linux only")
def test_scripts_without_a_font_are_named_with_a_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(script_fonts, "folders", lambda: [tmp_path])
    assert "fonts-wqy-microhei fonts-noto-core" in doctor.fonts().remedy
    (tmp_path / "noto").mkdir()
    (tmp_path / "noto" / "NotoSansThai-Regular.ttf").touch()
    check = doctor.fonts()
    assert not check.ok
    assert (check.found, check.remedy) == ("none for Chinese, Japanese, Korean", "install fonts-wqy-microhei")
    (tmp_path / "NotoSansCJK-Regular.ttc").touch()
    assert doctor.fonts().ok


def test_data_directory_that_cannot_be_created_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path / "file" / "home"))
    check = doctor.data()
    assert not check.ok
    assert "LABCONSOLE_HOME" in check.remedy


def test_full_disk_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(doctor, "LEAST_SPACE", 10**18)
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path))
    check = doctor.data()
    assert not check.ok
    assert "GB free" in check.found


def test_checking_qt_does_not_import_it() -> None:
    code = "import sys; from labconsole import doctor; doctor.qt(); sys.exit('PySide6' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
