"""The pages of stored runs: views of runs, comparisons, and forms filled with a run's parameters."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, Signal

from labconsole.store.errors import StoreError
from labconsole_ui.panels.trial_panel import TrialPanel
from labconsole_ui.runtime.services import Services
from labconsole_ui.shell.pages import Pages
from labconsole_ui.views.comparison.comparison_view import ComparisonView
from labconsole_ui.views.run.run_view import RunView
from labconsole_ui.widgets.message_bar import Message, MessageBar, Tone
from labconsole_ui.widgets.status_text import STATUS_ICONS, number_ranges


class RunPages(QObject):
    """Opens the pages of stored runs, each once. The signals carry requests of the pages for their runs.

    `report_wanted` carries run ids, names of published columns, and the baseline: a run's id, such a name, or None.
    """

    report_wanted = Signal(list, list, object)
    export_wanted = Signal(object, list)

    def __init__(
        self,
        services: Services,
        pages: Pages,
        messages: MessageBar,
        open_trial: Callable[[str], TrialPanel | None],
        parent: QObject,
    ) -> None:
        super().__init__(parent)
        self._services = services
        self._pages = pages
        self._messages = messages
        self._open_trial = open_trial
        self._offers: dict[tuple[int, ...], Message] = {}

    def open_run(self, run_id: int) -> None:
        """Open the view of one run; the message that offered it is withdrawn."""
        services, key = self._services, f"run:{run_id}"
        self._withdraw([run_id])

        def make() -> RunView:
            view = RunView(services.reader, run_id, services.plugins, services.theme, services.bridge)
            view.status_shown.connect(lambda status: self._pages.set_icon(key, *STATUS_ICONS[status]))
            view.use_wanted.connect(self.use_parameters)
            view.compare_wanted.connect(self.compare_runs)
            view.report_wanted.connect(lambda run_ids: self.report_wanted.emit(run_ids, [], None))
            view.export_wanted.connect(self.export_wanted)
            return view

        self._pages.show_page(key, self.tr("Run {run}").format(run=run_id), "live", make, freed=True)

    def open_runs(self, run_ids: list[int]) -> None:
        """Open the views of several runs."""
        for run_id in run_ids:
            self.open_run(run_id)

    def follow_runs(self, run_ids: list[int]) -> None:
        """Open the side-by-side view of runs that were just queued: it is filled as they finish."""
        self._open_comparison(run_ids, follow=True)

    def compare_runs(self, run_ids: list[int]) -> None:
        """Open the side-by-side view of several runs; the message that offered it is withdrawn."""
        self._withdraw(run_ids)
        self._open_comparison(run_ids, follow=False)

    def _open_comparison(self, run_ids: list[int], *, follow: bool) -> None:
        services = self._services

        def make() -> ComparisonView:
            view = ComparisonView(
                services.reader,
                run_ids,
                services.plugins,
                services.theme,
                services.state,
                follow=services.bridge if follow else None,
            )
            view.report_wanted.connect(self.report_wanted)
            return view

        key, title = f"compare:{','.join(map(str, run_ids))}", self.tr("Compare {runs}")
        self._pages.show_page(key, title.format(runs=number_ranges(run_ids)), "compare", make, freed=True)

    def offer(self, tone: Tone, sentence: str, run_ids: list[int], *, lasting: bool = False) -> None:
        """Show a message with a link to the run, or to the comparison of several; without runs no link.

        One that is `lasting` stays until it is closed, or the runs are opened.
        """
        link = (self.tr("Compare"), lambda: self.compare_runs(run_ids)) if run_ids else None
        if len(run_ids) == 1:
            link = (self.tr("Open run"), lambda: self.open_run(run_ids[0]))
        self._offers[tuple(run_ids)] = offered = Message(tone, sentence, link=link, lasting=lasting)
        self._messages.show_message(offered)

    def _withdraw(self, run_ids: list[int]) -> None:
        offered = self._offers.pop(tuple(run_ids), None)
        if offered is not None:
            self._messages.withdraw(offered)

    def use_parameters(self, run_id: int) -> None:
        """Fill the form of a run's trial with that run's parameters."""
        try:
            with self._services.reader() as reader:
                row = reader.run(run_id).row
            panel = self._open_trial(row.kind)
        except StoreError as error:
            self._messages.show_message(Message(Tone.BAD, str(error)))
        except KeyError:
            sentence = self.tr("The trial {kind} of this run is not installed here.").format(kind=row.kind)
            self._messages.show_message(Message(Tone.BAD, sentence))
        else:
            if panel is None:
                return
            panel.use_parameters(row.parameters)
            unknown = sorted(row.parameters.keys() - panel.context.trial.parameters.model_fields.keys())
            if unknown:
                sentence = self.tr("The installed trial does not have these parameters of run {run}: {names}.")
                text = sentence.format(run=run_id, names=", ".join(unknown))
                self._messages.show_message(Message(Tone.WARNING, text))
