"""The run view: figures, parameters, plots and events of a stored run, and runs that did not end well."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication, QFileDialog, QToolButton
from pytestqt.qtbot import QtBot
from sqlalchemy import select, update

from labconsole.model.placement import Placement, RoleRequest
from labconsole.model.plugin import Plugins
from labconsole.model.trial import Evaluation, Metric, Verdict, VerdictKind
from labconsole.store import edits, schema
from labconsole.store.attachments import AttachmentPiece
from labconsole.store.reader import Reader
from labconsole.store.records import RunStatus
from labconsole_ui.runs.run_files import ExportFormat
from labconsole_ui.runtime.queue_bridge import QueueBridge
from labconsole_ui.theme.theme import Theme
from labconsole_ui.views.run.loaded_run import load_run
from labconsole_ui.views.run.run_view import MIN_PLOTS_WIDTH, RunView
from labconsole_ui.views.run.stored_files import TextViewer
from tests.labconsole_ui.slot_watch import again_after_a_long_turn, slots_watched
from tests.labconsole_ui.views.conftest import StoredRuns

pytestmark = pytest.mark.qt_log_ignore("This plugin does not support")
PLOTS = ["Throughput", "Latency", "CPU, 100 % = one core", "Resident memory"]


@pytest.fixture
def make(
    qtbot: QtBot, bridge: QueueBridge, plugins: Plugins, theme: Theme, readers: Callable[[], Reader]
) -> Iterator[Callable[..., RunView]]:
    made: list[RunView] = []

    def run_view(run_id: int, installed: Plugins = plugins) -> RunView:
        view = RunView(readers, run_id, installed, theme, bridge)
        made.append(view)
        view.resize(1280, 800)
        view.show()
        view.activateWindow()
        qtbot.waitUntil(lambda: view.progress.isHidden())
        return view

    yield run_view
    for view in made:
        view.close()
        view.deleteLater()
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


def rows(view: RunView, table: str) -> list[list[str]]:
    model = view.tables[table].model()
    return [
        [str(model.index(row, column).data()) for column in range(model.columnCount())]
        for row in range(model.rowCount())
    ]


def test_figures_are_shown_with_unit_samples_and_definition(
    stored: StoredRuns, make: Callable[..., RunView], readers: Callable[[], Reader], plugins: Plugins
) -> None:
    [run_id] = stored.finished(("Test 1", {"test": 1}), messages=1_500)
    view = make(run_id)
    with readers() as reader:
        metrics = {metric.name: metric for metric in reader.run(run_id).metrics}
    shown = {row[0]: row for row in rows(view, "metrics")}
    assert len(shown) == len(metrics)
    assert shown["Mean latency"][1] == f"{metrics['latency_mean'].value:.3f} ms"
    assert shown["Mean latency"][2:4] == ["1,500", "measured"]
    assert shown["Sender message size"][1] == "282 B"
    place = list(shown).index("Message throughput")
    tooltip = view.tables["metrics"].model().index(place, 0).data(Qt.ItemDataRole.ToolTipRole)
    [described] = [kind for kind in plugins.trial("amqp.messaging").metrics if kind.name == "throughput"]
    assert tooltip == described.description


def test_parameters_have_units_and_changed_ones_are_marked(stored: StoredRuns, make: Callable[..., RunView]) -> None:
    [run_id] = stored.finished(("Test 3", {"test": 3, "credit": 77}), messages=100)
    shown = {row[0]: row[1:] for row in rows(make(run_id), "parameters")}
    assert shown["Credit window"] == ["77 messages", "changed"]
    assert shown["Test"] == ["3", "changed"]
    assert shown["Rate"] == ["1,000 msg/s", ""]
    assert "Hosts" not in shown


def test_hosts_are_shown_with_the_parameters(stored: StoredRuns, make: Callable[..., RunView]) -> None:
    placement = Placement(local=2, roles=(RoleRequest(role="sender-*", tag="obu"),)).stored()
    [run_id] = stored.queued(("Test 1", {"test": 1}), placements={"Test 1": placement})
    shown = {row[0]: row[1:] for row in rows(make(run_id), "parameters")}
    assert shown["Hosts"] == ["sender-*: tag obu; 2 local hosts", "changed"]


def test_plots_come_from_the_stored_samples(stored: StoredRuns, make: Callable[..., RunView]) -> None:
    [run_id] = stored.finished(("Test 1", {"test": 1}), messages=4_000, rate=1_000.0)
    view = make(run_id)
    assert list(view.plots) == PLOTS
    sent = next(curve for curve in view.plots["Throughput"].curves() if curve.title == "Sent")
    assert np.median(sent.values) == pytest.approx(1_000, rel=0.02)
    assert 3.9 < sent.x[-1] < 4.2
    assert [curve.title for curve in view.plots["Resident memory"].curves()] == ["broker", "receiver-0", "sender-0"]


@again_after_a_long_turn
def test_three_hundred_thousand_messages_do_not_block_the_window(
    stored: StoredRuns, make: Callable[..., RunView], qtbot: QtBot
) -> None:
    """Measured by the processor time of the window's thread: a busy machine must not fail the test."""
    [run_id] = stored.finished(("Big", {"test": 1}), messages=300_000, rate=50_000.0)
    view = make(99)
    view.run_id = run_id
    with slots_watched() as watch:
        view.reload()
        qtbot.waitUntil(lambda: list(view.plots) == PLOTS and view.progress.isHidden())
        qtbot.wait(50)
    watch.assert_short()


def test_a_run_that_is_read_again_before_all_is_shown_is_shown_whole(
    stored: StoredRuns, make: Callable[..., RunView], readers: Callable[[], Reader], plugins: Plugins, qtbot: QtBot
) -> None:
    [run_id] = stored.finished(("Test 1", {"test": 1}), messages=200)
    view = make(run_id)
    view._show(load_run(readers, run_id, plugins))
    view._show_curves(())  # those of the previous read come late
    assert view.plots == {}
    qtbot.waitUntil(lambda: list(view.plots) == PLOTS and view.grid.updatesEnabled())


def test_events_are_timed_from_t0_and_provenance_and_sites_are_there(
    stored: StoredRuns, make: Callable[..., RunView]
) -> None:
    [run_id] = stored.finished(("Test 1", {"test": 1}), messages=100)
    view = make(run_id)
    assert rows(view, "events")[1] == ["+0.500 s", "Warning", "broker", "The broker gave no credit for 20 ms."]
    provenance = dict(rows(view, "provenance"))
    assert provenance["os.cpu"] == "2 cores" and provenance["python"] == "3.11"
    assert ["tls port", "5671", "5871"] in rows(view, "sites")
    assert view.header.messages()[0].startswith("Closed loop: latency includes queueing")


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (RunStatus.FAILED, "The certificate of State B has expired: renew it, then run again."),
        (RunStatus.INTERRUPTED, "Its process ended in mid-run; what it had measured until then is kept."),
    ],
)
def test_a_failed_run_shows_its_reason_and_its_samples(
    stored: StoredRuns, make: Callable[..., RunView], status: RunStatus, reason: str
) -> None:
    [run_id] = stored.queued(("Test 2", {"test": 2}))
    stored.start(run_id)
    stored.sample(run_id, messages=300)
    stored.end(run_id, status, reason)
    view = make(run_id)
    caveat = f"Run {run_id} is {status.value}: its figures cover what was sampled until then."
    assert view.header.messages()[0] == reason and caveat in view.header.messages()
    assert [row[1].split()[0] for row in rows(view, "metrics") if row[0] == "Messages received"] == ["300"]
    assert list(view.plots) == PLOTS


def test_a_run_in_progress_is_shown_and_completed_when_it_has_finished(
    stored: StoredRuns, make: Callable[..., RunView], bridge: QueueBridge, qtbot: QtBot
) -> None:
    [run_id] = stored.queued(("Test 1", {"test": 1}))
    stored.start(run_id)
    view = make(run_id)
    assert rows(view, "metrics") == [] and view.plots == {}
    assert "This run is not over. Figures appear here when it has finished." in view.header.messages()
    stored.sample(run_id, messages=200)
    stored.end(run_id)
    bridge.finished.emit(run_id + 1, RunStatus.FINISHED)
    bridge.finished.emit(run_id, RunStatus.FINISHED)
    qtbot.waitUntil(lambda: list(view.plots) == PLOTS)
    assert [row[1].split()[0] for row in rows(view, "metrics") if row[0] == "Messages received"] == ["200"]
    assert "This run is not over. Figures appear here when it has finished." not in view.header.messages()


def test_note_and_tags_are_written_when_enter_is_pressed(
    stored: StoredRuns, make: Callable[..., RunView], readers: Callable[[], Reader], qtbot: QtBot
) -> None:
    [run_id] = stored.finished(("Test 1", {"test": 1}), messages=50)
    view = make(run_id)
    for editor, text in ((view.header.note, "for the report"), (view.header.tags, "night, reference")):
        editor.setFocus()
        qtbot.keyClicks(editor, text)
        qtbot.keyClick(editor, Qt.Key.Key_Return)

    def written() -> bool:
        with readers() as reader:
            row = reader.run(run_id).row
        return (row.note, row.tags) == ("for the report", ("night", "reference"))

    qtbot.waitUntil(written)


def test_evidence_is_shown_and_verified_and_one_flipped_byte_is_found(
    stored: StoredRuns, make: Callable[..., RunView], readers: Callable[[], Reader], qtbot: QtBot
) -> None:
    [run_id] = stored.finished(("Test 1", {"test": 1}), messages=500)
    with readers() as reader:
        evidence = reader.evidence(run_id)
    assert evidence is not None
    view = make(run_id)
    pane = view.evidence
    view.tabs.setCurrentWidget(pane)
    assert pane.digest.text().replace(" ", "") == evidence.digest
    with qtbot.waitSignal(pane.verified) as verified:
        qtbot.mouseClick(pane.verify_button, Qt.MouseButton.LeftButton)
    assert verified.args == [True] and pane.outcome.isVisible()
    assert pane.outcome.text() == "Nothing of this run has changed since it was sealed."
    with stored.store.writer.transaction() as connection:
        payload = connection.execute(select(schema.chunk.c.payload)).scalars().first()
        assert payload is not None
        flipped = bytes([payload[0] ^ 1]) + payload[1:]
        connection.execute(update(schema.chunk).where(schema.chunk.c.payload == payload).values(payload=flipped))
    with qtbot.waitSignal(pane.verified) as verified:
        qtbot.mouseClick(pane.verify_button, Qt.MouseButton.LeftButton)
    assert verified.args == [False]
    assert "hash" in pane.outcome.text()


def test_a_run_in_progress_is_not_sealed_and_cannot_be_exported(
    stored: StoredRuns, make: Callable[..., RunView]
) -> None:
    [run_id] = stored.queued(("Test 1", {"test": 1}))
    stored.start(run_id)
    view = make(run_id)
    assert not view.evidence.verify_button.isEnabled()
    buttons = view.header.buttons
    assert not any(button.isEnabled() for button in (buttons.report_button, buttons.export_button))


def test_artefacts_are_listed_read_and_saved(
    stored: StoredRuns, make: Callable[..., RunView], qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [run_id] = stored.queued(("Test 1", {"test": 1}))
    stored.start(run_id)
    stored.store.add_artefact(run_id, "certificate.pem", "application/x-pem-file", b"-----BEGIN CERTIFICATE-----\n")
    stored.store.add_artefact(run_id, "message.bin", "application/octet-stream", bytes(282))
    stored.end(run_id)
    view = make(run_id)
    pane = view.artefacts
    view.tabs.setCurrentWidget(pane)
    listed = [[str(pane.model.index(row, column).data()) for column in range(3)] for row in range(2)]
    assert listed == [
        ["certificate.pem", "application/x-pem-file", "28 B"],
        ["message.bin", "application/octet-stream", "282 B"],
    ]
    pane.table.selectRow(1)
    assert not pane.read_button.isEnabled()
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(tmp_path / "saved.bin"), ""))
    qtbot.mouseClick(pane.save_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: pane.status.text().startswith("Saved"))
    assert (tmp_path / "saved.bin").read_bytes() == bytes(282)
    pane.table.selectRow(0)
    qtbot.mouseClick(pane.read_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: view.findChild(TextViewer) is not None)
    viewer = view.findChild(TextViewer)
    assert viewer.view.toPlainText().startswith("-----BEGIN CERTIFICATE")
    viewer.close()


def attach(stored: StoredRuns, run_id: int, pieces: int) -> bytes:
    """Attach a capture of so many MB, and a log that was cut; returns the capture."""
    content = np.random.default_rng(1).bytes(pieces * 1_000_000)
    parts = [content[first : first + 1_000_000] for first in range(0, len(content), 1_000_000)]
    about = ("tap", "capture.pcapng", "application/x-pcapng")
    whole = [AttachmentPiece(*about, seq, part) for seq, part in enumerate(parts)]
    end = AttachmentPiece(*about, pieces, b"", hashlib.sha256(content).digest())
    log = AttachmentPiece("tap", "log.txt", "text/plain", 0, b"Half a lin")
    stored.store.append(run_id, [], pieces=[*whole, end, log])
    return content


def test_attachments_are_listed_read_and_saved(
    stored: StoredRuns, make: Callable[..., RunView], qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [run_id] = stored.queued(("Test 1", {"test": 1}))
    stored.start(run_id)
    content = attach(stored, run_id, 3)
    stored.store.add_artefact(run_id, "trust.pem", "application/x-pem-file", b"-----BEGIN CERTIFICATE-----\n")
    stored.end(run_id)
    view = make(run_id)
    pane = view.artefacts
    view.tabs.setCurrentWidget(pane)
    assert view.tabs.tabText(view.tabs.indexOf(pane)) == "Artefacts (3)"
    listed = [[str(pane.model.index(row, column).data()) for column in range(6)] for row in range(3)]
    assert [row[:5] for row in listed] == [
        ["trust.pem", "application/x-pem-file", "28 B", "worker", "complete"],
        ["capture.pcapng", "application/x-pcapng", "3 MB", "tap", "complete"],
        ["log.txt", "text/plain", "10 B", "tap", "cut"],
    ]
    assert [row[5] for row in listed[1:]] == [hashlib.sha256(content).hexdigest(), ""]
    pane.table.selectRow(1)
    assert not pane.read_button.isEnabled()
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(tmp_path / "saved.pcapng"), ""))
    qtbot.mouseClick(pane.save_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: pane.status.text().startswith("Saved"))
    assert (tmp_path / "saved.pcapng").read_bytes() == content
    pane.table.selectRow(2)
    qtbot.mouseClick(pane.read_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: view.findChild(TextViewer) is not None)
    viewer = view.findChild(TextViewer)
    assert viewer.view.toPlainText() == "Half a lin"
    viewer.close()


def test_saving_an_attachment_can_be_cancelled(
    stored: StoredRuns, make: Callable[..., RunView], qtbot: QtBot, tmp_path: Path
) -> None:
    [run_id] = stored.queued(("Test 1", {"test": 1}))
    stored.start(run_id)
    attach(stored, run_id, 30)
    stored.end(run_id)
    pane = make(run_id).artefacts
    target = tmp_path / "folder" / "saved.pcapng"
    pane.save_to(pane.model.record(0), target)
    [dialog] = pane.jobs.dialogs
    dialog.canceled.emit()
    qtbot.waitUntil(lambda: pane.status.text().startswith("Cancelled"))
    assert not target.parent.exists()


def test_all_tabs_are_visible_next_to_the_plots_on_a_common_screen(
    stored: StoredRuns, make: Callable[..., RunView], qtbot: QtBot
) -> None:
    """The page of a window of 1280 x 800 px, and a run that has everything a run can have."""
    [run_id] = stored.queued(("Test 3", {"test": 3}))
    stored.start(run_id)
    stored.sample(run_id, messages=300)
    stored.store.add_artefact(run_id, "certificate.pem", "application/x-pem-file", b"-----BEGIN CERTIFICATE-----\n")
    stored.end(run_id)
    view = make(run_id)
    view.resize(1079, 452)
    qtbot.waitUntil(lambda: view.splitter.width() < 1079)
    bar = view.tabs.tabBar()
    assert bar.count() == 8
    for index in (0, bar.count() - 1):
        bar.setCurrentIndex(index)
        assert all(bar.rect().contains(bar.tabRect(tab)) for tab in range(bar.count()))
        assert not any(arrow.isVisible() for arrow in bar.findChildren(QToolButton))
    assert view.grid.width() >= MIN_PLOTS_WIDTH


def test_figures_that_are_not_judged_are_grey_with_the_reason_and_without_an_arrow(
    stored: StoredRuns, make: Callable[..., RunView], theme: Theme
) -> None:
    [run_id] = stored.finished(("Test 1", {"test": 1}), messages=200)
    model = make(run_id).tables["metrics"].model()
    places = {model.index(row, 0).data(): row for row in range(model.rowCount())}
    value, better = (model.index(places["Latency p99"], column) for column in (1, 4))
    grey = value.data(Qt.ItemDataRole.ForegroundRole)
    assert (grey.color() if hasattr(grey, "color") else grey) == theme.colour("muted")
    assert "Not judged: p99 needs 5,000 samples (there are 200)." in value.data(Qt.ItemDataRole.ToolTipRole)
    assert better.data() == "not judged"
    assert model.index(places["Latency p50"], 1).data(Qt.ItemDataRole.ForegroundRole) is None
    assert [model.index(places[title], 4).data() for title in ("Latency p50", "Message throughput")] == ["↓", "↑"]


def test_a_figure_of_a_single_run_has_a_readable_unit(
    stored: StoredRuns, make: Callable[..., RunView], readers: Callable[[], Reader]
) -> None:
    [run_id] = stored.queued(("Test 1", {"test": 1}))
    stored.start(run_id)
    stored.store.replace_evaluation(run_id, Evaluation((Metric("latency_mean", 40_646.0, "ms", samples=200),)))
    stored.store.run_ended(run_id, RunStatus.FINISHED, "", datetime.now(UTC))
    assert rows(make(run_id), "metrics")[0][1] == "40.65 s"


def test_buttons_emit_the_run_and_its_baseline(stored: StoredRuns, make: Callable[..., RunView], qtbot: QtBot) -> None:
    first, second = stored.finished(("Test 1", {"test": 1}), ("Test 2", {"test": 2}), messages=50)
    edits.pin_baseline(stored.store, first)
    assert not make(first).header.buttons.compare_button.isEnabled()
    view = make(second)
    emitted: list[object] = []
    for signal in (view.use_wanted, view.compare_wanted, view.report_wanted):
        signal.connect(emitted.append)
    view.export_wanted.connect(lambda chosen, run_ids: emitted.append((chosen, run_ids)))
    view.tabs.setCurrentIndex(1)
    qtbot.mouseClick(view.use_button, Qt.MouseButton.LeftButton)
    qtbot.mouseClick(view.header.buttons.compare_button, Qt.MouseButton.LeftButton)
    qtbot.mouseClick(view.header.buttons.report_button, Qt.MouseButton.LeftButton)
    view.header.buttons.export_menu.by_format[ExportFormat.JSON].trigger()
    assert emitted == [second, [first, second], [second], (ExportFormat.JSON, [second])]


def test_every_table_is_copied_as_text(stored: StoredRuns, make: Callable[..., RunView], qtbot: QtBot) -> None:
    [run_id] = stored.finished(("Test 1", {"test": 1}), messages=50)
    view = make(run_id)
    for name, table in view.tables.items():
        view.tabs.setCurrentIndex(
            [
                view.tabs.widget(index).isAncestorOf(table) or view.tabs.widget(index) is table
                for index in range(view.tabs.count())
            ].index(True)
        )
        table.setFocus()
        qtbot.keyClick(table, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
        lines = QGuiApplication.clipboard().text().splitlines()
        assert len(lines) == 1 + table.model().rowCount(), name
        assert all(line.count("\t") == table.model().columnCount() - 1 for line in lines), name


def test_a_run_of_a_trial_that_is_not_installed_shows_what_is_stored(
    stored: StoredRuns, make: Callable[..., RunView]
) -> None:
    [run_id] = stored.finished(("Test 1", {"test": 1}), messages=50)
    view = make(run_id, Plugins(()))
    assert "latency mean" in [row[0] for row in rows(view, "metrics")]
    assert list(view.plots) == ["CPU, 100 % = one core", "Resident memory"]


def test_failed_check_of_a_run_is_shown_and_an_unknown_verdict_is_not_a_cross(
    make: Callable[..., RunView], stored: StoredRuns
) -> None:
    [run_id] = stored.finished(("Plain", {"test": 1}))
    verdicts = (
        Verdict("all messages were accepted", "fail", "20 messages were refused.", kind=VerdictKind.INTEGRITY),
        Verdict("all messages arrived", "unknown", "Nothing was sent.", kind=VerdictKind.INTEGRITY),
    )
    stored.store.replace_evaluation(run_id, Evaluation((), verdicts))
    view = make(run_id)
    assert "The figures of this run prove nothing: 20 messages were refused." in view.header.messages()
    assert view.header.facts.text().startswith("Check")
    assert [row[0] for row in rows(view, "verdicts")] == ["Fail", "Unknown"]


def test_an_unknown_run_is_reported(make: Callable[..., RunView]) -> None:
    assert make(99).header.title.text().startswith("There is no run 99")


def test_a_passed_preflight_is_one_line_that_opens_into_its_checks(
    make: Callable[..., RunView], stored: StoredRuns, qtbot: QtBot
) -> None:
    [run_id] = stored.finished(("Plain", {"test": 1}))
    preflight = VerdictKind.PREFLIGHT
    verdicts = (
        Verdict("preflight: TCP", "pass", "Connected.", kind=preflight),
        Verdict("preflight: TLS", "not applicable", "Test 1 has no TLS.", kind=preflight),
        Verdict("preflight: revocation", "warning", "Not known: import a CRL.", kind=preflight),
        Verdict("all messages arrived", "pass", "Every message arrived.", kind=VerdictKind.INTEGRITY),
    )
    stored.store.replace_evaluation(run_id, Evaluation((), verdicts))
    view = make(run_id)
    table = view.tables["verdicts"]
    view.tabs.setCurrentWidget(table)
    closed = [
        ["Warning", "preflight", "3 checks: 1 with a warning, 1 passed, 1 not applicable."],
        ["Warning", "preflight: revocation", "Not known: import a CRL."],
        ["Pass", "all messages arrived", "Every message arrived."],
    ]
    assert rows(view, "verdicts") == closed
    line = table.visualRect(table.model().index(0, 1)).center()
    qtbot.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=line)
    assert [row[1] for row in rows(view, "verdicts")] == [
        *("preflight", "preflight: revocation", "preflight: TCP", "preflight: TLS", "all messages arrived")
    ]
    qtbot.keyClick(table, Qt.Key.Key_Return)
    assert rows(view, "verdicts") == closed
