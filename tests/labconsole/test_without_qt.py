"""The core and every plugin's headless part work where Qt, the plots and the window are not installed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.practice import environment

HIDING = Path(__file__).parents[1] / "helpers" / "no_qt"

FEW = (
    "analysis/test_findings.py::test_each_scenario_is_compared_with_the_first_and_the_previous_one",
    "engine/test_spool.py::test_recording_twice_or_in_pieces_stores_each_row_once",
    "model/test_plugin.py::test_third_party_plugin_is_found_through_the_entry_point_group",
    "output/bundles/test_importing.py::test_runs_arrive_with_everything_and_the_same_digest",
    "output/report/test_pdf.py::test_a_report_is_tagged_pdf_a_with_all_fonts_in_it",
    "output/report/test_signing.py::test_pdfsig_calls_a_signed_report_valid_and_all_of_it_signed",
    "output/test_csv_export.py::test_a_run_becomes_these_files_and_nothing_else",
    "output/test_run_json.py::test_a_run_has_everything_but_its_samples",
    "profiles/test_profile.py::test_a_matrix_is_every_combination_of_every_scenario",
    "security/test_key_files.py::test_saved_key_is_encrypted_pkcs8_of_its_owner_alone",
    "store/test_store.py::test_run_is_read_with_all_that_was_written",
)
"""A test of each package of the core that uses the whole of it."""

MANY = (
    *("analysis", "engine/test_spool.py", "model/test_plugin.py", "output/test_comparison_csv.py"),
    *("output/report/test_result_tables.py", "output/test_export_file.py", "output/test_run_json.py"),
    *("profiles/test_profile.py", "security/test_key_files.py", "store/test_chunks.py", "store/test_edits.py"),
    *("store/test_database_file.py", "store/test_store.py"),
)
"""Those that take little time and start no run."""

IMPORT_EVERYTHING = """
import importlib, pkgutil, sys
import labconsole, labconsole_amqp, labconsole_certificates, labconsole_keypool, labconsole_v2x

packages = (labconsole, labconsole_amqp, labconsole_certificates, labconsole_keypool, labconsole_v2x)
names = [m.name for package in packages
         for m in pkgutil.walk_packages(package.__path__, package.__name__ + ".")]
headless = [n for n in names if ".panel" not in n]
for name in headless:
    importlib.import_module(name)
assert not [n for n in sys.modules if n.partition(".")[0] in ("PySide6", "pyqtgraph", "labconsole_ui")]
try:
    import PySide6
except ModuleNotFoundError:
    print(len(headless))
"""

EVERYTHING = (
    IMPORT_EVERYTHING
    + """
import contextlib, io, json, os
import pytest
from labconsole.cli.main import main
from tests.helpers.worker_threads import workers_in_threads

profile, *arguments = sys.argv[1:]
for command in (["gui"], ["run", profile, "--json"]):
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors), workers_in_threads():
        code = main(command)
    print(json.dumps([code, out.getvalue(), errors.getvalue()]), flush=True)
sys.exit(pytest.main(arguments))
"""
)
"""In one process, which imports once: every module, the command for the window, a run of a profile, and tests."""


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, timeout=90, env=environment(HIDING)
    )


def pytest_arguments(folder: Path, *names: str) -> list[str]:
    """Arguments of pytest that run these tests of the core, with files in `folder`."""
    options = ["-o", "addopts=", "--import-mode=importlib", "-m", "not nightly", "-q", "--basetemp", str(folder)]
    here = Path(__file__).parent
    plugins = ["-p", "no:pytest-qt", "-p", "no:cacheprovider"]
    return [*options, *plugins, *(str(here / name) for name in names)]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    """All that is tried here: a line for the modules, one for each command, and the output of the tests."""
    folder = tmp_path_factory.mktemp("without qt")
    profile = folder / "small.toml"
    profile.write_text('format = 1\nkind = "amqp.messaging"\n[parameters]\ntest = 2\ncount = 100\n')
    done = _run("-c", EVERYTHING, str(profile), *pytest_arguments(folder / "t", *FEW))
    assert done.stdout.count("\n") > 3, done.stderr
    return done


def test_every_headless_module_imports(done: subprocess.CompletedProcess[str]) -> None:
    assert int(done.stdout.splitlines()[0]) > 160


def test_a_run_of_the_real_trial_is_finished_and_listed(done: subprocess.CompletedProcess[str]) -> None:
    code, output, errors = json.loads(done.stdout.splitlines()[2])
    assert code == 0, errors
    assert json.loads(output)["status"] == "finished"


def assert_passed(tests: subprocess.CompletedProcess[str], least: int) -> None:
    """So many tests passed, and none failed."""
    assert tests.returncode == 0, tests.stdout[-4000:]
    passed = re.search(r"(\d+) passed", tests.stdout)
    assert passed is not None and int(passed[1]) >= least, tests.stdout[-500:]


def test_a_test_of_each_package_of_the_core_passes_without_qt(done: subprocess.CompletedProcess[str]) -> None:
    assert_passed(done, len(FEW))


@pytest.mark.nightly
def test_tests_of_the_core_pass_without_qt(tmp_path: Path) -> None:
    """What only these use and imports Qt within a function is a fault that the nightly set alone finds."""
    assert_passed(_run("-m", "pytest", *pytest_arguments(tmp_path / "t", *MANY)), 500)


def test_gui_command_names_the_missing_package(done: subprocess.CompletedProcess[str]) -> None:
    code, _, errors = json.loads(done.stdout.splitlines()[1])
    assert code == 1
    assert errors.startswith("labconsole: the window needs ")
    assert "pip install labconsole[gui]" in errors and "Traceback" not in errors
