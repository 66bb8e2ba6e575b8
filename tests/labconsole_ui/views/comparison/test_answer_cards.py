"""The answer cards of a comparison, which are filled while a campaign runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from PySide6.QtCore import QEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from labconsole.analysis.change import Judgement
from labconsole.model.plugin import Plugins
from labconsole.store.reader import Reader
from labconsole.store.records import RunStatus
from labconsole_ui.runtime.queue_bridge import QueueBridge
from labconsole_ui.theme.theme import Theme
from labconsole_ui.views.comparison.answer_cards import AnswerCard
from labconsole_ui.views.comparison.comparison_view import ComparisonView
from tests.labconsole_ui.views.conftest import StoredRuns

pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")

STEPS = (("Test 1: plain", {"test": 1}), ("Test 2: TLS", {"test": 2}), ("Test 3: TLS, signed", {"test": 3}))
THROUGHPUT = ("What does TLS cost in throughput?", "What does signing cost in throughput?")

Open = Callable[..., ComparisonView]


@pytest.fixture
def opened(
    qtbot: QtBot, plugins: Plugins, theme: Theme, readers: Callable[[], Reader]
) -> Iterator[Callable[..., ComparisonView]]:
    """Opens a view on runs, or follows them."""
    views: list[ComparisonView] = []

    def make(run_ids: list[int], follow: QueueBridge | None = None) -> ComparisonView:
        view = ComparisonView(readers, run_ids, plugins, theme, follow=follow)
        views.append(view)
        view.resize(1079, 452)
        view.show()
        qtbot.waitUntil(lambda: view.answers.isVisible())
        return view

    yield make
    for view in views:
        view.close()
        view.deleteLater()
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


def grey(card: AnswerCard) -> bool:
    return card.number.property("tone") == "muted"


def test_a_comparison_opens_with_its_answers_above_the_table(stored: StoredRuns, opened: Open, theme: Theme) -> None:
    view = opened(
        stored.finished(*((name, values | {"loop": "closed"}) for name, values in STEPS), repeats=5, messages=300)
    )
    cards = view.answers.cards()
    assert [card.question.text() for card in cards] == list(THROUGHPUT)
    tls, signing = cards
    assert (tls.number.text(), tls.sentence.text()) == ("50 of 100", "TLS leaves 50 of 100 messages a second")
    assert tls.footnote.text().startswith("95 % interval of the factor 1.99") and "5 runs each" in tls.footnote.text()
    assert tls.answer is not None and tls.answer.judgement is Judgement.WORSE and not grey(tls)
    assert signing.chart.accessibleName().startswith("Test 2: TLS: ")
    colour = tls.number.palette().color(tls.number.foregroundRole())
    assert colour == theme.colour("bad")
    assert view.answers.mapTo(view, cards[0].pos()).y() < view.controls.mapTo(view, view.controls.rect().topLeft()).y()


def test_titles_in_a_chart_are_short_where_they_would_be_cut(stored: StoredRuns, opened: Open) -> None:
    steps = (*STEPS[1:], ("Test 4: TLS, signed, encrypted", {"test": 4}))
    view = opened(stored.finished(*((name, values | {"loop": "closed"}) for name, values in steps), messages=300))
    signing, encryption = (card.chart for card in view.answers.cards())
    signing.resize(314, 40)
    encryption.resize(314, 40)
    assert signing.titles() == ["Test 2: TLS", "Test 3: TLS, signed"]
    assert encryption.titles() == ["Test 3", "Test 4"]


def test_answers_that_are_not_judged_are_grey_with_the_reason(stored: StoredRuns, opened: Open, theme: Theme) -> None:
    view = opened(stored.finished(*STEPS[:2], repeats=2, messages=300, rate=1_000.0))
    for card in view.answers.cards():
        assert grey(card) and "Not judged: " in card.footnote.text()
        assert card.number.palette().color(card.number.foregroundRole()) == theme.colour("muted")


def test_the_cards_of_a_followed_campaign_are_filled_and_judged_after_the_fifth_round(
    stored: StoredRuns, opened: Open, bridge: QueueBridge, qtbot: QtBot
) -> None:
    run_ids = stored.queued(*((name, values | {"loop": "closed"}) for name, values in STEPS), repeats=5)
    view = opened(run_ids, follow=bridge)
    assert [card.question.text() for card in view.answers.cards()] == list(THROUGHPUT)
    assert [card.footnote.text() for card in view.answers.cards()] == ["No run yet"] * 2
    assert view.progress.text() == (
        "Round 1 of 5, 0 of 15 runs done. Answers are grey until each scenario has run 5 times."
    )
    for position, run_id in enumerate(run_ids):
        stored.start(run_id)
        stored.sample(run_id, messages=200, rate=1_000.0 / (1 + position % 3))
        stored.end(run_id)
        bridge.finished.emit(run_id, RunStatus.FINISHED)
        done = position + 1
        qtbot.waitUntil(
            lambda done=done: len(view.selection.run_ids) == done and view._page.selection == view.selection
        )
        tls = view.answers.cards()[0]
        if done == 2:
            qtbot.waitUntil(lambda: view.answers.cards()[0].number.text() == "50 of 100")
            assert grey(tls) and tls.footnote.text() == "One run each: not judged"
        if done == 6:
            qtbot.waitUntil(lambda: view.progress.text().startswith("Round 3 of 5, 6 of 15 runs done."))
            assert grey(tls)
    qtbot.waitUntil(lambda: not view.progress.isVisible())
    qtbot.waitUntil(lambda: not any(map(grey, view.answers.cards())))
    assert [column.repeats for column in view._page.columns] == [5, 5, 5]  # type: ignore[union-attr]


def test_a_run_of_another_campaign_is_not_added_to_the_followed_one(
    stored: StoredRuns, opened: Open, bridge: QueueBridge, qtbot: QtBot
) -> None:
    foreign = stored.finished(("Other", {"test": 1}), messages=200)
    view = opened(stored.queued(*STEPS, repeats=1), follow=bridge)
    bridge.finished.emit(foreign[0], RunStatus.FINISHED)
    assert view.selection.run_ids == ()
