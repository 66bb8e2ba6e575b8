"""The trial that CONTRIBUTING.md shows is complete: it runs as it stands there."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_trial_in_contributing_runs(tmp_path: Path) -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    code = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    door = re.search(r'```toml\n\[project\.entry-points\."labconsole\.plugins"\]\n(.*?)```', text, re.DOTALL)
    assert code is not None
    assert door is not None
    package = tmp_path / "site" / "labconsole_dice"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(code.group(1), encoding="utf-8")
    metadata = tmp_path / "site" / "labconsole_dice-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: labconsole-dice\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text("[labconsole.plugins]\n" + door.group(1).replace('"', ""))
    profile = tmp_path / "dice.toml"
    profile.write_text('format = 1\nkind = "dice"\n[parameters]\nthrows = 6000\n')

    def labconsole(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "labconsole.cli.main", *arguments, "--db", str(tmp_path / "runs.db")],
            env={**os.environ, "PYTHONPATH": str(tmp_path / "site"), "LABCONSOLE_HOME": str(tmp_path / "home")},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    run = json.loads(labconsole("run", str(profile), "--json"))
    assert run["status"] == "finished"
    assert 3.3 < run["metrics"]["eyes_mean"]["value"] < 3.7
    more = json.loads(labconsole("run", str(profile), "--set", "throws=9000", "--json"))
    assert "More throws against fewer" in labconsole("compare", str(run["run"]), str(more["run"]), "--all")
    labconsole("report", str(run["run"]), str(more["run"]), "--pdf", str(tmp_path / "dice.pdf"))
    assert (tmp_path / "dice.pdf").stat().st_size > 20_000
