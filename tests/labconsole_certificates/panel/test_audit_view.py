"""The audit tab: an entry is found by all words of the filter, the numbers of those shown and of all are next to it."""

from __future__ import annotations

from labconsole_certificates.panel.audit_view import AuditView
from tests.labconsole_certificates.panel.conftest import Pair
from tests.labconsole_certificates.panel.page_driver import Lab


def test_an_entry_is_found_by_all_words_of_the_filter(pair: Pair, lab: Lab) -> None:
    view = lab.tab("audit", AuditView)
    lab.until(lambda: view.count.text() == "6 entries")
    lab.qtbot.keyClicks(view.search, "added B.example")
    assert [entry.subject for entry in view.model.records()] == ["State B"]
    assert view.count.text() == "1 of 6 entries"
    view.search.clear()
    assert view.model.rowCount() == 6
