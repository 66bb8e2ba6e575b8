"""What a manager sees at a glance: messages verified a second, what is lost, how many neighbours that serves."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from labconsole.analysis.number_format import NO_FIGURE, format_number, row_scale
from labconsole_ui.theme.theme import FontRole, Theme
from labconsole_ui.widgets.labels import plain_label

NEIGHBOUR_HZ = 10.0
"""CAMs a second of a neighbour: the most that EN 302 637-2 allows."""
_SOME_LOSS, _MUCH_LOSS = 0.05, 1.0


@dataclass(frozen=True)
class Glance:
    """The figures; None where there is none yet. Rates per second and receiver, times in ms, loss in %."""

    verified: float | None = None
    latency_p99_ms: float | None = None
    loss: float | None = None
    capacity: float | None = None
    """Packets a second that this computer verifies, by its newest benchmark."""
    verifies: bool = True
    receivers: int = 1
    """How many stations receive: `verified` is the mean of them."""
    doubt: str = ""
    """Why the latency of a run is not judged."""
    run_id: int | None = None
    """The run that is over, of which these are the results; None: a run in progress."""
    uncertainty_ms: float = 0.0
    """Of the latency of a run over several hosts."""


class GlanceCard(QFrame):
    """Four large figures with a caption and a note each."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.setProperty("card", True)
        self._theme = theme
        line = QHBoxLayout(self)
        line.setContentsMargins(18, 12, 18, 12)
        line.setSpacing(28)
        self.verified = self._figure(line, self.tr("Verified"))
        self.latency = self._figure(line, self.tr("Processed within"))
        self.loss = self._figure(line, self.tr("Lost"))
        self.serves = self._figure(line, self.tr("Serves"))
        self.show_glance(Glance())

    def show_glance(self, glance: Glance) -> None:
        """Show these figures."""
        caption = self.tr("Verified") if glance.verifies else self.tr("Received, not verified")
        self.verified[0].setText(caption)
        rate = self.tr("messages a second")
        if glance.receivers > 1:
            rate = self.tr("messages a second and station")
        if glance.run_id is None:
            rate, lost = self.tr("{0}, now").format(rate), self.tr("of all messages until now")
            within = self.tr("for 99 % in the last second, from their generation on")
        else:
            rate = self.tr("{0}, mean of run {1}").format(rate, glance.run_id)
            lost = self.tr("of all messages of run {0}").format(glance.run_id)
            within = self.tr("for 99 % of run {0}, since they were due").format(glance.run_id)
        if glance.doubt:
            within = self.tr("{0}; not judged").format(within)
        self._set(self.verified, _rate(glance.verified), rate)
        time = row_scale((glance.latency_p99_ms,), "ms").figure(glance.latency_p99_ms, glance.uncertainty_ms)
        self._set(self.latency, time, within)
        for label in self.latency:
            label.setToolTip(self.tr("Not judged: {0}.").format(glance.doubt) if glance.doubt else "")
        self._set(self.loss, _share(glance.loss), lost, _loss_tone(glance))
        served = NO_FIGURE if glance.verified is None else f"{glance.verified / NEIGHBOUR_HZ:,.0f}"
        self._set(self.serves, served, self._note_on_neighbours(glance))

    def _note_on_neighbours(self, glance: Glance) -> str:
        note = self.tr("neighbours with {0:g} messages a second, at this rate").format(NEIGHBOUR_HZ)
        if glance.capacity and glance.verifies:
            most = f"{glance.capacity / NEIGHBOUR_HZ:,.0f}"
            return self.tr("{0}; one core can serve {1}, by the benchmark").format(note, most)
        return note

    def _figure(self, line: QHBoxLayout, title: str) -> tuple[QLabel, QLabel, QLabel]:
        caption, value, note = plain_label(title, self), plain_label("", self), plain_label("", self)
        caption.setFont(self._theme.font(FontRole.STRONG))
        value.setFont(self._theme.font(FontRole.DISPLAY))
        value.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        note.setFont(self._theme.font(FontRole.CAPTION))
        note.setProperty("muted", True)
        note.setWordWrap(True)
        column = QVBoxLayout()
        column.setSpacing(2)
        for label in (caption, value, note):
            column.addWidget(label)
        column.addStretch(1)
        line.addLayout(column, 1)
        return caption, value, note

    def _set(self, figure: tuple[QLabel, QLabel, QLabel], value: str, note: str, tone: str = "") -> None:
        caption, label, below = figure
        label.setText(value)
        label.setAccessibleName(f"{caption.text()}: {value}")
        below.setText(note)
        if label.property("tone") != (tone or None):
            label.setProperty("tone", tone or None)
            label.style().unpolish(label)
            label.style().polish(label)


def _rate(rate: float | None) -> str:
    if rate is None:
        return NO_FIGURE
    return format_number(round(rate, 0 if rate >= 100 else 1))


def _share(loss: float | None) -> str:
    if loss is None:
        return NO_FIGURE
    return "< 0.1 %" if 0 < loss < _SOME_LOSS else f"{loss:.1f} %"


def _loss_tone(glance: Glance) -> str:
    """While a run is in progress, a few messages are under way; of a whole run, each that was lost counts."""
    loss = glance.loss or 0.0
    if loss >= _MUCH_LOSS:
        return "bad"
    noticed = loss >= _SOME_LOSS if glance.run_id is None else loss > 0
    return "warning" if noticed else ""
