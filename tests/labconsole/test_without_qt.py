"""The core and every plugin's headless part work where Qt, the plots and the window are not installed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from tests.helpers.practice import environment

HIDING = Path(__file__).parents[1] / "helpers" / "no_qt"

CORE = (
    "analysis",
    "engine/test_spool.py",
    "report/bundles/test_importing.py::test_runs_arrive_with_everything_and_the_same_digest",
    "report/test_comparison_csv.py",
    "report/test_csv_export.py::test_a_run_becomes_these_files_and_nothing_else",
    "report/test_pdf.py::test_a_report_is_tagged_pdf_a_with_all_fonts_in_it",
    "report/test_result_tables.py",
    "report/test_run_json.py",
    "report/test_signing.py::test_pdfsig_calls_a_signed_report_valid_and_all_of_it_signed",
    "report/test_tables.py",
    "security/test_keyfile.py",
    "store/test_chunks.py",
    "store/test_edits.py",
    "store/test_opening.py",
    "store/test_store.py",
    "test_plugin.py",
    "test_profile.py",
)
"""Tests of the core by place: those that take their time, or show what these show too, are left out."""

IMPORT_EVERYTHING = """
import importlib, pkgutil, sys
import labconsole, labconsole_amqp, labconsole_keypool

names = [m.name for package in (labconsole, labconsole_amqp, labconsole_keypool)
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
    assert int(done.stdout) > 160


def test_a_run_of_the_real_trial_is_finished_and_listed(tmp_path: Path) -> None:
    profile = tmp_path / "small.toml"
    profile.write_text('format = 1\nkind = "amqp.messaging"\n[parameters]\ntest = 2\ncount = 100\n')
    done = _run("-m", "labconsole.cli.main", "run", str(profile), "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["status"] == "finished"


def test_the_core_s_own_tests_pass(tmp_path: Path) -> None:
    """Quick ones of each room of the core that start no run, and a report that is set, signed and handed on."""
    options = ["-o", "addopts=", "--import-mode=importlib", "-m", "not slow", "-q", "--basetemp", str(tmp_path / "t")]
    plugins = ["-p", "no:pytest-qt", "-p", "no:cacheprovider"]
    here = Path(__file__).parent
    done = _run("-m", "pytest", *options, *plugins, *(str(here / name) for name in CORE))
    assert done.returncode == 0, done.stdout[-4000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None and int(passed[1]) > 300, done.stdout[-500:]


def test_the_window_says_what_it_lacks() -> None:
    done = _run("-m", "labconsole.cli.main", "gui")
    assert done.returncode == 1
    assert done.stderr.startswith("labconsole: the window needs ")
    assert "pip install labconsole[gui]" in done.stderr and "Traceback" not in done.stderr
