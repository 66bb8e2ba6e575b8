"""The first page: introduction, the demo in one click, the trials, and the latest runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest

from PySide6.QtCore import QSize, Qt, Signal, SignalInstance
from PySide6.QtWidgets import (
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QSizePolicy,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from labconsole.engine.queue import QueueItem, QueueState, ShownStatus
from labconsole.model.plugin import Plugin, Plugins
from labconsole.safe_text import shown_lines
from labconsole.store.reader import Reader
from labconsole.store.records import RunRow
from labconsole_ui.runtime.background import Background
from labconsole_ui.runtime.page_targets import GUIDE, HELP, targets_of
from labconsole_ui.runtime.queue_bridge import QueueBridge
from labconsole_ui.theme.theme import FontRole, Theme
from labconsole_ui.widgets.help_chapter import set_chapter
from labconsole_ui.widgets.labels import IconLabel, plain_label, plain_tooltip
from labconsole_ui.widgets.layouts import ScrollPage
from labconsole_ui.widgets.status_text import console_name, duration, queue_item_title, run_status_icon, run_status_text

COLUMN_WIDTH = 900
RECENT_RUNS = 5


class StartPage(ScrollPage):
    """The signals carry requests: the demo, a page (by its target), a run."""

    demo_wanted = Signal()
    page_wanted = Signal(str)
    run_wanted = Signal(int)

    def __init__(
        self,
        plugins: Plugins,
        bridge: QueueBridge,
        theme: Theme,
        reader_factory: Callable[[], Reader],
        has_demo: bool,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(COLUMN_WIDTH, 28, parent)
        set_chapter(self, "tutorials/demo.md")
        self._theme = theme
        self._bridge = bridge
        self._reader_factory = reader_factory
        self._background = Background(self)
        self.demo_button = QPushButton(self.tr("Run the &demo"))
        self.demo_caption = plain_label("")
        column = self.column
        column.setSpacing(24)
        column.addWidget(self._hero(has_demo))
        self.notices = plain_label("")
        self.notices.setWordWrap(True)
        self.notices.setContentsMargins(10, 6, 10, 6)
        self._notices_box = self._section(self.tr("To do"), [self.notices])
        self._notices_box.hide()
        column.addWidget(self._notices_box)
        if plugins.found:
            column.addLayout(self._trials(plugins))
        self._recent = [RecentRun(theme, self.run_wanted) for _ in range(RECENT_RUNS)]
        self._runs: list[RunRow] = []
        self._states: dict[int, ShownStatus] = {}
        self._recent_box = self._section(self.tr("Latest runs"), self._recent)
        self._recent_box.hide()
        column.addWidget(self._recent_box)
        column.addLayout(self._documentation())
        column.addStretch(1)
        bridge.items_changed.connect(self._follow_queue)
        bridge.live.connect(self._show_progress)
        theme.changed.connect(self.refresh)
        self._follow_queue()
        self.refresh()

    def refresh(self) -> None:
        """Read the latest runs again, in the background."""
        self._background.submit(self._read_recent, self._receive_recent, lambda _sentence: None)

    def show_notices(self, sentences: Sequence[str]) -> None:
        """Show what the operator should do soon, such as "the CRL of ... expires"; the box is hidden without."""
        self.notices.setText("\n".join(sentences))
        self._notices_box.setVisible(bool(sentences))

    def _hero(self, has_demo: bool) -> QWidget:
        box = QWidget(self.page)
        column = QVBoxLayout(box)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(10)
        title = QLabel(self.tr("Secure messaging, measured"))
        title.setFont(self._theme.font(FontRole.DISPLAY))
        column.addWidget(title)
        text = QLabel(
            self.tr(
                "The lab console runs secure messaging trials between States and shows what protection costs in "
                "throughput and latency. Every run is kept with all its samples, so that runs can be compared with "
                "each other and with published figures."
            )
        )
        text.setWordWrap(True)
        text.setProperty("muted", True)
        text.setFont(self._theme.font(FontRole.LEAD))
        column.addWidget(text)
        if not has_demo:
            return box
        line = QHBoxLayout()
        line.setSpacing(16)
        self.demo_button.setProperty("primary", True)
        self.demo_button.setProperty("large", True)
        self.demo_button.setIconSize(QSize(22, 22))
        self._theme.bind_icon(self.demo_button, "run", "on_accent")
        self.demo_button.clicked.connect(self.demo_wanted)
        self.demo_caption.setProperty("muted", True)
        self.demo_caption.setWordWrap(True)
        line.addWidget(self.demo_button)
        line.addWidget(self.demo_caption, 1)
        column.addSpacing(8)
        column.addLayout(line)
        return box

    def _trials(self, plugins: Plugins) -> QVBoxLayout:
        column = QVBoxLayout()
        column.setSpacing(10)
        heading = QLabel(self.tr("Trials"))
        heading.setFont(self._theme.font(FontRole.HEADING))
        column.addWidget(heading)
        grid = QGridLayout()
        grid.setSpacing(14)
        for number, plugin in enumerate(plugins.found):
            grid.addWidget(self._card(plugin), number // 2, number % 2)
        if len(plugins.found) > 1:
            grid.setColumnStretch(0, 1)
            grid.setColumnStretch(1, 1)
        column.addLayout(grid)
        return column

    def _card(self, plugin: Plugin) -> QFrame:
        card = QFrame(self.page)
        card.setProperty("card", True)
        line = QHBoxLayout(card)
        line.setContentsMargins(18, 16, 18, 16)
        line.setSpacing(16)
        icon = f"plugin-{plugin.name}"
        mark = IconLabel(self._theme, icon if self._theme.has_icon(icon) else "plugin", 32, "link")
        line.addWidget(mark, 0, Qt.AlignmentFlag.AlignTop)
        texts = QVBoxLayout()
        texts.setSpacing(4)
        title = QLabel(plugin.title)
        title.setFont(self._theme.font(FontRole.STRONG))
        text = QLabel(plugin.description)
        text.setWordWrap(True)
        text.setProperty("muted", True)
        texts.addWidget(title)
        texts.addWidget(text)
        texts.addStretch(1)
        line.addLayout(texts, 1)
        for target in targets_of(plugin)[:1]:
            button = QPushButton(self.tr("Open"))
            button.setAccessibleName(self.tr("Open {title}").format(title=plugin.title))
            button.clicked.connect(lambda _checked=False, target=target: self.page_wanted.emit(target))
            line.addWidget(button, 0, Qt.AlignmentFlag.AlignVCenter)
        return card

    def _documentation(self) -> QHBoxLayout:
        line = QHBoxLayout()
        links = [("help", self.tr("Help and shortcuts"), HELP), ("book", self.tr("Documentation"), GUIDE)]
        for icon, text, target in links:
            button = QToolButton()
            button.setText(text)
            button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
            button.setIconSize(QSize(18, 18))
            button.setProperty("row", True)
            button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
            self._theme.bind_icon(button, icon, "link")
            button.clicked.connect(lambda _checked=False, target=target: self.page_wanted.emit(target))
            line.addWidget(button)
        line.addStretch(1)
        return line

    def _section(self, title: str, lines: Sequence[QWidget]) -> QWidget:
        box = QWidget(self.page)
        column = QVBoxLayout(box)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        heading = QLabel(title)
        heading.setFont(self._theme.font(FontRole.HEADING))
        column.addWidget(heading)
        card = QFrame(box)
        card.setProperty("card", True)
        content = QVBoxLayout(card)
        content.setContentsMargins(6, 6, 6, 6)
        content.setSpacing(0)
        for line in lines:
            content.addWidget(line)
        column.addWidget(card)
        return box

    def _follow_queue(self) -> None:
        self._show_progress()
        queue = self._bridge.queue
        states = {item.run_id: item.shown for item in (*queue.others, *queue.items)}
        if states != self._states:
            self._states = states
            self._show_recent(self._runs)
            self.refresh()

    def _show_progress(self) -> None:
        current = self._current()
        self.demo_button.setEnabled(current is None)
        self.demo_caption.setText(self._demo_text() if current is None else self._progress_text(current))

    def _current(self) -> QueueItem | None:
        """The run in progress, or between runs the next one; None while none is due."""
        queue = self._bridge.queue
        running = next((item for item in queue.items if item.state is QueueState.RUNNING), None)
        if running is not None or queue.paused:
            return running
        return queue.next_waiting

    def _demo_text(self) -> str:
        return self.tr(
            "All four AMQP tests on this computer, in five rounds: about a minute and a half. Nothing to set up."
        )

    def _progress_text(self, current: QueueItem) -> str:
        queue = self._bridge.queue
        ahead, left_s = queue.waiting_for, queue.time_left_s
        if ahead is not None and ahead.console is not None:
            text = self.tr("{campaign}: waiting for run {run} of another console ({console}).")
            return text.format(campaign=current.campaign, run=ahead.run_id, console=console_name(ahead.console))
        together = [item.run_id for item in queue.items if item.campaign_id == current.campaign_id]
        text = self.tr("{campaign}: run {place} of {all}, {scenario}.")
        if left_s is not None:
            text = self.tr("{campaign}: run {place} of {all}, {scenario}. About {left} left.")
        return text.format(
            campaign=current.campaign,
            place=together.index(current.run_id) + 1,
            all=len(together),
            scenario=queue_item_title(current),
            left=duration(left_s),
        )

    def _read_recent(self) -> list[RunRow]:
        with self._reader_factory() as reader:
            return reader.runs(limit=RECENT_RUNS, metrics=())

    def _receive_recent(self, runs: list[RunRow]) -> None:
        self._bridge.refresh(runs)
        self._show_recent(runs)

    def _show_recent(self, runs: list[RunRow]) -> None:
        self._runs = runs
        for line, run in zip_longest(self._recent, runs):
            line.setVisible(run is not None)
            if run is not None:
                line.show_run(run, self._bridge.queue.shown(run))
        self._recent_box.setVisible(bool(runs))


class RecentRun(QToolButton):
    """One line of the latest runs; a click emits the run's id on `wanted`."""

    def __init__(self, theme: Theme, wanted: SignalInstance) -> None:
        super().__init__()
        self._theme = theme
        self._wanted = wanted
        self._run_id = 0
        self.setAccessibleName(self.tr("Latest run"))
        self.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.setIconSize(QSize(16, 16))
        self.setProperty("row", True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.clicked.connect(self._open)

    def show_run(self, run: RunRow, status: ShownStatus) -> None:
        """Show this run with that status."""
        self._run_id = run.id
        self.setIcon(self._theme.icon(*run_status_icon(run, status)))
        parts = [f"{run.id}", shown_lines(run.scenario), run_status_text(run, status), duration(run.duration_s)]
        self.setText("   ·   ".join(part for part in parts if part))
        self.setAccessibleName(self.tr("Run {0}").format(", ".join(part for part in parts if part)))
        self.setToolTip(plain_tooltip(" ".join(filter(None, (run.reason, *run.failed_checks)))))

    def _open(self) -> None:
        self._wanted.emit(self._run_id)
