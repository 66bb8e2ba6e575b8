"""The help page: how a trial is run, and every shortcut; and the About text with its licences."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from html import escape

import PySide6
from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QMessageBox, QTextBrowser, QWidget

import labconsole
from labconsole_ui.theme.theme import Theme
from labconsole_ui.widgets.help_chapter import set_chapter


class HelpPage(QTextBrowser):
    """Short help with the table of shortcuts, made from the actions themselves."""

    def __init__(self, theme: Theme, actions: Sequence[QAction], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        set_chapter(self, "reference/window.md#keyboard")
        self._theme = theme
        self._actions = actions
        self.setAccessibleName(self.tr("Help"))
        self.setOpenExternalLinks(True)
        self.setFrameShape(QTextBrowser.Shape.NoFrame)
        self.viewport().setAutoFillBackground(False)
        self.document().setDocumentMargin(28)
        theme.changed.connect(self._fill)
        self._fill()

    def _fill(self) -> None:
        c = self._theme.colours
        self.document().setDefaultStyleSheet(
            f"h1 {{ font-size: 15pt; font-weight: 600; }} h2 {{ font-size: 12pt; font-weight: 600; }}"
            f"li {{ margin-bottom: 4px; }}"
            f"td {{ padding: 4px 24px 4px 0; }} .key {{ color: {c.link}; font-weight: 600; }} p {{ color: {c.text}; }}"
        )
        rows = "".join(
            f"<tr><td class='key'>{escape(keys)}</td><td>{escape(text)}</td></tr>" for keys, text in self._shortcuts()
        )
        steps = "".join(f"<li>{escape(step)}</li>" for step in self._steps())
        self.setHtml(
            f"<h1>{escape(self.tr('Help'))}</h1>"
            f"<h2>{escape(self.tr('A trial in five steps'))}</h2><ol>{steps}</ol>"
            f"<h2>{escape(self.tr('Keyboard'))}</h2><table>{rows}</table>"
        )

    def _steps(self) -> list[str]:
        return [
            self.tr("Choose a trial on the left. A preset fills the form with the parameters of a known trial."),
            self.tr("Change what you need. Each field says what it expects; what is wrong is said beneath it."),
            self.tr("Run it at once, or add it to the queue. Repeat it five times or more for a sound comparison."),
            self.tr("Watch the live plots. They only show; the figures come from the stored samples after the run."),
            self.tr("Open the run from the history, or select several runs there and compare them side by side."),
        ]

    def _shortcuts(self) -> list[tuple[str, str]]:
        native = QKeySequence.SequenceFormat.NativeText
        own = [
            (action.shortcut().toString(native), action.text().replace("&", ""))
            for action in self._actions
            if not action.shortcut().isEmpty()
        ]
        return [
            *own,
            (QKeySequence("Ctrl+Return").toString(native), self.tr("Run the scenario of the form")),
            (QKeySequence("Ctrl+Shift+Return").toString(native), self.tr("Add the scenario of the form to the queue")),
            (QKeySequence("Ctrl+Tab").toString(native), self.tr("Next tab")),
        ]


def show_about(parent: QWidget) -> QMessageBox:
    """Show what this is, its version, and the licences of what it uses; returns the dialog, which is not modal."""
    tr = QCoreApplication.translate
    box = QMessageBox(parent)
    box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    box.setWindowTitle(tr("About", "About the lab console"))
    box.setTextFormat(Qt.TextFormat.RichText)
    box.setText(f"<h3>{escape(tr('About', 'Lab console'))} {escape(labconsole.__version__)}</h3>")
    lines = [
        tr("About", "Runs, shows and compares secure messaging trials. Apache License 2.0."),
        tr(
            "About",
            "The window uses Qt {qt} through PySide6 under the GNU Lesser General Public License, version 3: you may "
            "replace these libraries by your own build of them in the Python environment of the console.",
        ).format(qt=PySide6.__version__),
        tr("About", "The typeface is Inter, under the SIL Open Font License 1.1."),
        tr("About", "The licences of all parts are in THIRD-PARTY-NOTICES.md."),
        tr("About", "Python {python}, {system}").format(python=platform.python_version(), system=platform.platform()),
    ]
    box.setInformativeText("".join(f"<p>{escape(line)}</p>" for line in lines))
    box.setStandardButtons(QMessageBox.StandardButton.Close)
    box.open()
    return box
