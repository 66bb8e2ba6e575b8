"""The answers at the top of a comparison, as cards: question, number, sentence, chart, small print."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QRect, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QFrame, QGridLayout, QHBoxLayout, QSizePolicy, QVBoxLayout, QWidget

from labconsole.analysis.answers import Answer
from labconsole.analysis.change import Judgement, fitting_titles
from labconsole_ui.theme.theme import FontRole, Theme
from labconsole_ui.widgets.labels import plain_label, set_tone

CARD_WIDTH = 290
"""Least width (px) of a card in a row of several."""
GAP = 10
BAR_HEIGHT, BAR_GAP, MIN_BAR = 9, 4, 2
TITLE_SHARE = 0.36
_TONES = {Judgement.BETTER: "good", Judgement.WORSE: "bad"}


class AnswerCards(QWidget):
    """All answers of a comparison, as many per row as fit; hidden while there are none."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._cards: list[AnswerCard] = []
        self._shown = 0
        self.setAccessibleName(self.tr("Answers"))
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setSpacing(GAP)
        self.hide()

    def cards(self) -> tuple[AnswerCard, ...]:
        """The shown cards, in their order."""
        return tuple(self._cards[: self._shown])

    def show_answers(self, answers: Sequence[Answer]) -> None:
        """Replace the answers."""
        while len(self._cards) < len(answers):
            self._cards.append(AnswerCard(self._theme, self))
        self._shown = len(answers)
        for card, answer in zip(self._cards, answers, strict=False):
            card.show_answer(answer)
        for place, card in enumerate(self._cards):
            card.setVisible(place < self._shown)
        self.setVisible(bool(answers))
        self._place()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Arrange the cards for the new width."""
        super().resizeEvent(event)
        self._place()

    def _place(self) -> None:
        """Rows of equal length, as high as their cards need."""
        if not self._shown or self.width() < CARD_WIDTH:
            return
        rows = -(-self._shown // min(self._shown, self.width() // CARD_WIDTH))
        count = -(-self._shown // rows)
        for place, card in enumerate(self.cards()):
            self._grid.addWidget(card, place // count, place % count)
        for column in range(self._grid.columnCount()):
            self._grid.setColumnStretch(column, int(column < count))
        self.setFixedHeight(self._grid.heightForWidth(self.width()))


class AnswerCard(QFrame):
    """One answer; one that is not judged is grey."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.setProperty("card", True)
        self._theme = theme
        self.answer: Answer | None = None
        self.question, self.number = plain_label("", self), plain_label("", self)
        self.sentence, self.footnote = plain_label("", self), plain_label("", self)
        self.chart = AnswerChart(theme, self)
        self.question.setProperty("muted", True)
        self.footnote.setProperty("muted", True)
        for label in (self.question, self.sentence, self.footnote):
            label.setWordWrap(True)
        self.sentence.setAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        line = QHBoxLayout()
        line.setSpacing(12)
        line.addWidget(self.number)
        line.addWidget(self.sentence, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 8, 12, 8)
        column.setSpacing(4)
        column.addWidget(self.question)
        column.addLayout(line)
        column.addWidget(self.chart)
        column.addWidget(self.footnote)
        column.addStretch(1)
        theme.changed.connect(self._set_fonts)
        self._set_fonts()

    def show_answer(self, answer: Answer) -> None:
        """Show this answer."""
        if answer == self.answer:
            return
        self.answer = answer
        self.question.setText(answer.question)
        self.number.setText(answer.number)
        self.sentence.setText(answer.sentence)
        self.footnote.setText(answer.footnote)
        self.chart.show_bars(answer)
        tone = _TONES.get(answer.judgement, "") if answer.judged else "muted"
        for label, meaning in ((self.number, tone), (self.sentence, "" if answer.judged else "muted")):
            set_tone(label, meaning)
        self.setAccessibleName(answer.question)
        self.setAccessibleDescription(f"{answer.sentence}. {answer.footnote}")

    def _set_fonts(self) -> None:
        for label, role in (
            (self.question, FontRole.CAPTION),
            (self.number, FontRole.DISPLAY),
            (self.sentence, FontRole.STRONG),
            (self.footnote, FontRole.CAPTION),
        ):
            label.setFont(self._theme.font(role))


class AnswerChart(QWidget):
    """A bar from zero for each scenario of an answer, with title, value, and whisker of its interval."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._answer: Answer | None = None
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.update)

    def show_bars(self, answer: Answer) -> None:
        """Show the bars of this answer."""
        self._answer = answer
        self.setFixedHeight(len(answer.bars) * self._row())
        self.setAccessibleName("; ".join(f"{bar.title}: {bar.text}" for bar in answer.bars))
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Titles at the left, values at the right, bars between them."""
        if self._answer is None or not self._answer.bars:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        font = self._theme.font(FontRole.CAPTION)
        painter.setFont(font)
        metrics, bars, row = QFontMetrics(font), self._answer.bars, self._row()
        shown = self.titles()
        titles = max(map(metrics.horizontalAdvance, shown))
        texts = max(metrics.horizontalAdvance(bar.text) for bar in bars)
        room = QRectF(titles + 8, 0, max(self.width() - titles - texts - 16, 10), row)
        largest = max((bar.interval.high if bar.interval else bar.value) for bar in bars) or 1.0
        judged = self._answer.judged
        for place, bar in enumerate(bars):
            top = place * row
            middle = top + row / 2
            painter.setPen(self._theme.colour("muted"))
            painter.drawText(QRect(0, top, titles + 4, row), int(Qt.AlignmentFlag.AlignVCenter.value), shown[place])
            length = max(MIN_BAR if bar.value > 0 else 0, room.width() * bar.value / largest)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(self._colour(place) if judged else self._theme.colour("scroll"))
            painter.drawRoundedRect(QRectF(room.left(), middle - BAR_HEIGHT / 2, length, BAR_HEIGHT), 2, 2)
            painter.setPen(self._theme.colour("text" if judged else "muted"))
            if bar.interval is not None:
                low, high = (
                    room.left() + room.width() * end / largest for end in (bar.interval.low, bar.interval.high)
                )
                painter.drawLine(int(low), int(middle), int(high), int(middle))
            value = QRect(self.width() - texts, top, texts, row)
            align = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight
            painter.drawText(value, int(align.value), bar.text)
        painter.end()

    def titles(self) -> list[str]:
        """The titles, shortened where room is short: `Test 4` for `Test 4: TLS, signed, encrypted`."""
        metrics, room = QFontMetrics(self._theme.font(FontRole.CAPTION)), int(self.width() * TITLE_SHARE)
        bars = self._answer.bars if self._answer is not None else ()

        def fits(title: str) -> bool:
            return metrics.horizontalAdvance(title) <= room

        # Qt would cut a text whose advance is rounded down to the available width: only longer ones are elided.
        elided = Qt.TextElideMode.ElideRight
        shown = fitting_titles([bar.title for bar in bars], fits)
        return [title if fits(title) else metrics.elidedText(title, elided, room) for title in shown]

    def _colour(self, place: int) -> QColor:
        """The last scenario is the subject of the answer; it is compared with the one before."""
        assert self._answer is not None
        return self._theme.colour("accent" if place == len(self._answer.bars) - 1 else "control_border")

    def _row(self) -> int:
        return QFontMetrics(self._theme.font(FontRole.CAPTION)).height() + BAR_GAP
