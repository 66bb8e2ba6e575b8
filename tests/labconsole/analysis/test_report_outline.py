"""Report outlines of plugins: found by name and by trials; a broken one is reported, and the others are offered."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from labconsole.analysis.report_outline import OutlineChapter, ReportOutline, report_outline, report_outlines
from labconsole.errors import UserError
from labconsole.model.plugin import Plugin, Plugins
from tests.helpers.stored_post_trial import PLUGINS

HERE = "tests.labconsole.analysis.test_report_outline"
LETTERS = ReportOutline("Letters", "All about them.", (OutlineChapter("Post", "", ("post",)),), lambda *_: ())
OF_NO_TRIAL = replace(LETTERS, chapters=(OutlineChapter("Pigeons", "", ("pigeon",)),))
OF_NO_TABLE = replace(LETTERS, chapters=(OutlineChapter("Post", "", ("post",), ("stamps",)),))
NOT_AN_OUTLINE = ("Post",)


def with_outlines(**outlines: str) -> Plugins:
    (plugin,) = PLUGINS.found
    return Plugins((replace(plugin, outlines={name: f"{HERE}:{target}" for name, target in outlines.items()}),))


def test_an_outline_is_found_by_its_name_and_by_the_trials_that_it_takes() -> None:
    plugins = with_outlines(letters="LETTERS")
    assert report_outline(plugins, "letters") is LETTERS
    assert report_outlines(plugins, ["post"]) == {"letters": LETTERS}
    assert report_outlines(plugins, ["post", "pigeon"]) == {}
    with pytest.raises(UserError, match="There is no report outline leters; did you mean letters"):
        report_outline(plugins, "leters")


@pytest.mark.parametrize(
    ("target", "fault"),
    [
        ("MISSING", "AttributeError: .*MISSING"),
        ("NOT_AN_OUTLINE", "TypeError: .*NOT_AN_OUTLINE is not a ReportOutline, but tuple"),
        ("OF_NO_TRIAL", "chapter Pigeons: no trial is called pigeon"),
        ("OF_NO_TABLE", "chapter Post: no table is called stamps"),
    ],
)
def test_a_broken_outline_is_named_with_its_fault_and_left_out_of_the_offer(
    target: str, fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    plugins = with_outlines(broken=target, letters="LETTERS")
    sentence = rf"The report outline broken of the plugin post is broken \({fault}.*\): repair or remove the plugin\."
    with pytest.raises(UserError, match=sentence):
        report_outline(plugins, "broken")
    with caplog.at_level(logging.WARNING):
        assert report_outlines(plugins, ["post"]) == {"letters": LETTERS}
    assert "The report outline broken of the plugin post is broken" in caplog.text


def test_a_manifest_refuses_outlines_that_are_not_dotted_strings() -> None:
    with pytest.raises(TypeError, match="outlines of the plugin's manifest is not of the type"):
        Plugin(name="odd", title="Odd", description="", outlines={"letters": LETTERS})  # type: ignore[dict-item]
