"""Undoable changes of runs, written in the background: trash, notes, tags, baseline."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QObject, Signal
from PySide6.QtGui import QUndoCommand, QUndoStack

from labconsole.store import edits
from labconsole.store.records import RunRow
from labconsole.store.run_store import Store
from labconsole_ui.runtime.background import Background


class RunChanges(QObject):
    """Does and undoes changes; `changed` is emitted after a write, `failed` carries an error sentence."""

    changed = Signal()
    failed = Signal(str)

    def __init__(self, path: Path, background: Background, parent: QObject) -> None:
        super().__init__(parent)
        self._path = path
        self._background = background
        self.stack = QUndoStack(self)

    def trash(self, runs: Sequence[RunRow]) -> str:
        """Move runs to the trash; returns the sentence for the operator."""
        ids = [run.id for run in runs]
        text = moved_to_trash(ids)
        self._push(text, lambda store: edits.trash(store, ids), lambda store: edits.restore(store, ids))
        return text

    def restore(self, runs: Sequence[RunRow]) -> str:
        """Restore runs from the trash; returns the sentence for the operator."""
        ids = [run.id for run in runs]
        text = restored(ids)
        self._push(text, lambda store: edits.restore(store, ids), lambda store: edits.trash(store, ids))
        return text

    def pin(self, run: RunRow, before: RunRow | None) -> str:
        """Make a run the baseline of its trial, in place of `before`; returns the sentence for the operator."""
        text = QCoreApplication.translate("History", "Run {0} is the baseline of its trial").format(run.id)
        self._push(text, lambda store: edits.pin_baseline(store, run.id), lambda store: _pin_again(store, run, before))
        return text

    def unpin(self, run: RunRow) -> str:
        """Unpin the baseline `run`; returns the sentence for the operator."""
        text = QCoreApplication.translate("History", "Run {0} is no longer the baseline").format(run.id)
        self._push(
            text, lambda store: edits.unpin_baseline(store, run.kind), lambda store: edits.pin_baseline(store, run.id)
        )
        return text

    def set_note(self, run: RunRow, note: str) -> None:
        """Change the note of a run."""
        self._push(
            QCoreApplication.translate("History", "note of run {0}").format(run.id),
            lambda store: edits.set_note(store, run.id, note),
            lambda store: edits.set_note(store, run.id, run.note),
        )

    def set_tags(self, run: RunRow, text: str) -> None:
        """Change the tags of a run, given with commas between them."""
        tags = [tag.strip() for tag in text.split(",") if tag.strip()]
        self._push(
            QCoreApplication.translate("History", "tags of run {0}").format(run.id),
            lambda store: edits.set_tags(store, run.id, tags),
            lambda store: edits.set_tags(store, run.id, run.tags),
        )

    def purge(self) -> None:
        """Delete the runs in the trash for ever; earlier changes can no longer be undone."""
        self.stack.clear()
        self.write(lambda store: edits.purge_trash(store))

    def write(self, change: Callable[[Store], object]) -> None:
        """Change the database in the background."""

        def work() -> None:
            with Store.open(self._path) as store:
                change(store)

        self._background.submit(work, lambda _: self.changed.emit(), self.failed.emit)

    def _push(self, text: str, do: Callable[[Store], object], undo: Callable[[Store], object]) -> None:
        self.stack.push(_Change(text, lambda: self.write(do), lambda: self.write(undo)))


def moved_to_trash(ids: Sequence[int]) -> str:
    """`Run 7 moved to trash`, `3 runs moved to trash`."""
    if len(ids) == 1:
        return QCoreApplication.translate("History", "Run {0} moved to trash").format(ids[0])
    return QCoreApplication.translate("History", "{0} runs moved to trash").format(len(ids))


def restored(ids: Sequence[int]) -> str:
    """`Run 7 restored`, `3 runs restored`."""
    if len(ids) == 1:
        return QCoreApplication.translate("History", "Run {0} restored").format(ids[0])
    return QCoreApplication.translate("History", "{0} runs restored").format(len(ids))


def _pin_again(store: Store, run: RunRow, before: RunRow | None) -> None:
    if before is None:
        edits.unpin_baseline(store, run.kind)
    else:
        edits.pin_baseline(store, before.id)


class _Change(QUndoCommand):
    def __init__(self, text: str, do: Callable[[], None], undo: Callable[[], None]) -> None:
        super().__init__(text)
        self._do = do
        self._undo = undo

    def redo(self) -> None:
        self._do()

    def undo(self) -> None:
        self._undo()
