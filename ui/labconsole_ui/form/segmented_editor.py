"""A segmented choice: a few options side by side, each with a title and one line of explanation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QEnterEvent, QFontMetrics, QKeyEvent, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QAbstractButton, QButtonGroup, QHBoxLayout, QLabel, QSizePolicy, QVBoxLayout, QWidget

from labconsole.model.field_spec import FieldSpec
from labconsole_ui.form.editors import Editor
from labconsole_ui.theme.theme import FontRole, Theme

PADDING = 11
NAME_HEIGHT = 22
SPACING = 8


@dataclass(frozen=True)
class Segment:
    """An option: the parameter's value, name, short description, meaning in a sentence, icon."""

    value: Any
    name: str
    title: str
    meaning: str
    icon: str


class SegmentedEditor(Editor):
    """Edits a choice; the arrow keys move it. The meaning of the chosen option is shown below."""

    wide = True

    def __init__(self, spec: FieldSpec, parent: QWidget, segments: Sequence[Segment], theme: Theme) -> None:
        super().__init__(spec, parent)
        column = QVBoxLayout()
        column.setSpacing(4)
        line = QHBoxLayout()
        line.setSpacing(SPACING)
        column.addLayout(line)
        self.inner.addLayout(column)
        self.group = QButtonGroup(self)
        self.buttons: list[SegmentButton] = []
        for segment in segments:
            button = SegmentButton(segment, theme, self)
            button.setAccessibleName(f"{segment.name}: {segment.title}")
            button.setAccessibleDescription(segment.meaning)
            self.group.addButton(button)
            self.buttons.append(button)
            line.addWidget(button, 1)
        self.meaning_label = QLabel(self)
        self.meaning_label.setProperty("muted", True)
        self.meaning_label.setWordWrap(True)
        column.addWidget(self.meaning_label)
        self.group.buttonToggled.connect(self._toggled)
        self.setFocusProxy(self.buttons[0])

    def value(self) -> Any:
        return next((button.segment.value for button in self.buttons if button.isChecked()), None)

    def set_value(self, value: Any) -> None:
        for button in self.buttons:
            if button.segment.value == value:
                button.setChecked(True)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Lower cards where all titles fit on one line."""
        super().resizeEvent(event)
        width = event.size().width() // len(self.buttons) - SPACING
        lines = 1 if all(button.title_width() <= width for button in self.buttons) else 2
        for button in self.buttons:
            button.set_lines(lines)

    def _toggled(self, button: QAbstractButton, checked: bool) -> None:
        if checked and isinstance(button, SegmentButton):
            self.setFocusProxy(button)
            self.meaning_label.setText(button.segment.meaning)
            self.edited.emit()


class SegmentButton(QAbstractButton):
    """One option, painted: the chosen one has the accent's frame and background."""

    def __init__(self, segment: Segment, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.segment = segment
        self._theme = theme
        self._lines = 2
        self.setText(segment.name)
        self.setCheckable(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setToolTip(segment.meaning)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.update)

    def title_width(self) -> int:
        """Width (px) that the button needs for its title on one line."""
        metrics = QFontMetrics(self._theme.font(FontRole.CAPTION))
        return metrics.horizontalAdvance(self.segment.title) + 2 * PADDING + 2

    def set_lines(self, lines: int) -> None:
        """Set the height for `count` lines of the title."""
        if lines != self._lines:
            self._lines = lines
            self.updateGeometry()

    def sizeHint(self) -> QSize:
        caption = QFontMetrics(self._theme.font(FontRole.CAPTION)).lineSpacing()
        return QSize(150, 2 * PADDING - 4 + NAME_HEIGHT + self._lines * caption)

    def minimumSizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        return QSize(110, self.sizeHint().height())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        steps = {Qt.Key.Key_Left: -1, Qt.Key.Key_Up: -1, Qt.Key.Key_Right: 1, Qt.Key.Key_Down: 1}
        step = steps.get(Qt.Key(event.key()))
        buttons = self.group().buttons()
        place = buttons.index(self) + step if step is not None else -1
        if 0 <= place < len(buttons):
            buttons[place].setChecked(True)
            buttons[place].setFocus()
        elif step is None:
            super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        theme, colours = self._theme, self._theme.colours
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        frame = QRectF(self.rect()).adjusted(1, 1, -1, -1)
        on = self.isChecked()
        ground = colours.info_ground if on else colours.sunken if self.underMouse() else colours.base
        painter.setBrush(QColor(ground))
        painter.setPen(QPen(QColor(colours.link if on else colours.control_border), 2 if on else 1))
        painter.drawRoundedRect(frame, 6, 6)
        if self.hasFocus():
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(QColor(colours.text), 1, Qt.PenStyle.DotLine))
            painter.drawRoundedRect(frame.adjusted(3, 3, -3, -3), 4, 4)
        icon = theme.icon(self.segment.icon, "link" if on else "muted")
        icon.paint(painter, PADDING, PADDING - 1, 18, 18)
        painter.setPen(QColor(colours.text))
        painter.setFont(theme.font(FontRole.STRONG))
        painter.drawText(QPointF(PADDING + 24, PADDING + painter.fontMetrics().ascent()), self.segment.name)
        painter.setPen(QColor(colours.text if on else colours.muted))
        painter.setFont(theme.font(FontRole.CAPTION))
        top = PADDING + NAME_HEIGHT
        room = QRectF(PADDING, top, self.width() - 2 * PADDING, self.height() - top - 4)
        painter.drawText(room, int(Qt.TextFlag.TextWordWrap), self.segment.title)

    def enterEvent(self, event: QEnterEvent) -> None:
        self.update()

    def leaveEvent(self, event: QEvent) -> None:
        self.update()
