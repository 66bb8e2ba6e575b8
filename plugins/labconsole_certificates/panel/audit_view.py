"""The audit tab: who did what to which certificate, and when; filtered by text, copied as rows."""

from __future__ import annotations

from typing import ClassVar

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QVBoxLayout, QWidget

from labconsole.security.pki.records import AuditRecord
from labconsole.security.x509.fingerprints import grouped
from labconsole_certificates.panel.tab import DatabaseReading, Tab, TabServices
from labconsole_ui.tables.record_table import DataTable, Field, RecordModel
from labconsole_ui.widgets.labels import plain_label

_WIDEST = 420


class AuditView(Tab):
    """The newest entries first, as many as a snapshot holds; `labconsole pki audit` lists all of them."""

    key: ClassVar[str] = "audit"
    chapter: ClassVar[str] = "reference/certificates-page.md#audit"
    icon: ClassVar[str] = "log"

    def __init__(self, services: TabServices, parent: QWidget | None = None) -> None:
        super().__init__(services, parent)
        self._reading: DatabaseReading | None = None
        self.search = QLineEdit(self)
        self.search.setPlaceholderText(self.tr("Find entries: words, a fingerprint"))
        self.search.setAccessibleName(self.tr("Filter the audit list"))
        self.search.setClearButtonEnabled(True)
        self.search.textChanged.connect(self._filter)
        self.count = plain_label("", self)
        self.count.setProperty("muted", True)
        self.model = RecordModel(self._fields(), services.page.theme, self)
        self.table = DataTable(self.tr("Audit list"), services.page.theme, self, fit_width=True)
        self.table.setModel(self.model)
        self.table.setSortingEnabled(True)
        self.table.horizontalHeader().setSortIndicator(-1, Qt.SortOrder.AscendingOrder)
        self.table.doubleClicked.connect(lambda _index: self._open())
        bar = QHBoxLayout()
        bar.setSpacing(12)
        bar.addWidget(self.search, 1)
        bar.addWidget(self.count)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 10, 12, 12)
        column.setSpacing(8)
        column.addLayout(bar)
        column.addWidget(self.table, 1)
        find = QShortcut(QKeySequence.StandardKey.Find, self)
        find.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        find.activated.connect(self.search.setFocus)
        self.setFocusProxy(self.search)

    def refresh(self, reading: DatabaseReading) -> None:
        """Show the audit entries."""
        first = self._reading is None
        self._reading = reading
        self._filter()
        if first and reading.snapshot.audit:
            self.table.fit_columns(_WIDEST)

    def _filter(self) -> None:
        if self._reading is None:
            return
        words = self.search.text().casefold().split()
        records = self._reading.snapshot.audit
        self.model.set_records(records, lambda record: all(word in _haystack(record) for word in words))
        shown = self.model.rowCount()
        said = self.tr("{shown} of {all} entries") if words else self.tr("{all} entries")
        self.count.setText(said.format(shown=shown, all=len(records)))

    def _open(self) -> None:
        index = self.table.currentIndex()
        if self._reading is None or not index.isValid():
            return
        found = self._reading.snapshot.certificate_by_sha256.get(self.model.record(index.row()).fingerprint)
        if found is not None:
            self.services.show_certificate(found.id)

    def _fields(self) -> list[Field[AuditRecord]]:
        return [
            Field(
                self.tr("When"),
                lambda record: record.at.astimezone().strftime("%Y-%m-%d %H:%M:%S"),
                sort=lambda record: record.id,
            ),
            Field(self.tr("Who"), lambda record: record.who),
            Field(self.tr("What"), lambda record: record.what),
            Field(self.tr("Of what"), lambda record: record.subject),
            Field(self.tr("Details"), lambda record: record.detail),
            Field(self.tr("SHA-256"), lambda record: grouped(record.fingerprint)),
        ]


def _haystack(record: AuditRecord) -> str:
    said = (record.who, record.what, record.subject, record.detail, record.fingerprint, grouped(record.fingerprint))
    return " ".join(said).casefold()
