"""The page of the benchmark: the usual panel, with tokens chosen by name and the time that it takes."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication

from labconsole.analysis.number_format import format_duration
from labconsole.model.trial import Parameters
from labconsole_ui.form.token_editor import TokenEditor
from labconsole_ui.panels.trial_panel import Fact, PanelContext, TrialPanel
from labconsole_ui.widgets.help_chapter import set_chapter
from labconsole_v2x.benchmark.benchmark_parameters import BenchmarkParameters
from labconsole_v2x.benchmark.benchmark_trial import expected_seconds


def make_benchmark_panel(context: PanelContext) -> BenchmarkPanel:
    """The factory that the manifest names."""
    return BenchmarkPanel(context)


class BenchmarkPanel(TrialPanel):
    """The usual panel."""

    def __init__(self, context: PanelContext) -> None:
        super().__init__(context, {"token": TokenEditor})
        set_chapter(self, "explanation/v2x-benchmark.md")

    def facts(self, parameters: Parameters) -> list[Fact]:
        """The time of a run, and on how many cores it measures."""
        assert isinstance(parameters, BenchmarkParameters)
        tr = QCoreApplication.translate
        return [
            Fact(
                tr("BenchmarkPanel", "A run takes about"),
                format_duration(expected_seconds(parameters)),
                tr("BenchmarkPanel", "Leave the computer alone meanwhile: all figures are times"),
            ),
            Fact(
                tr("BenchmarkPanel", "Several cores"),
                tr("BenchmarkPanel", "{0} processes, {0} threads").format(parameters.parallel),
                tr("BenchmarkPanel", "Signing and verifying packets, and openssl speed -multi"),
            ),
        ]
