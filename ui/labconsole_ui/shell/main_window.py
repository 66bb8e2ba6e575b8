"""The main window: navigation, pages, run queue, live plots, history, log, menus and status bar."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import QEvent, Qt, QTimer
from PySide6.QtGui import QCloseEvent, QDragEnterEvent, QDropEvent, QKeySequence, QResizeEvent, QShortcut
from PySide6.QtWidgets import QFileDialog, QMainWindow, QVBoxLayout, QWidget

from labconsole.documentation import INDEX
from labconsole.engine.queue import QueueState
from labconsole.model.plugin import load_dotted
from labconsole.model.trial import Event, Level
from labconsole.output.report.report_request import ReportKind, ReportRequest
from labconsole.profiles.profile import profile_names
from labconsole_ui.help.help_page import HelpPage
from labconsole_ui.operations.operation_dialog import OperationDialog
from labconsole_ui.panels.trial_panel import PanelContext, TrialPanel
from labconsole_ui.runs.run_files import RunFiles, bundles_in
from labconsole_ui.runs.run_launcher import RunLauncher
from labconsole_ui.runs.run_notifications import FailedRuns, LaunchedRuns, LaunchWatcher
from labconsole_ui.runtime.desktop import DesktopNotifications, open_with_desktop
from labconsole_ui.runtime.long_jobs import LongJobs
from labconsole_ui.runtime.page_targets import HELP, START, trial_target
from labconsole_ui.runtime.services import Services, WindowLock
from labconsole_ui.shell import docks
from labconsole_ui.shell.close_dialog import CloseChoice, CloseQuestion
from labconsole_ui.shell.help_pages import HelpPages
from labconsole_ui.shell.log_pane import LogPane, LogRelay
from labconsole_ui.shell.maintenance import AutomaticBackup, PluginMaintenance
from labconsole_ui.shell.menus import MenuCommands, bring_forward, build_menus
from labconsole_ui.shell.navigation import Navigation
from labconsole_ui.shell.pages import Pages
from labconsole_ui.shell.plugin_pages import BrokenPage, PluginPages, show_broken, show_guarded
from labconsole_ui.shell.run_pages import RunPages
from labconsole_ui.shell.status_bar import ConsoleStatusBar
from labconsole_ui.theme.theme import ThemeMode
from labconsole_ui.views.history.history_view import HistoryView
from labconsole_ui.views.live.live_view import LiveView
from labconsole_ui.views.queue.queue_view import QueueView
from labconsole_ui.views.report.report_window import ReportWindow
from labconsole_ui.views.start_page import StartPage
from labconsole_ui.widgets.help_chapter import chapter_of
from labconsole_ui.widgets.layouts import page_parent
from labconsole_ui.widgets.message_bar import Message, MessageBar, Tone
from labconsole_ui.widgets.status_text import duration, status_text

DEMO_PROFILE = "demo"
THEME_KEY = "window/theme"
TEXT_SIZE_KEY = "window/text size"
HISTORY_COLUMNS_KEY = "history/columns"
HISTORY_GROUPED_KEY = "history/grouped"


class MainWindow(QMainWindow):
    """One window on one database. Closing it ends the queue."""

    def __init__(self, services: Services) -> None:
        super().__init__()
        self.services = services
        theme, bridge, plugins = services.theme, services.bridge, services.plugins
        self.wanted_database: Path | None = None
        """The database to open when this window is closed."""
        self._close_when_done = False
        self._live_follows_width = False
        self._laid_out_width = 0
        self._question: CloseQuestion | None = None
        centre = QWidget(self)
        self.messages = MessageBar(theme, centre)
        self.pages = Pages(theme, centre)
        self.help = HelpPages(services, self.pages)
        self.launcher = RunLauncher(bridge, plugins, self.messages.show_message, self)
        self.runs = RunPages(services, self.pages, self.messages, self.open_trial, self)
        self.files = RunFiles(services, self.messages, self)
        jobs = LongJobs(self, self.messages.show_message)
        self.plugin_pages = PluginPages(services, self.pages, self.messages.show_message, jobs)
        self.failed_runs = FailedRuns(
            bridge, services.reader, self.messages.show_message, self.runs.open_run, self.launcher.run_again, self
        )
        self.launch_watcher = LaunchWatcher(bridge)
        self.notifications = DesktopNotifications(self)
        self.backups = AutomaticBackup(services.database, bridge, self.messages.show_message, self)
        self.maintenance = PluginMaintenance(plugins, self)
        self.navigation_dock = docks.create_dock(self, theme, "navigation", self.tr("Navigation"), 190)
        self.navigation = Navigation(plugins, theme, self.navigation_dock)
        self.live_dock = docks.create_dock(self, theme, "live", self.tr("Live plots"), 330)
        self.live_view = LiveView(bridge, plugins, theme, self.live_dock)
        self.queue_dock = docks.create_dock(self, theme, "queue", self.tr("Run queue"), 300)
        self.queue_view = QueueView(bridge, theme, self.queue_dock)
        self.history_dock = docks.create_dock(self, theme, "history", self.tr("History"), 300)
        self.history_view = HistoryView(services.reader, services.database, bridge, theme, plugins, self.history_dock)
        self.log_dock = docks.create_dock(self, theme, "log", self.tr("Log"), 300)
        self.log_pane = LogPane(bridge, theme, self.log_dock)
        self.log_relay = LogRelay()
        self.log_relay.line.connect(self.log_pane.add)
        self._lock = WindowLock(services.database)
        self._build(centre)
        self._connect()
        self.show_page(START)

    # Pages

    def show_page(self, target: str) -> None:
        """Open a page by its target.

        Targets: `start`, `help`, `guide`, `guide:how-to/install.md`, `trial:<kind>`, `page:<plugin>:<name>`,
        `broken:<plugin>`."""
        kind, _, name = target.partition(":")
        match kind:
            case "start":
                self.pages.show_page(START, self.tr("Start"), "home", self._start_page, closable=False)
            case "help":
                actions = self._menus.actions
                self.pages.show_page(HELP, self.tr("Help"), "help", lambda: HelpPage(self.services.theme, actions))
            case "guide":
                self.help.open(name or INDEX)
            case "trial":
                self.open_trial(name)
            case "page":
                self.plugin_pages.open(target)
            case "broken":
                self._open_broken(name)

    def open_trial(self, kind: str) -> TrialPanel | None:
        """Bring the panel of a trial to the front; it is built piece by piece.

        Returns it, or None if the plugin's code fails (a page says so). Raises KeyError: no plugin has the trial.
        """
        plugin, theme = self.services.plugins.of_kind(kind), self.services.theme
        try:
            trial = self.services.plugins.trial(kind)
            make_panel = load_dotted(plugin.panels[kind]) if kind in plugin.panels else TrialPanel
        except Exception as error:  # noqa: BLE001 - foreign code: its fault is shown and must not take the window down
            show_broken(self.pages, kind, plugin.title, error, theme)
            return None
        context = PanelContext(
            trial=trial,
            plugin=plugin,
            plugins=self.services.plugins,
            bridge=self.services.bridge,
            launcher=self.launcher,
            theme=theme,
            state=self.services.state,
            open_run=self.runs.open_run,
            show_message=self.messages.show_message,
        )
        page = show_guarded(self.pages, trial_target(kind), trial.title, plugin, lambda: make_panel(context), theme)
        return page if isinstance(page, TrialPanel) else None

    def run_demo(self) -> None:
        """Run the demo campaign and open its comparison, which is filled as runs finish."""
        run_ids = self.launcher.run_profile(DEMO_PROFILE, at_once=True, compare=True)
        if run_ids:  # in a turn of its own, since queueing is one already
            QTimer.singleShot(0, self, partial(self.runs.follow_runs, run_ids))

    def report_runs(self, run_ids: list[int], published: Sequence[str] = (), baseline: int | str | None = None) -> None:
        """Open the report window for these runs; `published` and `baseline` are those of a comparison."""
        kind = ReportKind.RUN if len(run_ids) == 1 else ReportKind.COMPARISON
        request = ReportRequest(tuple(run_ids), kind, baseline, tuple(published))
        report = ReportWindow(self.services, request, self)
        QShortcut(QKeySequence("F1"), report).activated.connect(lambda: self._open_chapter_of(report))
        report.show()

    def _open_chapter_of(self, dialog: QWidget) -> None:
        self.help.open(chapter_of(dialog))
        self.activateWindow()

    def set_theme(self, mode: ThemeMode) -> None:
        """Change the theme and store it."""
        self.services.theme.set_mode(mode)
        self.services.state.set(THEME_KEY, mode.value)

    def set_text_size(self, percent: int) -> None:
        """Show all text in a size in percent of the system's, and store it."""
        self.services.theme.set_text_size(percent)
        self.services.state.set(TEXT_SIZE_KEY, str(percent))

    def step_text_size(self, by: int) -> None:
        """Show all text in the next size up (1) or down (-1), and store it."""
        self.services.theme.step_text_size(by)
        self.services.state.set(TEXT_SIZE_KEY, str(self.services.theme.text_size))

    def reset_layout(self) -> None:
        """Reset the docks to the default layout."""
        docks.clear_layout(self.services.state)
        docks.reset_layout(self, self.navigation_dock, self.live_dock, self._bottom_docks)
        self._live_follows_width = True
        self._laid_out_width = self.width()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        before, self._laid_out_width = self._laid_out_width, self.width()
        if self._live_follows_width:
            docks.move_live_dock(self, self.live_dock, self._bottom_docks, before)

    # Files

    def ask_database(self) -> None:
        """Ask for another database; the window closes, and opens again on it."""
        name, _ = QFileDialog.getOpenFileName(
            self,
            self.tr("Open another database"),
            str(self.services.database.parent),
            self.tr("Databases (*.db);;All files (*)"),
        )
        if name:
            self.wanted_database = Path(name)
            self.close()

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Bundles of runs can be dropped anywhere, and files that a page of a plugin opens."""
        if bundles_in(event.mimeData()) or self.plugin_pages.files_in(event.mimeData()):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        bundles = bundles_in(event.mimeData())
        if bundles:
            self.files.import_bundles(bundles)
        self.plugin_pages.open_files(self.plugin_pages.files_in(event.mimeData()))
        event.acceptProposedAction()

    # Closing

    def closeEvent(self, event: QCloseEvent) -> None:
        items = self.services.bridge.queue.items
        running = any(item.state is QueueState.RUNNING for item in items)
        waiting = sum(item.state is QueueState.WAITING for item in items)
        if running or (waiting and not self._close_when_done):
            event.ignore()
            if self._question is None:
                self._question = CloseQuestion(self, running, waiting)
                self._question.finished.connect(self._close_answered)
                self._question.open()
            return
        if any(jobs.dialogs for jobs in self.findChildren(LongJobs)):
            event.ignore()
            self.wanted_database = None
            text = self.tr("Files are still being read or written: wait, or cancel that in its dialog.")
            self.messages.show_message(Message(Tone.WARNING, text))
            return
        if any(dialog.running for dialog in self.findChildren(OperationDialog)):
            event.ignore()
            self.wanted_database = None
            text = self.tr("A dialog is still at work: wait, or cancel it there.")
            self.messages.show_message(Message(Tone.WARNING, text))
            return
        self.remember()
        self._lock.release()
        self.services.bridge.close()
        event.accept()

    def _close_answered(self) -> None:
        question, self._question = self._question, None
        choice = question.choice if question is not None else CloseChoice.STAY
        queue = self.services.bridge.queue
        if choice is CloseChoice.CANCEL:
            queue.cancel_all()
        elif choice is CloseChoice.WAIT:
            queue.resume()
            text = self.tr("The window closes when the queue is done.")
            link = (self.tr("Stay"), self._stay)
            self.messages.show_message(Message(Tone.WARNING, text, link=link))
        if choice is CloseChoice.STAY:
            self.wanted_database = None
        self._close_when_done = choice is not CloseChoice.STAY
        self._close_if_done()

    def _stay(self) -> None:
        self.wanted_database = None
        self._close_when_done = False

    def _close_if_done(self) -> None:
        if self._close_when_done and all(item.state is QueueState.DONE for item in self.services.bridge.queue.items):
            QTimer.singleShot(0, self.close)

    def remember(self) -> None:
        """Store layout and columns for the next start."""
        docks.save_layout(self, self.services.state, self.live_dock)
        self.services.state.set(HISTORY_COLUMNS_KEY, self.history_view.columns_state())
        self.services.state.set(HISTORY_GROUPED_KEY, self.history_view.run_actions.group.isChecked())
        self.services.state.save()

    # Building

    def _build(self, centre: QWidget) -> None:
        services, theme = self.services, self.services.theme
        self.setAcceptDrops(True)
        self.setWindowTitle(self.tr("{database} — Lab console").format(database=services.database.name))
        self.setWindowIcon(services.theme.icon("app", "link"))
        self.setDockOptions(self.dockOptions() | QMainWindow.DockOption.GroupedDragging)
        self.setTabPosition(Qt.DockWidgetArea.BottomDockWidgetArea, self.pages.TabPosition.North)
        column = QVBoxLayout(centre)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.messages)
        column.addWidget(self.pages, 1)
        self.setCentralWidget(centre)
        for dock, content in (
            (self.navigation_dock, self.navigation),
            (self.live_dock, self.live_view),
            (self.queue_dock, self.queue_view),
            (self.history_dock, self.history_view),
            (self.log_dock, self.log_pane),
        ):
            dock.setWidget(content)
        self._bottom_docks = [self.queue_dock, self.history_dock, self.log_dock]
        self.status = ConsoleStatusBar(services.bridge, services.theme, services.database)
        self.status.fold_wanted.connect(lambda: docks.toggle_bottom(self))
        self.setStatusBar(self.status)
        other = self._lock.other_process
        if other is not None:
            self.status.show_notice(
                self.tr("Another console has this database open"),
                self.tr("Process {pid} on {host}. Their runs take turns, and the queue shows those of both.").format(
                    pid=other, host=platform.node()
                ),
            )
        self.resize(docks.first_size(self))
        docks.reset_layout(self, self.navigation_dock, self.live_dock, self._bottom_docks)
        self._menus = build_menus(self, theme, self._menu_commands())
        docks.restore_layout(self, services.state)
        self._live_follows_width = docks.follows_width(services.state)
        self._laid_out_width = self.width()
        self.history_view.restore_columns(services.state.blob(HISTORY_COLUMNS_KEY))
        self.history_view.run_actions.group.setChecked(services.state.flag(HISTORY_GROUPED_KEY, False))

    def _menu_commands(self) -> MenuCommands:
        return MenuCommands(
            run_demo=self.run_demo,
            import_runs=self.files.ask_import,
            open_database=self.ask_database,
            close_page=self.close_page,
            show_page=self.show_page,
            step_page=self.pages.step,
            set_theme=self.set_theme,
            step_text_size=self.step_text_size,
            set_text_size=self.set_text_size,
            toggle_full_screen=self._toggle_full_screen,
            reset_layout=self.reset_layout,
            open_chapter=lambda: self.help.open_chapter(self.focusWidget()),
            open_data_folder=lambda: open_with_desktop(self.services.database.parent),
            queue_actions=self.queue_view.menu_groups(),
            run_actions=self.history_view.run_actions.menu_groups(),
            docks=[self.navigation_dock, self.queue_dock, self.live_dock, self.history_dock, self.log_dock],
        )

    def _connect(self) -> None:
        bridge = self.services.bridge
        self.navigation.wanted.connect(self.show_page)
        self.pages.shown.connect(self.navigation.show_page)
        self.queue_view.opened.connect(self.runs.open_run)
        self.history_view.open_runs.connect(self.runs.open_runs)
        self.history_view.compare_runs.connect(self.runs.compare_runs)
        self.history_view.use_parameters.connect(self.runs.use_parameters)
        self.history_view.export_wanted.connect(self.files.export)
        self.runs.export_wanted.connect(self.files.export)
        self.files.compare_wanted.connect(self.runs.compare_runs)
        self.files.open_wanted.connect(self.runs.open_runs)
        self.history_view.report_wanted.connect(self.report_runs)
        self.runs.report_wanted.connect(self.report_runs)
        self.history_view.verify_wanted.connect(self.files.verify)
        self.launcher.launched.connect(self._launched)
        # In a turn of its own: opening a page takes as long as a slot may take.
        self.launch_watcher.done.connect(self._campaign_done, Qt.ConnectionType.QueuedConnection)
        bridge.failed.connect(self._show_failure)
        self.live_view.command_reported.connect(self._report_command)
        self.queue_view.repeat_wanted.connect(self.launcher.repeat)
        bridge.items_changed.connect(self._close_if_done)

    def _start_page(self) -> StartPage:
        services = self.services
        has_demo = DEMO_PROFILE in profile_names()
        parent = page_parent(self.pages)
        page = StartPage(services.plugins, services.bridge, services.theme, services.reader, has_demo, parent)
        page.show_notices(self.maintenance.notices)
        self.maintenance.noticed.connect(page.show_notices)
        page.demo_wanted.connect(self.run_demo)
        page.page_wanted.connect(self.show_page)
        page.run_wanted.connect(self.runs.open_run)
        self.files.imported.connect(page.refresh)
        self.history_view.changes.changed.connect(page.refresh)
        return page

    def _open_broken(self, name: str) -> None:
        for broken in self.services.plugins.broken:
            if broken.name == name:
                make = lambda broken=broken: BrokenPage(broken.name, broken.error, self.services.theme)  # noqa: E731
                self.pages.show_page(f"broken:{name}", name, "broken", make)

    def _launched(self, run_ids: list[int], at_once: bool, compare: bool) -> None:
        self.launch_watcher.watch(run_ids, compare)
        bring_forward(self.queue_dock, focus=False)
        if at_once and self.services.bridge.live_plots:
            bring_forward(self.live_dock, focus=False)

    def _campaign_done(self, group: LaunchedRuns) -> None:
        compared = group.compare and group.finished > 0
        if compared:
            self.runs.compare_runs(group.run_ids)
        sentence = self._result(group)
        if group.long:
            self.notifications.show(sentence)
        done = group.finished == len(group.run_ids)
        if (compared and done) or (len(group.run_ids) == 1 and not (done and group.long)):
            return
        offered = group.run_ids if group.finished and not compared else []
        self.runs.offer(Tone.GOOD if done else Tone.WARNING, sentence, offered, lasting=group.long)

    def _result(self, group: LaunchedRuns) -> str:
        """The result of a group of runs, in one sentence."""
        if len(group.run_ids) == 1:
            [(run_id, status)] = group.ended.items()
            text = self.tr("Run {run}: {status}, after {duration}.")
            return text.format(run=run_id, status=status_text(status), duration=duration(group.took_s))
        text = self.tr("The campaign is done: {finished} of {all} runs finished.")
        return text.format(finished=group.finished, all=len(group.run_ids))

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.ActivationChange and self.isActiveWindow():
            self.notifications.read()

    def _show_failure(self, sentence: str) -> None:
        self.messages.show_message(Message(Tone.BAD, sentence))

    def _report_command(self, event: Event) -> None:
        tone = Tone.WARNING if event.level is Level.WARNING else Tone.INFO
        self.messages.show_message(Message(tone, event.message))

    def close_page(self) -> None:
        """Close the page in front, if it can be closed."""
        self.pages.close_page(self.pages.currentIndex())

    def _toggle_full_screen(self) -> None:
        if self.isFullScreen():
            self.showNormal()
        else:
            self.showFullScreen()
