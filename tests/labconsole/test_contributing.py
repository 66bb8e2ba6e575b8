"""The trial that CONTRIBUTING.md shows is complete: it runs as printed there."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest
from hatchling.builders.wheel import WheelBuilder

from labconsole.cli.main import main
from tests.helpers.worker_threads import workers_in_threads

ROOT = Path(__file__).parents[2]


def sample(folder: Path) -> Path:
    """The files of the sample, written into `folder` as CONTRIBUTING.md lays them out; returns their folder."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## Add a trial")[2]
    code = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    project, profile = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)[:2]
    assert code is not None
    package = folder / "dice" / "labconsole_dice"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(code.group(1), encoding="utf-8")
    (package.parent / "pyproject.toml").write_text(project, encoding="utf-8")
    (package.parent / "dice.toml").write_text(profile, encoding="utf-8")
    return package.parent


def test_the_trial_in_contributing_is_installed_and_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    project = sample(tmp_path)
    profile = project / "dice.toml"
    # As `pip install --no-build-isolation` does: both ways need no package that the console's environment lacks.
    _editable, wheel = (
        next(WheelBuilder(str(project)).build(directory=str(tmp_path / version), versions=[version]))
        for version in ("editable", "standard")
    )
    with ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LABCONSOLE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"), prepend=os.pathsep)
    monkeypatch.syspath_prepend(tmp_path / "site")

    def labconsole(*arguments: str) -> str:
        """What a command prints that must succeed, here; its runs are in threads."""
        code: int | str | None
        with workers_in_threads():
            try:
                code = main(arguments)
            except SystemExit as end:
                code = end.code
        assert code == 0
        return capsys.readouterr().out

    command = [sys.executable, "-m", "labconsole.cli.main", "run", str(profile), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    run = json.loads(done.stdout)
    assert run["status"] == "finished"
    assert 3.3 < run["metrics"]["eyes_mean"]["value"] < 3.7
    more = json.loads(labconsole("run", str(profile), "--set", "throws=9000", "--json"))
    assert "More throws against fewer" in labconsole("compare", str(run["run"]), str(more["run"]), "--all")
    labconsole("report", str(run["run"]), str(more["run"]), "--pdf", str(tmp_path / "dice.pdf"))
    assert (tmp_path / "dice.pdf").stat().st_size > 20_000
    eyes = json.loads(labconsole("roll-dice", "--dice", "3", "--json"))["eyes"]
    assert len(eyes) == 3 and set(eyes) <= set(range(1, 7))
    assert "throw some dice once" in labconsole("--help")
    sys.modules.pop("labconsole_dice", None)


def test_the_trial_in_contributing_imports_from_the_interface_alone(tmp_path: Path) -> None:
    code = (sample(tmp_path) / "labconsole_dice" / "__init__.py").read_text(encoding="utf-8")
    assert set(re.findall(r"^from (labconsole\S*) import", code, re.MULTILINE)) == {"labconsole.api"}


@pytest.mark.nightly
@pytest.mark.timeout(600)
def test_the_types_of_the_trial_in_contributing_are_checked_against_the_installed_console(tmp_path: Path) -> None:
    """From a folder without configuration, as a plugin author would: what is wrong is found, too.

    Nightly: alone finds that the types of the sample, or those of the installed console, are wrong; that the sample
    runs is judged in CI by the first test, and the types of the sources by `.ci/run`.
    """
    package = sample(tmp_path) / "labconsole_dice"
    module = package / "__init__.py"
    right = module.read_text(encoding="utf-8")

    def faults(code: str) -> list[str]:
        module.write_text(code, encoding="utf-8")
        strict = ("--strict", "--config-file=", "--cache-dir", str(tmp_path / "cache"), "--no-error-summary")
        done = subprocess.run(
            [sys.executable, "-m", "mypy", *strict, str(package)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=500,
            check=False,
        )
        assert done.stderr == ""
        return done.stdout.splitlines()

    assert faults(right) == []
    unknown, wrong, bare = faults(
        right.replace("    Trial,\n", "    Trail,\n    Trial,\n")
        .replace('context.count("throws", count)', 'context.count("throws", "many")')
        .replace("def run(self, parameters: DiceParameters, context: RunContext)", "def run(self, parameters, context)")
    )
    assert 'Module "labconsole.api" has no attribute "Trail"' in unknown
    assert "[arg-type]" in wrong and "[no-untyped-def]" in bare
