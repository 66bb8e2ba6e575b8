"""The panel of the AMQP trial: cards for Tests 1-4, identities by name, and sizes of messages."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from functools import partial

from PySide6.QtCore import QCoreApplication, QSignalBlocker, Qt
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QLineEdit, QPushButton, QVBoxLayout, QWidget

from labconsole.analysis.number_format import format_figure
from labconsole.engine.operation_process import OperationEnd
from labconsole.errors import UserError
from labconsole.model.field_spec import FieldSpec
from labconsole.model.trial import Parameters
from labconsole.security.pki.identities import names
from labconsole_amqp.choices import TEST_DESCRIPTIONS, TEST_TITLES, Loop, MessageSizes, Mode
from labconsole_amqp.merging.merge_operation import MergeRuns, newest_pair
from labconsole_amqp.panel.connection_test import ConnectionTest
from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.run_payloads import size_shares
from labconsole_amqp.trial.disk_space import disk_needed
from labconsole_ui.form.editors import Editor, WheelIgnoringComboBox
from labconsole_ui.form.segmented_editor import Segment, SegmentedEditor
from labconsole_ui.operations.operation_dialog import OperationDialog
from labconsole_ui.panels.trial_panel import Fact, PanelContext, TrialPanel
from labconsole_ui.runtime.background import Background
from labconsole_ui.widgets.help_chapter import set_chapter


class IdentityEditor(Editor):
    """A name from the list, or a typed one, which may be created before the run. Empty: no named identity."""

    def __init__(self, spec: FieldSpec, parent: QWidget) -> None:
        super().__init__(spec, parent)
        self.combo = WheelIgnoringComboBox(self)
        self.combo.setEditable(True)
        self.combo.setInsertPolicy(WheelIgnoringComboBox.InsertPolicy.NoInsert)
        self.line = QLineEdit(self.combo)
        self.line.setPlaceholderText(self.tr("None by name"))
        self.line.setClearButtonEnabled(True)
        self.combo.setLineEdit(self.line)
        self.line.textChanged.connect(lambda _text: self.edited.emit())
        self.adopt(self.combo, stretch=1)
        self.line.setAccessibleName(spec.title)

    def value(self) -> str:
        return self.line.text().strip()

    def set_value(self, value: object) -> None:
        self.line.setText(str(value))

    def showEvent(self, event: QShowEvent) -> None:
        """Fill the list with the current names; the text of the line is kept."""
        text = self.line.text()
        with QSignalBlocker(self.line):
            self.combo.clear()
            self.combo.addItems(list(_identity_names()))
            self.combo.setCurrentIndex(self.combo.findText(text))
            self.line.setText(text)
        super().showEvent(event)


def _identity_names() -> Sequence[str]:
    """Names of identities; a database that cannot be read is reported by the run that needs it."""
    try:
        return names()
    except UserError:
        return ()


_ICONS = {1: "live", 2: "lock", 3: "shield", 4: "key"}


def make_panel(context: PanelContext) -> AmqpPanel:
    """The factory that the manifest names."""
    return AmqpPanel(context)


class AmqpPanel(TrialPanel):
    """The usual panel, with four cards for the test, and facts on message sizes."""

    def __init__(self, context: PanelContext) -> None:
        def tests(spec: FieldSpec, parent: QWidget) -> Editor:
            return SegmentedEditor(spec, parent, _segments(), context.theme)

        roles = ("broker", "sender", "receiver", "sender_message", "receiver_message")
        names = {f"{role}_identity": IdentityEditor for role in roles}
        super().__init__(context, {"test": tests, **names})
        self._background = Background(self)
        set_chapter(self, "explanation/amqp-trial.md")

    def pieces(self) -> Iterator[None]:
        """Build the usual panel, and the test of a connection."""
        yield from super().pieces()
        self.form.validated.connect(self._follow_form)
        self._follow_form()

    def _add_form(self, column: QVBoxLayout) -> Iterator[None]:
        yield from super()._add_form(column)
        self.connection_test = ConnectionTest(self.context.theme, self)
        column.insertWidget(column.indexOf(self.facts_card), self.connection_test)
        self.merge_button = QPushButton(self.tr("&Merge two consoles' runs ..."), self)
        self.context.theme.bind_icon(self.merge_button, "compare", "link")
        self.merge_button.setToolTip(
            self.tr("Make one run of the run of this console and that of the other one, whose bundle was imported")
        )
        self.merge_button.clicked.connect(self._merge)
        self.merge_button.hide()
        place = column.indexOf(self.facts_card)
        column.insertWidget(place, self.merge_button, 0, Qt.AlignmentFlag.AlignLeft)

    def _follow_form(self) -> None:
        parameters = self.form.parameters
        if not isinstance(parameters, AmqpParameters):
            self.connection_test.show_for(None)
            return
        self.connection_test.show_for(parameters)
        self.merge_button.setVisible(parameters.mode is not Mode.BOTH)

    def _merge(self) -> None:
        """Open the dialog, with the newest two runs that fit."""
        database = self.context.bridge.queue.database
        self._background.submit(partial(newest_pair, database), self._open_merge, lambda _fault: self._open_merge(None))

    def _open_merge(self, pair: tuple[int, int] | None) -> None:
        values: dict[str, object] = {"db": str(self.context.bridge.queue.database)}
        if pair is not None:
            values |= {"run": pair[0], "other": pair[1]}
        dialog = OperationDialog(self.window(), MergeRuns(), self.context.theme, values)
        dialog.ended.connect(self._show_merged)
        dialog.open()

    def _show_merged(self, end: OperationEnd) -> None:
        if end.result is not None and "run" in end.result.data:
            self.context.open_run(end.result.data["run"])

    def facts(self, parameters: Parameters) -> list[Fact]:
        """Sizes of payload and encoded message, and the volume of the run; none if the payload is missing.

        Of drawn sizes they are means.
        """
        assert isinstance(parameters, AmqpParameters)
        shares = size_shares(parameters)
        if shares is None:
            return []
        size = round(sum(size * share for size, share in shares.items()))
        encoded = parameters.message_size(size)
        tr = QCoreApplication.translate
        facts = [Fact(tr("AmqpPanel", "Payload"), _size(size), tr("AmqpPanel", "Size of the payload"))]
        if parameters.message_sizes is not MessageSizes.PAYLOAD:
            text = tr("AmqpPanel", "{mean} ({smallest} to {largest})")
            value = text.format(mean=_size(size), smallest=_size(min(shares)), largest=_size(max(shares)))
            facts = [Fact(tr("AmqpPanel", "Payload, mean"), value, tr("AmqpPanel", "Mean size of the payloads"))]
        facts += [
            Fact(
                tr("AmqpPanel", "Encoded message"),
                _size(encoded),
                tr("AmqpPanel", "The AMQP message with all its sections: what the source calls the sent message size"),
            ),
            Fact(
                tr("AmqpPanel", "Overhead"),
                _size(encoded - size),
                tr("AmqpPanel", "What AMQP, signature and encryption add to each payload"),
            ),
        ]
        if parameters.is_counted:
            volume = _size(encoded * parameters.per_sender * parameters.senders)
            tooltip = tr("AmqpPanel", "All messages of all senders, warm-up included, without TLS and TCP")
            facts.append(Fact(tr("AmqpPanel", "Volume of a run"), volume, tooltip))
        if parameters.loop is Loop.SOAK:
            facts += self._soak_facts(parameters)
        return facts

    def _soak_facts(self, parameters: AmqpParameters) -> Iterator[Fact]:
        """Messages and disk space of a soak."""
        tr = QCoreApplication.translate
        messages = parameters.per_sender * parameters.senders
        yield Fact(tr("AmqpPanel", "Messages"), f"{messages:,}", tr("AmqpPanel", "Of all senders, all stored"))
        needed, free = disk_needed(parameters), shutil.disk_usage(self.context.bridge.queue.database.parent).free
        tooltip = tr("AmqpPanel", "Free on the disk of the database: {0}. A run that finds less does not start")
        yield Fact(tr("AmqpPanel", "Disk while it runs"), _size(needed.during_run), tooltip.format(_size(free)))
        tooltip = tr("AmqpPanel", "In the database, after the run")
        yield Fact(tr("AmqpPanel", "Disk kept"), _size(needed.kept), tooltip)


def _segments() -> list[Segment]:
    segments = []
    for test, text in TEST_TITLES.items():
        name, _, title = text.partition(": ")
        segments.append(Segment(test, name, title[:1].upper() + title[1:], TEST_DESCRIPTIONS[test], _ICONS[test]))
    return segments


def _size(size: int) -> str:
    return format_figure(size, "B")
