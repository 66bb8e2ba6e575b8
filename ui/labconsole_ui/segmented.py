"""A segmented choice: a few options side by side, each with a title and one line that says what it means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QEnterEvent, QFontMetrics, QKeyEvent, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QAbstractButton, QButtonGroup, QSizePolicy

from labconsole_ui.form.editors import Editor
from labconsole_ui.form.spec import FieldSpec
from labconsole_ui.theme import FontRole, Theme

PADDING = 12


@dataclass(frozen=True)
class Segment:
    """An option: the parameter's value, its title, what it means in one line, and an icon."""

    value: Any
    title: str
    meaning: str
    icon: str


class SegmentedEditor(Editor):
    """Edits a choice; the arrow keys move it."""

    wide = True

    def __init__(self, spec: FieldSpec, segments: Sequence[Segment], theme: Theme) -> None:
        super().__init__(spec)
        self.inner.setSpacing(8)
        self.group = QButtonGroup(self)
        self.buttons: list[SegmentButton] = []
        for segment in segments:
            button = SegmentButton(segment, theme)
            button.setAccessibleName(f"{spec.title}: {segment.title}")
            button.setAccessibleDescription(segment.meaning)
            self.group.addButton(button)
            self.buttons.append(button)
            self.inner.addWidget(button, 1)
        self.group.buttonToggled.connect(self._toggled)
        self.setFocusProxy(self.buttons[0])

    def value(self) -> Any:
        return next((button.segment.value for button in self.buttons if button.isChecked()), None)

    def set_value(self, value: Any) -> None:
        for button in self.buttons:
            if button.segment.value == value:
                button.setChecked(True)

    def _toggled(self, button: QAbstractButton, checked: bool) -> None:
        if checked:
            self.setFocusProxy(button)
            self.edited.emit()


class SegmentButton(QAbstractButton):
    """One option, painted: the chosen one carries the accent's frame and a filled mark."""

    def __init__(self, segment: Segment, theme: Theme) -> None:
        super().__init__()
        self.segment = segment
        self._theme = theme
        self.setText(segment.title)
        self.setCheckable(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setToolTip(segment.meaning)
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        theme.changed.connect(self.update)

    def sizeHint(self) -> QSize:
        return QSize(170, self._height(170))

    def minimumSizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        return QSize(120, self._height(max(self.width(), 120)))

    def resizeEvent(self, event: QResizeEvent) -> None:
        self.updateGeometry()

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
        edge = colours.link if on or self.hasFocus() else colours.border
        painter.setBrush(QColor(ground))
        painter.setPen(QPen(QColor(edge), 2 if on else 1))
        painter.drawRoundedRect(frame, 6, 6)
        if self.hasFocus():
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(QColor(colours.link), 1, Qt.PenStyle.DotLine))
            painter.drawRoundedRect(frame.adjusted(3, 3, -3, -3), 4, 4)
        icon = theme.icon(self.segment.icon, "link" if on else "muted")
        icon.paint(painter, PADDING, PADDING - 1, 18, 18)
        painter.setPen(QColor(colours.text))
        painter.setFont(theme.font(FontRole.STRONG))
        painter.drawText(QPointF(PADDING + 24, PADDING + painter.fontMetrics().ascent()), self.segment.title)
        painter.setPen(QColor(colours.muted))
        painter.setFont(theme.font(FontRole.CAPTION))
        top = PADDING + 24
        room = QRectF(PADDING, top, self.width() - 2 * PADDING, self.height() - top - 6)
        painter.drawText(room, int(Qt.TextFlag.TextWordWrap), self.segment.meaning)

    def enterEvent(self, event: QEnterEvent) -> None:
        self.update()

    def leaveEvent(self, event: QEvent) -> None:
        self.update()

    def _height(self, width: int) -> int:
        metrics = QFontMetrics(self._theme.font(FontRole.CAPTION))
        room = metrics.boundingRect(
            0, 0, width - 2 * PADDING, 1000, int(Qt.TextFlag.TextWordWrap), self.segment.meaning
        )
        return PADDING + 24 + room.height() + PADDING
