"""The pages of the reference are made from the definitions, and those in `docs/` are current."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Literal

import pytest
from pydantic import Field

from labconsole.api import (
    BYTES,
    Column,
    Direction,
    Evaluation,
    LiveChannel,
    LiveKind,
    MetricKind,
    Parameters,
    Series,
    Trial,
    TrialCommand,
)
from labconsole.model.plugin import Plugins
from labconsole.reference.markdown import table
from labconsole.reference.pages import reference_pages
from labconsole.reference.parameters import parameter_tables
from labconsole.reference.trials import trial_page

DOCS = Path(__file__).parents[3] / "docs"


class Size(Enum):
    SMALL = "small"
    LARGE = "large"


class StationParameters(Parameters):
    rate: float = Field(
        10.0, title="Rate", description="Of each | station", gt=0, le=50, json_schema_extra={"unit": "1/s"}
    )
    size: Size = Field(Size.SMALL, title="Size", description="Of *a* message", json_schema_extra={"group": "Messages"})
    lost: bool = Field(
        False,
        title="Lost",
        description="Lose some",
        json_schema_extra={"group": "Messages", "shown_if": {"size": "large"}},
    )
    test: Literal[1, 2] = Field(1, title="Test", description="Which", json_schema_extra={"labels": {"1": "The first"}})


class StationTrial(Trial[StationParameters]):
    kind = "stations.load"
    title = "Stations"
    description = "Do stations hear each other?"
    parameters = StationParameters
    series = (Series("frames", "Frames", (Column("t_ns", "i8", "ns", "Time"), Column("frame", BYTES, "", "Frame"))),)
    metrics = (MetricKind("heard", "Heard", "%", Direction.HIGHER, "share of frames heard", at_rate=True),)
    live = (LiveChannel("load", "Load", "%", kind=LiveKind.GAUGE),)
    commands = (TrialCommand("set_rate", "Set rate", "Changes a rate.", StationParameters, ("station-*",)),)

    def roles(self, parameters):  # type: ignore[no-untyped-def]
        return ()

    def run(self, parameters, context):  # type: ignore[no-untyped-def]
        raise NotImplementedError

    def evaluate(self, parameters, samples, events):  # type: ignore[no-untyped-def]
        return Evaluation(())


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return reference_pages(Plugins.discover())


def test_pages_in_docs_are_current(pages: dict[str, str]) -> None:
    outdated = [name for name, text in pages.items() if (DOCS / name).read_text(encoding="utf-8") != text]
    assert not outdated, f"{', '.join(outdated)}: run docs/reference_pages.py"


def test_every_parameter_metric_operation_and_command_is_there(pages: dict[str, str]) -> None:
    plugins = Plugins.discover()
    for kind in plugins.kinds():
        text = pages[f"reference/trial-{kind.replace('.', '-')}.md"]
        trial = plugins.trial(kind)
        names = [*trial.parameters.model_fields, *(metric.name for metric in trial.metrics)]
        assert [name for name in names if f"`{name}`" not in text] == []
    for plugin in plugins.providers:
        for name, entry in plugin.operations.items():
            assert f"`{name}`" in pages["reference/operations.md"]
            group, _, command = entry.command.partition(" ")
            assert not command or f"## {group} {command}\n" in pages[f"reference/commands-{group}.md"]


def test_a_trial_describes_itself() -> None:
    text = trial_page(StationTrial())
    assert text.startswith("# Stations\n\nKind of trial: `stations.load`. Do stations hear each other?")
    assert "| `rate` | Rate | > 0, ≤ 50 1/s | `10.0` | Of each \\| station. |" in text
    assert "| `size` | Size | `small`, `large` | `small` | Of \\*a\\* message. |" in text
    assert '| `lost` | Lost | `true`, `false` | `false` | Lose some. Only if `size` is `"large"`. |' in text
    assert "| `test` | Test | `1` (The first), `2` | `1` | Which. |" in text
    assert "| `heard` | Heard | % | higher | Share of frames heard. Judged only at the same offered rate. |" in text
    assert "| `frame` | Frame | `bytes` |  |" in text
    assert "| `load` | Load | % | number of each role |" in text
    assert "Recorded as `set_rate`. Changes a rate. Sent to one of the roles `station-*`." in text


def test_an_argument_is_named_as_it_is_typed(pages: dict[str, str]) -> None:
    commands = pages["reference/commands.md"]
    assert "| `[--json] `" not in commands
    assert "| `RUN ...` | Numbers of the runs." in commands
    assert "`--csv [DIR]`" in commands and "`--paper {a4,letter}`" in commands
    pki = pages["reference/commands-pki.md"]
    assert "| `--days N`, `--valid-days N` | `valid_days` |" in pki
    assert "| `STATE` | `state` |" in pki


def test_the_plugin_interface_has_types_methods_and_texts(pages: dict[str, str]) -> None:
    text = pages["reference/plugin-interface.md"]
    assert "| `api_version` | `int` | Version of the plugin interface" in text
    assert "| `evaluate(parameters: P, samples: Samples, events: Sequence[Event]) -> Evaluation` | Metrics and" in text
    assert "| `HIGHER` | `'higher'` |" in text
    assert "### API_VERSION" in text


def test_tables_leave_out_columns_without_content() -> None:
    assert table(("A", "B"), [("x | y", ""), ("`a|b` <c>", "")]) == "| A |\n| --- |\n| x \\| y |\n| `a or b` &lt;c> |"
    assert table(("A",), []) == ""
    assert parameter_tables(Parameters) == ""
