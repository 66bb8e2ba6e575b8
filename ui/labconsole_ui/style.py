"""The few style rules that Fusion and a palette cannot express: cards, primary buttons, quiet headers."""

from __future__ import annotations

from labconsole_ui.colours import Colours

RADIUS = 6


def style_sheet(colours: Colours) -> str:
    """The application's style sheet. Widgets opt in through dynamic properties (`card`, `primary`, `quiet`)."""
    c = colours
    return f"""
QToolTip {{ color: {c.text}; background: {c.base}; border: 1px solid {c.border}; padding: 6px; }}
QFrame[card="true"] {{ background: {c.base}; border: 1px solid {c.border}; border-radius: {RADIUS + 2}px; }}
QFrame[message="bad"] {{ background: {c.bad_ground}; border: 1px solid {c.bad}; border-radius: {RADIUS}px; }}
QFrame[message="warning"] {{ background: {c.warning_ground}; border: 1px solid {c.warning};
    border-radius: {RADIUS}px; }}
QFrame[message="good"] {{ background: {c.good_ground}; border: 1px solid {c.good}; border-radius: {RADIUS}px; }}
QFrame[message="info"] {{ background: {c.info_ground}; border: 1px solid {c.link}; border-radius: {RADIUS}px; }}
QLabel[muted="true"] {{ color: {c.muted}; }}
QLabel[tone="bad"] {{ color: {c.bad}; }}
QLabel[tone="warning"] {{ color: {c.warning}; }}
QLabel[tone="good"] {{ color: {c.good}; }}
QPushButton {{ background: {c.base}; color: {c.text}; border: 1px solid {c.control_border};
    border-radius: {RADIUS}px; padding: 5px 14px; min-height: 20px; }}
QPushButton:hover {{ background: {c.sunken}; }}
QPushButton:pressed {{ background: {c.border}; }}
QPushButton:focus {{ border: 2px solid {c.link}; padding: 4px 13px; }}
QPushButton:disabled {{ color: {c.disabled}; background: {c.window}; border-color: {c.border}; }}
QPushButton[primary="true"] {{ background: {c.accent}; color: {c.on_accent}; border: 1px solid {c.accent};
    font-weight: 600; }}
QPushButton[primary="true"]:hover {{ background: {c.link}; color: {c.base}; }}
QPushButton[primary="true"]:focus {{ border: 2px solid {c.text}; }}
QPushButton[primary="true"]:disabled {{ background: {c.sunken}; color: {c.disabled}; border-color: {c.border}; }}
QPushButton[large="true"] {{ padding: 12px 26px; font-size: 13pt; border-radius: {RADIUS + 2}px; }}
QPushButton[large="true"]:focus {{ padding: 11px 25px; }}
QToolButton {{ background: transparent; color: {c.text}; border: 1px solid transparent;
    border-radius: {RADIUS}px; padding: 4px; }}
QToolButton:hover {{ background: {c.sunken}; }}
QToolButton:pressed, QToolButton:checked {{ background: {c.sunken}; border-color: {c.border}; }}
QToolButton[row="true"] {{ padding: 8px 10px; text-align: left; }}
QToolButton:focus {{ border-color: {c.link}; }}
QHeaderView {{ background: {c.base}; }}
QHeaderView::section {{ background: {c.base}; color: {c.muted}; border: none; border-bottom: 1px solid {c.border};
    padding: 6px 8px; font-weight: 600; }}
QTableView, QTreeView, QListView {{ background: {c.base}; alternate-background-color: {c.alternate};
    border: 1px solid {c.border}; border-radius: {RADIUS}px; gridline-color: {c.border}; }}
QTableView:focus, QTreeView:focus, QListView:focus {{ border-color: {c.link}; }}
QTabBar::tab {{ color: {c.muted}; background: transparent; padding: 7px 14px; border: none;
    border-bottom: 2px solid transparent; }}
QTabBar::tab:selected {{ color: {c.text}; border-bottom: 2px solid {c.link}; }}
QTabBar::tab:hover {{ color: {c.text}; }}
QTabBar::tab:focus {{ color: {c.link}; }}
QTabWidget::pane {{ border: none; border-top: 1px solid {c.border}; }}
QDockWidget::title {{ background: {c.window}; padding: 7px 10px; text-align: left; }}
QMainWindow::separator {{ background: {c.border}; width: 1px; height: 1px; }}
QMainWindow::separator:hover {{ background: {c.link}; }}
QStatusBar {{ border-top: 1px solid {c.border}; }}
QStatusBar::item {{ border: none; }}
QProgressBar {{ background: {c.sunken}; border: none; border-radius: 4px; text-align: center; color: {c.text};
    max-height: 8px; min-height: 8px; }}
QProgressBar::chunk {{ background: {c.accent}; border-radius: 4px; }}
QScrollArea {{ border: none; background: transparent; }}
QScrollArea > QWidget > QWidget[page="true"] {{ background: transparent; }}
"""
