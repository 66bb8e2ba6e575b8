"""Prove by hand that the two commands work on a bare Debian: `sudo python3 tests/installer/prove_bare_root.py`.

No part of the suite: it takes minutes, root, `debootstrap`, and the network. It makes a minimal root with python3 in a
temporary directory, from the mirror and with the pip and proxy settings of this machine, clones the committed state of
this checkout into it, and there starts `installer/bootstrap.py` without rights, without a network, killed half-way,
whole, a second time, and for the tests: as root or, with --sudo, as a user who has sudo. Mounts and processes live in
namespaces of their own and end with them; the directory is removed.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
PLACE = Path("srv", "console")
BOOTSTRAP = "python3 installer/bootstrap.py"
HANDED_IN = re.compile(r"(PIP_\w+|SSL_CERT_FILE|(https?|no)_proxy)$", re.IGNORECASE)
HANDED_FILES = Path("etc", "handed-in")
NOBODY = "65534:65534"
USER = "1000:1000"
WINDOW_OPEN = 15  # seconds
KILLED_AFTER = (8, 30)  # seconds: in the midst of apt, and of pip
LINKED = "ldd .venv/lib/python3*/site-packages/PySide6/Qt/plugins/platforms/libq{xcb,wayland,offscreen}.so"


def mirror(suite: str) -> str:
    """Return the address of this machine's own package source for `suite`."""
    for source in [Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*"))]:
        text = source.read_text("utf-8") if source.is_file() else ""
        for stanza in re.split(r"\n\s*\n", text):
            address = re.search(r"^URIs:\s*(\S+)", stanza, re.MULTILINE)
            if address and re.search(rf"^Suites:.*\b{suite}(\s|$)", stanza, re.MULTILINE):
                return address[1]
        line = re.search(rf"^deb\s+(?:\[[^]]*\]\s+)?(\S+)\s+{suite}\s", text, re.MULTILINE)
        if line:
            return line[1]
    sys.exit(f"This machine's apt sources have no {suite}: name one with --suite.")


def settings_files() -> list[Path]:
    """Return the files of this machine's own network settings: pip's, apt's proxy, the resolver."""
    apt = [path for path in Path("/etc/apt/apt.conf.d").glob("*") if "proxy" in path.read_text("utf-8").lower()]
    wanted = [Path("/etc/pip.conf"), Path("/etc/resolv.conf"), Path("/etc/hosts"), *apt]
    return [path for path in wanted if path.is_file()]


def handed_in() -> dict[str, str]:
    """Return this machine's settings of pip and of its proxies, as environment variables."""
    return {name: value for name, value in os.environ.items() if HANDED_IN.match(name)}


def issue_root(root: Path, suite: str, sudo: bool) -> None:
    """Make the bare root, this machine's network settings and the clone in it; with a user who has sudo if asked."""
    packages = "python3,sudo" if sudo else "python3"
    subprocess.run(
        ["debootstrap", "--variant=minbase", f"--include={packages}", suite, root, mirror(suite)], check=True
    )
    for path in settings_files():
        target = root / path.relative_to("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    for path in filter(Path.is_file, map(Path, handed_in().values())):
        (root / HANDED_FILES).mkdir(exist_ok=True)
        shutil.copy(path, root / HANDED_FILES / path.name)
    subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", CHECKOUT, root / PLACE], check=True)
    if sudo:
        subprocess.run(["chroot", root, "useradd", "--create-home", "--uid", "1000", "trial"], check=True)
        (root / "etc/sudoers.d/trial").write_text("trial ALL=(ALL) NOPASSWD: ALL\n", "utf-8")
        subprocess.run(["chroot", root, "chown", "-R", "trial:", f"/{PLACE}"], check=True)


def inside(root: Path, command: str, user: str, network: bool = True) -> tuple[int, str, float]:
    """Run a shell command in the clone, in namespaces that end with it; return exit code, stdout and seconds."""
    outer = f'mount -t proc proc "{root}/proc" && mount --rbind /dev "{root}/dev" && exec chroot --userspec={user} "$@"'
    # Certificates lie where no package of the root overwrites them.
    settings = [
        f"{name}=/{HANDED_FILES / Path(value).name}" if Path(value).is_file() else f"{name}={value}"
        for name, value in handed_in().items()
    ]
    path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    home = "HOME=/home/trial" if user == USER else "HOME=/root"
    in_clone = f"cd /{PLACE} || exit; {command}; exit $?"  # the shell stays, as the init that reaps orphans
    inner = [str(root), "/usr/bin/env", "-i", path, home, "LANG=C.UTF-8", *settings, "/bin/bash", "-c", in_clone]
    namespaces = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private"]
    namespaces += [] if network else ["--net"]
    print(f"--- {command}", flush=True)
    began = time.monotonic()
    done = subprocess.run(
        [*namespaces, "/bin/sh", "-c", outer, "sh", *inner],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    seconds = time.monotonic() - began
    print(f"{done.stdout}--- exit code {done.returncode} after {seconds:.1f} s", flush=True)
    return done.returncode, done.stdout, seconds


def prove(root: Path, user: str, pytest_arguments: list[str]) -> list[str]:
    """Go through the two commands; return what was not as it must be."""
    faults: list[str] = []

    def expect(what: str, as_expected: bool) -> None:
        print(f"{'ok   ' if as_expected else 'FAULT'} {what}", flush=True)
        if not as_expected:
            faults.append(what)

    code, _, _ = inside(root, f"{BOOTSTRAP} run", NOBODY)
    expect("without rights it ends with 1", code == 1)
    code, _, _ = inside(root, f"{BOOTSTRAP} run", user, network=False)
    expect("without a network it ends with 1", code == 1)
    expect("neither has made anything", not (root / PLACE / ".venv").exists())
    for seconds in KILLED_AFTER:
        code, _, _ = inside(root, f"timeout --signal KILL {seconds} {BOOTSTRAP} run", user)
        expect(f"killed after {seconds} s", code == 137)

    code, output, seconds = inside(root, f"{BOOTSTRAP} run", user)
    expect(f"the first whole `run` works ({seconds:.0f} s)", code == 0)
    expect("it says where the database is", "runs.db" in output)
    code, output, _ = inside(root, LINKED, user)
    expect("every library that Qt's platforms link is there", code == 0 and "not found" not in output)
    code, _, _ = inside(root, ".venv/bin/python -c 'import proton; raise SystemExit(not proton.SSL.present())'", user)
    expect("python-qpid-proton has TLS", code == 0)

    direct = min(inside(root, ".venv/bin/labconsole --help", user)[2] for _ in range(3))
    again = min(inside(root, f"{BOOTSTRAP} run -- --help", user)[2] for _ in range(3))
    expect(f"a second start takes {again - direct:.2f} s before the application", again - direct < 1)
    code, _, _ = inside(root, f"{BOOTSTRAP} run -- no-such-command", user)
    expect("the exit code is the application's", code == 2)

    code, _, seconds = inside(root, " ".join([BOOTSTRAP, "test", "--", *pytest_arguments]), user)
    expect(f"`test` passes ({seconds:.0f} s)", code == 0)

    code, _, _ = inside(root, f"Xvfb :7 & sleep 2; DISPLAY=:7 timeout {WINDOW_OPEN} {BOOTSTRAP} run", user)
    expect(f"on a display `run` opens the window, and it is still open after {WINDOW_OPEN} s", code == 124)

    expect("no policy for services is left behind", not (root / "usr/sbin/policy-rc.d").exists())
    enabled = [link.name for link in (root / "etc/systemd/system").glob("*.wants/*")]
    expect(f"no broker starts with the machine ({enabled})", not re.search("rabbit|epmd", " ".join(enabled)))
    started = [link.name for link in root.glob("etc/rc[2345].d/S*rabbit*")]
    expect(f"nor under another init ({started})", not started)
    return faults


def main() -> int:
    """Make the root, prove, clean up; return 1 when something was not as it must be."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--suite", default="bookworm", help="release of Debian, from this machine's own mirror")
    parser.add_argument("--sudo", action="store_true", help="as a user who has sudo, not as root")
    parser.add_argument("pytest", nargs="*", help="arguments for pytest, after --")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bare-root-") as directory:
        root = Path(directory, "root")
        issue_root(root, options.suite, options.sudo)
        faults = prove(root, USER if options.sudo else "0:0", options.pytest)
    print("proven" if not faults else "NOT proven: " + "; ".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
