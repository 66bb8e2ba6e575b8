"""The main window: navigation, pages, run queue, live plots, history, log, menus and status bar put together."""

from __future__ import annotations

from PySide6.QtCore import Qt, QTimer, QUrl
from PySide6.QtGui import QCloseEvent, QDesktopServices, QResizeEvent
from PySide6.QtWidgets import QMainWindow, QVBoxLayout, QWidget

from labconsole.engine.queue import QueueState
from labconsole.plugin import load_dotted
from labconsole.profile import list_profiles
from labconsole.store.errors import StoreError
from labconsole_ui import layout
from labconsole_ui.broken_page import BrokenPage
from labconsole_ui.campaign_watch import CampaignWatch
from labconsole_ui.closing import CloseChoice, CloseQuestion
from labconsole_ui.failures import FailedRuns
from labconsole_ui.guide_page import GuidePage, guide_path
from labconsole_ui.help_page import HelpPage, show_about
from labconsole_ui.history.view import HistoryView
from labconsole_ui.launcher import Launcher
from labconsole_ui.live.dock import LiveView
from labconsole_ui.log_pane import LogPane, LogRelay
from labconsole_ui.menus import MenuBuilder, bring_forward
from labconsole_ui.message_bar import Message, MessageBar, Tone
from labconsole_ui.navigation import GUIDE, HELP, START, Navigation
from labconsole_ui.pages import Pages
from labconsole_ui.panel import PanelContext, TrialPanel
from labconsole_ui.queue_view import QueueView
from labconsole_ui.runview.view import RunView
from labconsole_ui.second_console import WindowLock
from labconsole_ui.services import Services
from labconsole_ui.sidebyside.view import SideBySideView
from labconsole_ui.start_page import StartPage
from labconsole_ui.status_bar import ConsoleStatusBar
from labconsole_ui.theme import ThemeMode
from labconsole_ui.words import STATUS_ICONS, number_ranges

DEMO_PROFILE = "demo"
THEME_KEY = "window/theme"
HISTORY_COLUMNS_KEY = "history/columns"


class MainWindow(QMainWindow):
    """One window on one database. Closing it ends the queue."""

    def __init__(self, services: Services) -> None:
        super().__init__()
        self.services = services
        theme, bridge, plugins = services.theme, services.bridge, services.plugins
        self._close_when_done = False
        self._live_follows_width = False
        self._laid_out_width = 0
        self._question: CloseQuestion | None = None
        self._demo_runs: list[int] = []
        self._campaigns_told: dict[tuple[int, ...], Message] = {}
        self.messages = MessageBar(theme)
        self.pages = Pages(theme)
        self.launcher = Launcher(bridge, plugins, self.messages.show_message, self)
        self.failures = FailedRuns(
            bridge, services.reader, self.messages.show_message, self.open_run, self.launcher.run_again, self
        )
        self.watch = CampaignWatch(bridge)
        self.navigation = Navigation(plugins, theme)
        self.queue_view = QueueView(bridge, theme)
        self.live_view = LiveView(bridge, plugins, theme)
        self.history_view = HistoryView(services.reader, services.database, bridge, theme, plugins)
        self.log_pane = LogPane(bridge, theme)
        self.log_relay = LogRelay()
        self.log_relay.line.connect(self.log_pane.add)
        self._lock = WindowLock(services.database)
        self._build()
        self._connect()
        self.show_page(START)

    # Pages

    def show_page(self, target: str) -> None:
        """Open a page as the navigation names it: `start`, `help`, `guide`, `trial:<kind>`, `broken:<plugin>`."""
        kind, _, name = target.partition(":")
        match kind:
            case "start":
                self.pages.show_page(START, self.tr("Start"), "home", self._start_page, closable=False)
            case "help":
                actions = self._menus.actions
                self.pages.show_page(HELP, self.tr("Help"), "help", lambda: HelpPage(self.services.theme, actions))
            case "guide":
                guide = guide_path()
                if guide is not None:
                    self.pages.show_page(GUIDE, self.tr("Guide"), "book", lambda: GuidePage(self.services.theme, guide))
            case "trial":
                self.open_trial(name)
            case "broken":
                self._open_broken(name)

    def open_trial(self, kind: str) -> TrialPanel | None:
        """Bring the panel of a trial to the front. Returns it, or None if the plugin's code fails (a page says so)."""
        plugin = self.services.plugins.of_kind(kind)
        icon = f"plugin-{plugin.name}" if self.services.theme.has_icon(f"plugin-{plugin.name}") else "plugin"
        try:
            trial = self.services.plugins.trial(kind)
            make_panel = load_dotted(plugin.panels[kind]) if kind in plugin.panels else TrialPanel
            context = PanelContext(
                trial=trial,
                plugin=plugin,
                plugins=self.services.plugins,
                bridge=self.services.bridge,
                launcher=self.launcher,
                theme=self.services.theme,
                state=self.services.state,
                open_run=self.open_run,
                show_message=self.messages.show_message,
            )
            page = self.pages.show_page(f"trial:{kind}", trial.title, icon, lambda: make_panel(context))
        except Exception as error:  # noqa: BLE001 - foreign code: its fault is shown and must not take the window down
            text = f"{type(error).__name__}: {error}"
            self.pages.show_page(
                f"broken:{kind}",
                plugin.title,
                "broken",
                lambda: BrokenPage(plugin.title, text, self.services.theme),
            )
            return None
        return page if isinstance(page, TrialPanel) else None

    def open_run(self, run_id: int) -> None:
        """Open the view of one run."""
        services, key = self.services, f"run:{run_id}"

        def make() -> RunView:
            view = RunView(services.reader, run_id, services.plugins, services.theme, services.bridge)
            view.status_shown.connect(lambda status: self.pages.set_icon(key, *STATUS_ICONS[status]))
            return view

        self.pages.show_page(key, self.tr("Run {run}").format(run=run_id), "live", make)

    def open_runs(self, run_ids: list[int]) -> None:
        """Open the views of several runs."""
        for run_id in run_ids:
            self.open_run(run_id)

    def compare_runs(self, run_ids: list[int]) -> None:
        """Open the side-by-side table of several runs."""
        services = self.services
        numbers = number_ranges(run_ids)
        told = self._campaigns_told.pop(tuple(run_ids), None)
        if told is not None:
            self.messages.withdraw(told)
        self.pages.show_page(
            f"compare:{','.join(map(str, run_ids))}",
            self.tr("Compare {runs}").format(runs=numbers),
            "compare",
            lambda: SideBySideView(services.reader, run_ids, services.plugins, services.theme),
        )

    def use_parameters(self, run_id: int) -> None:
        """Fill the form of a run's trial with that run's parameters."""
        try:
            with self.services.reader() as reader:
                row = reader.run(run_id).row
            panel = self.open_trial(row.kind)
        except StoreError as error:
            self._say_failed(str(error))
        except KeyError:
            self._say_failed(self.tr("The trial {kind} of this run is not installed here.").format(kind=row.kind))
        else:
            if panel is not None:
                panel.use_parameters(row.parameters)

    def run_demo(self) -> None:
        """Run the demo campaign, with the live plots in front; its runs are compared when they are done."""
        self._demo_runs = self.launcher.run_profile(DEMO_PROFILE, at_once=True)

    def set_theme(self, mode: ThemeMode) -> None:
        """Change the theme and remember it."""
        self.services.theme.set_mode(mode)
        self.services.state.keep(THEME_KEY, mode.value)

    def reset_layout(self) -> None:
        """Bring the docks back to where they stand at a first start."""
        layout.forget(self.services.state)
        layout.arrange(self, self.navigation_dock, self.live_dock, self._bottom_docks)
        self._live_follows_width = True
        self._laid_out_width = self.width()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        before, self._laid_out_width = self._laid_out_width, self.width()
        if self._live_follows_width:
            layout.follow_width(self, self.live_dock, self._bottom_docks, before)

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
        self._close_when_done = choice is not CloseChoice.STAY
        self._close_if_done()

    def _stay(self) -> None:
        self._close_when_done = False

    def _close_if_done(self) -> None:
        if self._close_when_done and all(item.state is QueueState.DONE for item in self.services.bridge.queue.items):
            QTimer.singleShot(0, self.close)

    def remember(self) -> None:
        """Keep layout and columns for the next start."""
        layout.remember(self, self.services.state, self.live_dock)
        self.services.state.keep(HISTORY_COLUMNS_KEY, self.history_view.columns_state())
        self.services.state.save()

    # Putting together

    def _build(self) -> None:
        services, theme = self.services, self.services.theme
        self.setWindowTitle(self.tr("{database} — Lab console").format(database=services.database.name))
        self.setWindowIcon(services.theme.icon("app", "link"))
        self.setDockOptions(self.dockOptions() | QMainWindow.DockOption.GroupedDragging)
        self.setTabPosition(Qt.DockWidgetArea.BottomDockWidgetArea, self.pages.TabPosition.North)
        centre = QWidget()
        column = QVBoxLayout(centre)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.messages)
        column.addWidget(self.pages, 1)
        self.setCentralWidget(centre)
        self.navigation_dock = layout.make_dock(self, theme, "navigation", self.tr("Navigation"), self.navigation, 190)
        self.live_dock = layout.make_dock(self, theme, "live", self.tr("Live plots"), self.live_view, 330)
        self.queue_dock = layout.make_dock(self, theme, "queue", self.tr("Run queue"), self.queue_view, 300)
        self.history_dock = layout.make_dock(self, theme, "history", self.tr("History"), self.history_view, 300)
        self.log_dock = layout.make_dock(self, theme, "log", self.tr("Log"), self.log_pane, 300)
        self._bottom_docks = [self.queue_dock, self.history_dock, self.log_dock]
        self.status = ConsoleStatusBar(services.bridge, services.theme, services.database)
        self.status.fold_wanted.connect(lambda: layout.toggle_bottom(self))
        self.setStatusBar(self.status)
        other = self._lock.other_process
        if other is not None:
            self.status.show_notice(
                self.tr("Another console has this database open"),
                self.tr("Process {pid}. Both may look; only one may run at a time.").format(pid=other),
            )
        self.resize(layout.first_size(self))
        layout.arrange(self, self.navigation_dock, self.live_dock, self._bottom_docks)
        self._build_menus()
        layout.restore(self, services.state)
        self._live_follows_width = layout.follows_width(services.state)
        self._laid_out_width = self.width()
        self.history_view.restore_columns(services.state.blob(HISTORY_COLUMNS_KEY))

    def _build_menus(self) -> None:
        self._menus = menus = MenuBuilder(self, self.services.theme)
        file = menus.menu(self.tr("&File"))
        menus.add(file, self.tr("Run the &demo"), self.run_demo, "Ctrl+D", "run")
        file.addSeparator()
        menus.add(file, self.tr("&Close page"), self._close_page, "Ctrl+W")
        menus.add(file, self.tr("&Quit"), self.close, "Ctrl+Q")
        queue = menus.menu(self.tr("&Queue"))
        view = self.queue_view
        menus.adopt(queue, [view.pause_action, view.cancel_action])
        queue.addSeparator()
        menus.adopt(queue, [view.open_action, view.repeat_action, view.remove_action, view.up_action, view.down_action])
        queue.addSeparator()
        menus.adopt(queue, [view.clear_action])
        show = menus.menu(self.tr("&View"))
        menus.add(show, self.tr("&Start page"), lambda: self.show_page(START), "Alt+Home", "home")
        show.addSeparator()
        menus.add_docks(show, [self.navigation_dock, self.queue_dock, self.live_dock, self.history_dock, self.log_dock])
        menus.add(show, self.tr("&Fold the panes beneath"), lambda: layout.toggle_bottom(self), "Ctrl+J", "panes")
        show.addSeparator()
        menus.add(show, self.tr("&Next page"), lambda: self.pages.step(1), "Ctrl+Tab")
        menus.add(show, self.tr("&Previous page"), lambda: self.pages.step(-1), "Ctrl+Shift+Tab")
        show.addSeparator()
        titles = {
            ThemeMode.SYSTEM: self.tr("Theme of the &system"),
            ThemeMode.LIGHT: self.tr("&Light theme"),
            ThemeMode.DARK: self.tr("&Dark theme"),
        }
        menus.add_themes(show, titles, self.set_theme)
        show.addSeparator()
        menus.add(show, self.tr("Full &screen"), self._toggle_full_screen, "F11")
        menus.add(show, self.tr("&Reset layout"), self.reset_layout, "Ctrl+0")
        about = menus.menu(self.tr("&Help"))
        menus.add(about, self.tr("&Help and shortcuts"), lambda: self.show_page(HELP), "F1", "help")
        if guide_path() is not None:
            menus.add(about, self.tr("Operator's &guide"), lambda: self.show_page(GUIDE), "Shift+F1", "book")
        menus.add(about, self.tr("Folder of the &data"), self._open_data_folder, icon="folder")
        menus.add(about, self.tr("&About"), lambda: show_about(self), icon="info")

    def _connect(self) -> None:
        bridge = self.services.bridge
        self.navigation.wanted.connect(self.show_page)
        self.pages.shown.connect(self.navigation.show_page)
        self.queue_view.opened.connect(self.open_run)
        self.history_view.open_runs.connect(self.open_runs)
        self.history_view.compare_runs.connect(self.compare_runs)
        self.history_view.use_parameters.connect(self.use_parameters)
        self.launcher.launched.connect(self._launched)
        self.watch.done.connect(self._campaign_done)
        bridge.failed.connect(self._say_failed)
        self.queue_view.repeat_wanted.connect(self.launcher.repeat)
        bridge.items_changed.connect(self._close_if_done)

    def _start_page(self) -> StartPage:
        services = self.services
        has_demo = any(info.name == DEMO_PROFILE for info in list_profiles())
        page = StartPage(services.plugins, services.bridge, services.theme, services.reader, has_demo)
        page.demo_wanted.connect(self.run_demo)
        page.page_wanted.connect(self.show_page)
        page.run_wanted.connect(self.open_run)
        return page

    def _open_broken(self, name: str) -> None:
        for broken in self.services.plugins.broken:
            if broken.name == name:
                make = lambda broken=broken: BrokenPage(broken.name, broken.error, self.services.theme)  # noqa: E731
                self.pages.show_page(f"broken:{name}", name, "broken", make)

    def _launched(self, run_ids: list[int], at_once: bool) -> None:
        self.watch.watch(run_ids)
        bring_forward(self.queue_dock, focus=False)
        if at_once and self.services.bridge.live_plots:
            bring_forward(self.live_dock, focus=False)

    def _campaign_done(self, run_ids: list[int], finished: int) -> None:
        compared = run_ids == self._demo_runs and finished > 0
        if compared:
            self.compare_runs(run_ids)
        if len(run_ids) == 1 or (compared and finished == len(run_ids)):
            return
        text = self.tr("The campaign is done: {finished} of {all} runs finished.")
        message = text.format(finished=finished, all=len(run_ids))
        tone = Tone.GOOD if finished == len(run_ids) else Tone.WARNING
        link = (self.tr("Compare"), lambda: self.compare_runs(run_ids)) if finished and not compared else None
        self._campaigns_told[tuple(run_ids)] = told = Message(tone, message, link=link)
        self.messages.show_message(told)

    def _say_failed(self, sentence: str) -> None:
        self.messages.show_message(Message(Tone.BAD, sentence))

    def _close_page(self) -> None:
        self.pages.close_page(self.pages.currentIndex())

    def _toggle_full_screen(self) -> None:
        if self.isFullScreen():
            self.showNormal()
        else:
            self.showFullScreen()

    def _open_data_folder(self) -> None:
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(self.services.database.parent)))
