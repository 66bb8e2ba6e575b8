"""The core and every plugin's headless part work where Qt, the plots and the window are not installed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from tests.helpers.practice import environment

HIDING = Path(__file__).parents[1] / "helpers" / "no_qt"

IMPORT_EVERYTHING = """
import importlib, pkgutil, sys
import labconsole, labconsole_amqp

names = [m.name for package in (labconsole, labconsole_amqp)
         for m in pkgutil.walk_packages(package.__path__, package.__name__ + ".")]
headless = [n for n in names if ".panel" not in n and not n.endswith("windows_job")]
for name in headless:
    importlib.import_module(name)
assert not [n for n in sys.modules if n.partition(".")[0] in ("PySide6", "pyqtgraph", "labconsole_ui")]
try:
    import PySide6
except ModuleNotFoundError:
    print(len(headless))
"""


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, timeout=90, env=environment(HIDING)
    )


def test_every_headless_module_imports() -> None:
    done = _run("-c", IMPORT_EVERYTHING)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 60


def test_a_run_of_the_real_trial_is_finished_and_listed(tmp_path: Path) -> None:
    profile = tmp_path / "small.toml"
    profile.write_text('format = 1\nkind = "amqp.messaging"\n[parameters]\ntest = 2\ncount = 100\n')
    done = _run("-m", "labconsole.cli.main", "run", str(profile), "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["status"] == "finished"


def test_the_core_s_own_tests_pass(tmp_path: Path) -> None:
    """What needs no process of a run: store, spool, analysis, reports, profiles, plugins, identities and secrets."""
    here = Path(__file__).parent
    quick = ["store", "analysis", "report", "security", "test_profile.py", "test_plugin.py", "engine/test_spool.py"]
    options = ["-o", "addopts=", "--import-mode=importlib", "-m", "not slow", "-q", "--basetemp", str(tmp_path / "t")]
    plugins = ["-p", "no:pytest-qt", "-p", "no:cacheprovider"]
    skipped = [f"--ignore={here / 'store' / 'test_crash_safety.py'}"]
    done = _run("-m", "pytest", *options, *plugins, *skipped, *(str(here / name) for name in quick))
    assert done.returncode == 0, done.stdout[-4000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None and int(passed[1]) > 200, done.stdout[-500:]


def test_the_window_says_what_it_lacks() -> None:
    done = _run("-m", "labconsole.cli.main", "gui")
    assert done.returncode == 1
    assert done.stderr.startswith("labconsole: the window needs ")
    assert "pip install labconsole[gui]" in done.stderr and "Traceback" not in done.stderr
