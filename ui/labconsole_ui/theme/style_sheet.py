"""Style rules that Fusion and a palette cannot express: cards, inputs, primary buttons, headers."""

from __future__ import annotations

from collections.abc import Callable

from labconsole_ui.theme.colours import Colours

RADIUS = 6


def style_sheet(colours: Colours, icon: Callable[[str, str], str], points: float, row: int) -> str:
    """The application's style sheet. Widgets use it by dynamic properties (`card`, `primary`, `page`).

    `icon` gives the path of the icon `name` as a file in a colour; `points` is the size of the body's text, `row` the
    height in pixels of an item in a drop-down list.
    """
    return (
        _surfaces(colours)
        + _buttons(colours, points)
        + _inputs(colours, icon, row)
        + _views(colours, points)
        + _frame(colours, icon)
    )


def _surfaces(c: Colours) -> str:
    messages = "".join(
        f'QFrame[message="{tone}"] {{ background: {ground}; border: 1px solid {edge}; border-radius: {RADIUS}px; }}\n'
        for tone, ground, edge in (
            ("bad", c.bad_ground, c.bad),
            ("warning", c.warning_ground, c.warning),
            ("good", c.good_ground, c.good),
            ("info", c.info_ground, c.link),
        )
    )
    return f"""
QToolTip {{ color: {c.text}; background: {c.base}; border: 1px solid {c.border}; padding: 6px; }}
QFrame[card="true"] {{ background: {c.base}; border: 1px solid {c.border}; border-radius: {RADIUS + 2}px; }}
{messages}
QLabel[muted="true"] {{ color: {c.muted}; }}
QLabel[tone="bad"] {{ color: {c.bad}; }}
QLabel[tone="warning"] {{ color: {c.warning}; }}
QLabel[tone="good"] {{ color: {c.good}; }}
QScrollArea {{ border: none; background: transparent; }}
QScrollArea > QWidget > QWidget[page="true"] {{ background: transparent; }}
"""


def _buttons(c: Colours, points: float) -> str:
    return f"""
QPushButton {{ background: {c.base}; color: {c.text}; border: 1px solid {c.control_border};
    border-radius: {RADIUS}px; padding: 4px 14px; min-height: 20px; }}
QPushButton:hover {{ background: {c.sunken}; }}
QPushButton:pressed, QPushButton:checked {{ background: {c.border}; }}
QPushButton:focus {{ border: 2px solid {c.link}; padding: 3px 13px; }}
QPushButton:disabled {{ color: {c.disabled}; background: {c.window}; border-color: {c.border}; }}
QPushButton[primary="true"] {{ background: {c.accent}; color: {c.on_accent}; border: 1px solid {c.accent};
    font-weight: 600; }}
QPushButton[primary="true"]:hover {{ background: {c.accent_hover}; }}
QPushButton[primary="true"]:focus {{ border: 2px solid {c.text}; }}
QPushButton[primary="true"]:disabled {{ background: {c.sunken}; color: {c.disabled}; border-color: {c.border}; }}
QPushButton[large="true"] {{ padding: 12px 26px; font-size: {1.3 * points:g}pt; border-radius: {RADIUS + 2}px; }}
QPushButton[large="true"]:focus {{ padding: 11px 25px; }}
QToolButton {{ background: transparent; color: {c.text}; border: 1px solid transparent;
    border-radius: {RADIUS}px; padding: 4px; }}
QToolButton:hover {{ background: {c.sunken}; }}
QToolButton:pressed, QToolButton:checked {{ background: {c.sunken}; border-color: {c.border}; }}
QToolButton:disabled {{ color: {c.disabled}; }}
QToolButton[row="true"] {{ padding: 8px 10px; text-align: left; }}
QToolButton[problem="true"] {{ color: {c.bad}; }}
QToolButton:focus {{ border-color: {c.link}; }}
QToolButton::menu-indicator {{ image: none; }}
"""


def _inputs(c: Colours, icon: Callable[[str, str], str], row: int) -> str:
    down, up, tick = icon("chevron-down", c.muted), icon("chevron-up", c.muted), icon("tick", c.on_accent)
    return f"""
QLineEdit, QComboBox, QSpinBox, QDoubleSpinBox {{ background: {c.base}; color: {c.text}; min-height: 20px;
    border: 1px solid {c.control_border}; border-radius: {RADIUS}px; padding: 4px 8px; }}
QLineEdit:focus, QComboBox:focus, QSpinBox:focus, QDoubleSpinBox:focus {{ border: 2px solid {c.link};
    padding: 3px 7px; }}
QLineEdit[invalid="true"], QComboBox[invalid="true"] {{ border: 2px solid {c.bad}; padding: 3px 7px; }}
QLineEdit:disabled, QComboBox:disabled, QSpinBox:disabled {{ color: {c.disabled}; background: {c.window};
    border-color: {c.border}; }}
QComboBox QLineEdit {{ border: none; padding: 0; min-height: 18px; background: transparent; }}
QComboBox::drop-down {{ border: none; width: 26px; }}
QComboBox::down-arrow {{ image: url({down}); width: 14px; height: 14px; }}
QComboBox QAbstractItemView {{ background: {c.base}; color: {c.text}; border: 1px solid {c.border};
    selection-background-color: {c.info_ground}; selection-color: {c.text}; outline: none; padding: 4px;
    min-height: {row}px; }}
QSpinBox::up-button, QSpinBox::down-button {{ border: none; width: 20px; background: transparent; }}
QSpinBox::up-arrow {{ image: url({up}); width: 12px; height: 12px; }}
QSpinBox::down-arrow {{ image: url({down}); width: 12px; height: 12px; }}
QCheckBox {{ spacing: 8px; }}
QCheckBox::indicator, QListView::indicator, QTreeView::indicator {{ width: 16px; height: 16px;
    border: 1px solid {c.control_border}; border-radius: 4px; background: {c.base}; }}
QCheckBox::indicator:focus {{ border: 2px solid {c.link}; }}
QCheckBox::indicator:checked, QListView::indicator:checked, QTreeView::indicator:checked {{ background: {c.accent};
    border-color: {c.accent}; image: url({tick}); }}
QTreeView::indicator:indeterminate {{ background: {c.scroll}; border-color: {c.accent}; }}
QCheckBox::indicator:disabled {{ border-color: {c.border}; background: {c.window}; }}
QRadioButton {{ spacing: 8px; }}
QRadioButton::indicator {{ width: 16px; height: 16px; border: 1px solid {c.control_border}; border-radius: 9px;
    background: {c.base}; }}
QRadioButton::indicator:checked {{ width: 8px; height: 8px; border: 5px solid {c.accent}; }}
QRadioButton::indicator:focus {{ border-color: {c.link}; }}
QProgressBar {{ background: {c.sunken}; border: none; border-radius: 4px; max-height: 8px; min-height: 8px; }}
QProgressBar::chunk {{ background: {c.accent}; border-radius: 4px; }}
"""


def _views(c: Colours, points: float) -> str:
    return f"""
QHeaderView {{ background: {c.base}; }}
QHeaderView::section {{ background: {c.base}; color: {c.muted}; border: none; border-bottom: 1px solid {c.border};
    padding: 5px; font-weight: 600; }}
QHeaderView::up-arrow, QHeaderView::down-arrow {{ subcontrol-position: top center; width: 10px; height: 10px; }}
QHeaderView::section:vertical {{ border-bottom: none; border-right: 1px solid {c.border}; }}
QTableView, QTreeView, QListView {{ background: {c.base}; alternate-background-color: {c.alternate};
    border: 1px solid {c.border}; border-radius: {RADIUS}px; gridline-color: {c.border};
    selection-background-color: {c.info_ground}; selection-color: {c.text}; outline: none; }}
QTableView[plain="true"] {{ border: none; border-radius: 0; }}
QTableView[plain="true"]::item {{ padding: 5px; }}
QTableView[plain="true"] QHeaderView::section:vertical {{ border: none; padding-right: 16px; }}
QTableView:focus, QTreeView:focus, QListView:focus {{ border-color: {c.link}; }}
QToolButton[section="true"] {{ font-weight: 600; font-size: {1.15 * points:g}pt; padding: 2px 4px; text-align: left; }}
QTableCornerButton::section {{ background: {c.base}; border: none; border-bottom: 1px solid {c.border}; }}
QTreeView[navigation="true"], QTreeView[contents="true"] {{ background: {c.window}; border: 1px solid transparent;
    padding: 4px; show-decoration-selected: 0; }}
QTreeView[navigation="true"]::item, QTreeView[contents="true"]::item {{ border-radius: {RADIUS}px; padding: 2px 6px; }}
QTreeView[navigation="true"]::item:hover, QTreeView[contents="true"]::item:hover {{ background: {c.sunken}; }}
QTreeView[navigation="true"]::item:selected, QTreeView[contents="true"]::item:selected {{ background: {c.info_ground};
    color: {c.text}; }}
QTreeView[navigation="true"]::branch {{ background: {c.window}; }}
QTreeView[navigation="true"]:focus, QTreeView[contents="true"]:focus {{ border-color: {c.border}; }}
QPlainTextEdit, QTextEdit {{ background: {c.base}; border: 1px solid {c.border}; border-radius: {RADIUS}px; }}
QPlainTextEdit:focus {{ border-color: {c.link}; }}
QScrollBar {{ background: transparent; border: none; margin: 0; }}
QScrollBar:vertical {{ width: 12px; }}
QScrollBar:horizontal {{ height: 12px; }}
QScrollBar::handle {{ background: {c.scroll}; border-radius: 4px; margin: 2px; }}
QScrollBar::handle:vertical {{ min-height: 32px; }}
QScrollBar::handle:horizontal {{ min-width: 32px; }}
QScrollBar::handle:hover {{ background: {c.control_border}; }}
QScrollBar::add-line, QScrollBar::sub-line {{ width: 0; height: 0; }}
QScrollBar::add-page, QScrollBar::sub-page {{ background: transparent; }}
"""


def _frame(c: Colours, icon: Callable[[str, str], str]) -> str:
    return f"""
QMenuBar {{ background: {c.window}; padding: 2px 6px; }}
QMenuBar::item {{ padding: 5px 10px; border-radius: {RADIUS}px; background: transparent; }}
QMenuBar::item:selected {{ background: {c.sunken}; }}
QMenu {{ background: {c.base}; border: 1px solid {c.border}; padding: 5px; }}
QMenu::item {{ padding: 6px 28px 6px 12px; border-radius: 4px; }}
QMenu::item:selected {{ background: {c.info_ground}; color: {c.text}; }}
QMenu::item:disabled {{ color: {c.disabled}; }}
QMenu::icon {{ padding-left: 8px; }}
QMenu::separator {{ height: 1px; background: {c.border}; margin: 5px 8px; }}
QTabBar {{ qproperty-drawBase: 0; }}
QTabBar::tab {{ color: {c.muted}; background: transparent; padding: 7px 12px; border: none;
    border-bottom: 2px solid transparent; }}
QTabBar[dense="true"]::tab {{ padding: 7px 8px; }}
QTabBar::tab:selected {{ color: {c.text}; border-bottom: 2px solid {c.link}; }}
QTabBar::tab:hover {{ color: {c.text}; background: {c.sunken}; }}
QTabBar::tab:focus {{ color: {c.link}; }}
QTabBar::close-button {{ image: url({icon("remove", c.muted)}); width: 12px; height: 12px; border-radius: 3px; }}
QTabBar::close-button:hover {{ background: {c.border}; }}
QTabWidget::pane {{ border: none; border-top: 1px solid {c.border}; }}
QMainWindow::separator {{ background: {c.border}; width: 1px; height: 1px; }}
QMainWindow::separator:hover {{ background: {c.link}; }}
QStatusBar {{ border-top: 1px solid {c.border}; }}
QStatusBar::item {{ border: none; }}
"""
