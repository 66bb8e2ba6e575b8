"""The system packages that the console needs: which are missing here, and their installation through apt.

Only what is not there is installed, and it is looked for as a file or a library: a compiler that did not come from a
package is a compiler too. The look takes milliseconds, so every start can afford it.
"""

from __future__ import annotations

import glob
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from labconsole import qt_libraries, script_fonts
from processes import SetupError, run_shown, say

APT_SCRIPT = Path(__file__).with_name("apt_install.sh")
SOFTHSM_LIBRARIES = (
    "/usr/lib/softhsm/libsofthsm2.so",
    "/usr/lib/*/softhsm/libsofthsm2.so",
    "/usr/local/lib/softhsm/libsofthsm2.so",
    "/opt/homebrew/lib/softhsm/libsofthsm2.so",
    "C:/SoftHSM2/lib/softhsm2-x64.dll",
)
NSS_LIBRARIES = (
    "/usr/lib/*/libsoftokn3.so",
    "/usr/lib/*/nss/libsoftokn3.so",
    "/usr/lib64/libsoftokn3.so",
    "/opt/homebrew/opt/nss/lib/libsoftokn3.dylib",
)
RABBITMQ = ("/usr/lib/rabbitmq/bin/rabbitmq-server", "/opt/homebrew/opt/rabbitmq/sbin/rabbitmq-server")
OPENSSL_PC = ("/usr/lib/pkgconfig/openssl.pc", "/usr/lib*/*/pkgconfig/openssl.pc", "/usr/lib64/pkgconfig/openssl.pc")
MACOS_PKG_CONFIG = ("/opt/homebrew/opt/openssl@3/lib/pkgconfig", "/usr/local/opt/openssl@3/lib/pkgconfig")
VSWHERE = ("C:/Program Files (x86)/Microsoft Visual Studio/Installer/vswhere.exe",)


@dataclass(frozen=True)
class Need:
    """One thing that the system must have, and what brings it."""

    what: str
    present: Callable[[], bool]
    apt: str
    brew: str = ""
    windows: str = ""
    essential: bool = False  # without it nothing can be built; the rest only narrows what macOS and Windows can do


def needs(command: str, building: bool) -> list[Need]:
    """Return what `command` needs on this machine; `building` when the environment is still to be made."""
    wanted = build_needs() if building else []
    if sys.platform == "linux":
        wanted += [
            Need(name, lambda name=name: qt_libraries.loads(name), package)  # type: ignore[misc]
            for name, package in qt_libraries.PACKAGES.items()
        ]
        if os.geteuid() == 0 and shutil.which("apt-get"):  # worth no question: `labconsole doctor` informs others
            wanted += [
                Need(f"fonts ({script})", lambda patterns=patterns: script_fonts.there(patterns), package)  # type: ignore[misc]
                for script, (patterns, package) in script_fonts.SCRIPTS.items()
            ]
    wanted.append(Need("SoftHSM2", lambda: any_file(SOFTHSM_LIBRARIES), "softhsm2", "softhsm", "SoftHSM2 for Windows"))
    more = {"test": test_needs, "kryoptic": kryoptic_needs}.get(command)
    return wanted + (more() if more else [])


def build_needs() -> list[Need]:
    """Return what makes the virtual environment and compiles python-qpid-proton, which comes as source."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    venv = Need("Python's venv module", has_venv, f"{version}-venv", essential=True)
    if sys.platform == "win32":
        # python-qpid-proton has a wheel for this Python only; its TLS is Windows' own.
        if sys.version_info[:2] == (3, 13):
            return [venv]
        tools = "Microsoft.VisualStudio.2022.BuildTools (winget) with the C++ workload, or Python 3.13 for Windows"
        return [venv, Need("C++ compiler", lambda: any_file(VSWHERE), "", "", tools, essential=True)]
    return [
        venv,
        Need("C compiler", has_compiler, "build-essential", "gcc", essential=True),
        Need("Python headers", has_python_headers, f"{version}-dev", "python", essential=True),
        Need("pkg-config", lambda: bool(shutil.which("pkg-config")), "pkg-config", "pkgconf", essential=True),
        Need("OpenSSL headers", has_openssl_headers, "libssl-dev", "openssl@3", essential=True),
    ]


def test_needs() -> list[Need]:
    """Return what the tests use besides the console: a broker, a token, a protocol analyser, readers of results."""
    return [
        Need("RabbitMQ", has_rabbitmq, "rabbitmq-server", "rabbitmq", "RabbitMQ with Erlang"),
        Need("NSS softokn", lambda: any_file(NSS_LIBRARIES), "libnss3", "nss"),
        tool("tshark", "tshark", "wireshark", "WiresharkFoundation.Wireshark (winget)"),
        tool("openssl", "openssl", "openssl@3", "ShiningLight.OpenSSL.Light (winget)"),
        tool("pdftotext", "poppler-utils", "poppler", "oschwartz10612.Poppler (winget)"),
        *([tool("Xvfb", "xvfb")] if sys.platform == "linux" else []),
    ]


def kryoptic_needs() -> list[Need]:
    """Return what compiles OpenSSL, besides Rust: its version is checked, since Debian's is too old."""
    return [
        Need("C compiler", has_compiler, "build-essential", "gcc", essential=True),
        tool("make", "make", "make"),
        tool("perl", "perl", "perl"),
    ]


def tool(name: str, apt: str, brew: str = "", windows: str = "") -> Need:
    """Return the need of a program on the search path."""
    return Need(name, lambda: shutil.which(name) is not None, apt, brew, windows)


def any_file(patterns: Iterable[str]) -> bool:
    """Say whether one of the absolute glob patterns names something that is there."""
    return any(glob.glob(pattern) for pattern in patterns)  # noqa: PTH207 - Path.glob takes no absolute pattern


def has_rabbitmq() -> bool:
    """Say whether a RabbitMQ broker is installed; Debian has its script off the search path of users."""
    return shutil.which("rabbitmq-server") is not None or any_file(RABBITMQ)


def has_venv() -> bool:
    """Say whether this Python can make an environment with pip in it: Debian keeps that in a package of its own."""
    return all(importlib.util.find_spec(name) for name in ("venv", "ensurepip"))


def has_compiler() -> bool:
    """Say whether the compiler that extension modules of this Python are built with is there."""
    if sys.platform == "darwin":  # /usr/bin/cc is a stub until the command line tools are there
        return subprocess.run(["xcode-select", "-p"], capture_output=True, check=False).returncode == 0
    named = os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc"
    return shutil.which(shlex.split(named)[0]) is not None


def has_python_headers() -> bool:
    """Say whether the header files of the Python that runs this are there, wherever it came from."""
    return Path(sysconfig.get_path("include"), "Python.h").is_file()


def has_openssl_headers() -> bool:
    """Say whether OpenSSL can be compiled against: asked as python-qpid-proton's build asks, of pkg-config."""
    if shutil.which("pkg-config") is None:
        return any_file(OPENSSL_PC)
    asked = subprocess.run(["pkg-config", "--exists", "openssl"], env=build_environment(), check=False)
    return asked.returncode == 0


def build_environment() -> dict[str, str]:
    """Return the environment for compiling: Homebrew keeps its OpenSSL where pkg-config does not look."""
    found = [path for path in MACOS_PKG_CONFIG if Path(path).is_dir()]
    paths = [*filter(None, [os.environ.get("PKG_CONFIG_PATH")]), *found]
    return {**os.environ, **({"PKG_CONFIG_PATH": os.pathsep.join(paths)} if paths else {})}


def ensure(wanted: list[Need]) -> None:
    """Install what is missing through apt, or name it.

    Raises:
        SetupError: something needed is missing and cannot be installed from here.
    """
    missing = [need for need in wanted if not need.present()]
    if not missing:
        return
    say("missing on this system: " + ", ".join(need.what for need in missing))
    if sys.platform == "linux" and shutil.which("apt-get"):
        refuse_foreign_python(missing)
        install_through_apt(sorted({need.apt for need in missing}))
        importlib.invalidate_caches()
        still = [need.what for need in missing if not need.present()]
        if still:
            raise SetupError(f"apt has installed its packages, but this is still missing: {', '.join(still)}.")
        return
    advice = install_advice(missing, sys.platform)
    if sys.platform == "linux" or any(need.essential for need in missing):
        raise SetupError(advice)
    say(advice)


def refuse_foreign_python(missing: list[Need]) -> None:
    """Raise SetupError when this Python did not come through apt and lacks what a package could not add to it."""
    lacking = [need.what for need in missing if need.present in (has_venv, has_python_headers)]
    if lacking and Path(sys.base_prefix) != Path("/usr"):
        raise SetupError(
            f"{sys.executable} lacks {' and '.join(lacking)}, and no package can add that: start with /usr/bin/python3."
        )


def install_through_apt(packages: list[str]) -> None:
    """Install `packages` as root or with sudo.

    Raises:
        SetupError: no rights (with the command for an administrator), or apt failed (with the reason).
    """
    rights = elevation()
    if rights is None:
        raise SetupError(
            f"these packages are to be installed first, which needs root:\n  {apt_command(packages)}\n"
            "Run that, or start this command again as root."
        )
    say("installing with apt: " + " ".join(packages))
    code, output = run_shown([*rights, "/bin/sh", str(APT_SCRIPT), *packages])
    if code:
        raise SetupError(explain_apt(output, packages))


def elevation() -> list[str] | None:
    """Return what goes before a command to run it as root, or None when there is no way without asking in vain."""
    if sys.platform == "win32":
        return None
    if os.geteuid() == 0:
        return []
    if shutil.which("sudo") is None:
        return None
    if sys.stdin is not None and sys.stdin.isatty():
        return ["sudo"]
    silent = subprocess.run(["sudo", "-n", "true"], capture_output=True, stdin=subprocess.DEVNULL, check=False)
    return ["sudo", "-n"] if silent.returncode == 0 else None


def apt_command(packages: list[str]) -> str:
    """Return the command line that installs `packages`, for an administrator to run."""
    install = "apt-get install --no-install-recommends " + " ".join(packages)
    return f"sudo apt-get update && sudo {install}" if shutil.which("sudo") else f"apt-get update && {install}"


def explain_apt(output: str, packages: list[str]) -> str:
    """Return one sentence that says why apt failed, from what it printed."""
    command = apt_command(packages)
    if "Could not get lock" in output or "Unable to lock" in output or "Unable to acquire" in output:
        return "another package installation is running and holds apt's lock: wait until it has ended and start again."
    if "a password is required" in output or "not in the sudoers" in output or "incorrect password" in output:
        return f"sudo gave no rights; let an administrator run this, then start again:\n  {command}"
    if "No space left on device" in output or "enough free space" in output:
        return "the disk is full: free some space and start again."
    if "Unable to locate package" in output or "no installation candidate" in output:
        return (
            f"apt's sources lack a package: have Debian's `main` or Ubuntu's `universe` among them, then:\n  {command}"
        )
    if "Failed to fetch" in output or "Temporary failure resolving" in output or "Could not resolve" in output:
        return "apt cannot reach its package sources: connect this machine to the network and start again."
    return f"apt has failed, its last lines above say why; correct that, then start again or run:\n  {command}"


def install_advice(missing: list[Need], platform: str) -> str:
    """Return what to type, or to look for, on a system without apt."""
    if platform == "darwin":
        formulae = sorted({need.brew for need in missing if need.brew and need.what != "C compiler"})
        steps = ["xcode-select --install"] if any(need.what == "C compiler" for need in missing) else []
        steps += ["brew install " + " ".join(formulae)] if formulae else []
        return "install what is missing, then start again:\n  " + "\n  ".join(steps)
    if platform == "win32":
        steps = [f"{need.what}: {need.windows or 'a Python from python.org'}" for need in missing]
        return "install what is missing, then start again:\n  " + "\n  ".join(steps)
    listed = ", ".join(f"{need.what} (Debian's {need.apt})" for need in missing)
    return f"this system has no apt; install with its own package manager, then start again: {listed}."
