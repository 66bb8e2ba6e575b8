"""What the page of use cases shows around its list: the counts of a run, and a case with all that belongs to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from html import escape

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QTextBrowser, QVBoxLayout, QWidget

from labconsole.analysis.number_format import NO_FIGURE
from labconsole.safe_text import shown_lines
from labconsole_ui.theme.theme import FontRole, Theme
from labconsole_ui.widgets.labels import plain_label
from labconsole_v2x.panel.use_cases.use_case_monitor import (
    FAILED_WORD,
    NOT_TESTED_WORD,
    PASSED_WORD,
    WAITING,
    CaseResult,
    RunResults,
)
from labconsole_v2x.security.backends import Backend
from labconsole_v2x.use_case_reference import NOT_PRINTED
from labconsole_v2x.use_cases.catalogue import CODES, USE_CASES
from labconsole_v2x.use_cases.use_case import UseCase
from labconsole_v2x.use_cases.use_case_role import RUNNING

COUNTED = tuple(code for code, case in USE_CASES.items() if case.counted)
FUNCTIONS = tuple(code for code in CODES if code not in COUNTED)


class SummaryCard(QFrame):
    """Four large counts, and of which run they are."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.setProperty("card", True)
        self._theme = theme
        line = QHBoxLayout(self)
        line.setContentsMargins(18, 10, 18, 10)
        line.setSpacing(28)
        self.passed = self._figure(line, self.tr("Passed"))
        self.failed = self._figure(line, self.tr("Failed"))
        self.not_tested = self._figure(line, self.tr("Not tested"))
        self.functions = self._figure(line, self.tr("Functions passed"))
        self.run_label = plain_label("", self)
        self.run_label.setWordWrap(True)
        self.run_label.setProperty("muted", True)
        line.addWidget(self.run_label, 1)
        self.show_results(RunResults())

    def show_results(self, shown: RunResults) -> None:
        """Show the counts of a run."""
        known = bool(shown.results)
        figures = (
            (self.passed, PASSED_WORD, COUNTED, "good"),
            (self.failed, FAILED_WORD, COUNTED, "bad"),
            (self.not_tested, NOT_TESTED_WORD, COUNTED, "warning"),
            (self.functions, PASSED_WORD, FUNCTIONS, ""),
        )
        for figure, word, codes, tone in figures:
            count = shown.count(word, codes)
            self._set(figure, f"{count} / {len(codes)}" if known else NO_FIGURE, tone if count else "")
        self.run_label.setText(self._about(shown))

    def _about(self, shown: RunResults) -> str:
        if shown.run_id is None:
            return self.tr("No run yet. Check the cases to test, and press Run.")
        keys = ""
        if shown.parameters is not None:
            software, token = self.tr("in software"), self.tr("in token {0}").format(shown.parameters.token)
            keys = token if shown.parameters.backend is Backend.TOKEN else software
        text = self.tr("Run {0}, keys {1}") if keys else self.tr("Run {0}")
        text = text.format(shown.run_id, keys)
        current = next((code for code, found in shown.results.items() if found.word == RUNNING), "")
        if not shown.running:
            return f"{text}."
        waiting = shown.count(WAITING, CODES)
        return self.tr("{0}: {1} in progress, {2} waiting.").format(text, current or NO_FIGURE, waiting)

    def _figure(self, line: QHBoxLayout, title: str) -> tuple[QLabel, QLabel]:
        caption, value = plain_label(title, self), plain_label("", self)
        caption.setFont(self._theme.font(FontRole.CAPTION))
        caption.setProperty("muted", True)
        value.setFont(self._theme.font(FontRole.TITLE))
        value.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        column = QVBoxLayout()
        column.setSpacing(0)
        column.addWidget(caption)
        column.addWidget(value)
        line.addLayout(column)
        return caption, value

    def _set(self, figure: tuple[QLabel, QLabel], value: str, tone: str) -> None:
        caption, label = figure
        label.setText(value)
        label.setAccessibleName(f"{caption.text()}: {value}")
        if label.property("tone") != (tone or None):
            label.setProperty("tone", tone or None)
            label.style().unpolish(label)
            label.style().polish(label)


class CaseDetails(QTextBrowser):
    """A case: result and reason, steps, attacker's capability, interpretation, pass criterion, test purposes."""

    def __init__(self, theme: Theme, source: Mapping[str, str], parent: QWidget) -> None:
        """`source` has what Table 2.17 reports, by code."""
        super().__init__(parent)
        self._theme = theme
        self._source = source
        self._code = ""
        self._shown = RunResults()
        self.setOpenLinks(False)
        self.document().setDocumentMargin(10)
        self.setAccessibleName(self.tr("The selected use case"))
        theme.changed.connect(self._write)
        self._write()

    def show_case(self, code: str) -> None:
        """Show another case; "" for none."""
        self._code = code
        self._write()
        self.verticalScrollBar().setValue(0)

    def show_results(self, shown: RunResults) -> None:
        """Show the result of another run, or a newer one."""
        before, self._shown = self._shown.results.get(self._code), shown
        if shown.results.get(self._code) != before:
            self._write()

    def _write(self) -> None:
        self.setFont(self._theme.font(FontRole.BODY))
        place = self.verticalScrollBar().value()
        case = USE_CASES.get(self._code)
        hint = self.tr("Select a case to see its steps, its pass criterion and the reason of its result.")
        self.setHtml(self._line(hint, muted=True) if case is None else "".join(self._parts(case)))
        self.verticalScrollBar().setValue(place)

    def _parts(self, case: UseCase) -> Iterator[str]:
        found = self._shown.results.get(case.code, CaseResult(""))
        required = self.tr("mandatory") if case.mandatory else self.tr("optional")
        yield self._line(f"{case.code}: {case.title}", strong=True)
        yield self._line(f"{case.reference_point.value}; {required}", muted=True)
        yield self._heading(self.tr("Result"))
        word = f"{found.word.capitalize()}." if found.word else self.tr("No run yet.")
        yield self._line(f"{word} {found.reason}".strip())
        if case.counted:
            reported = self._source.get(case.code, NOT_PRINTED)
            yield self._line(self.tr("The source, Table 2.17: {0}.").format(reported), muted=True)
        for heading, lines in (
            (self.tr("Steps"), case.steps),
            (self.tr("Attacker's capability"), (case.capability,)),
            (self.tr("Interpretation"), (case.interpretation,)),
            (self.tr("Passed if"), map(str, case.criteria)),
            (self.tr("Closest ETSI test purposes"), case.test_purposes),
        ):
            yield from self._section(heading, filter(None, lines))

    def _section(self, heading: str, lines: Iterable[str]) -> Iterator[str]:
        shown = list(lines)
        if not shown:
            return
        yield self._heading(heading)
        if len(shown) == 1:
            yield self._line(shown[0])
            return
        items = "".join(f"<li style='margin-bottom: 3px'>{_escaped(line)}</li>" for line in shown)
        yield f"<ul style='margin-left: -22px; margin-top: 0px'>{items}</ul>"

    def _heading(self, text: str) -> str:
        colour = self._theme.colours.muted
        style = f"color: {colour}; font-weight: 600; margin-top: 10px; margin-bottom: 2px"
        return f"<p style='{style}'>{escape(text)}</p>"

    def _line(self, text: str, *, muted: bool = False, strong: bool = False) -> str:
        colour = self._theme.colours.muted if muted else self._theme.colours.text
        weight = 600 if strong else 400
        style = f"color: {colour}; font-weight: {weight}; margin-top: 0px; margin-bottom: 2px"
        return f"<p style='{style}'>{_escaped(text)}</p>"


def _escaped(text: str) -> str:
    return escape(shown_lines(text))
