"""Plugins: found by their entry point, the built-in one as a third party's; a broken one is shown as broken."""

from __future__ import annotations

import importlib
import importlib.metadata
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from labconsole.model.plugin import API_VERSION, Plugin, PluginPage, Plugins, load_dotted
from tests.helpers.practice import PLUGIN


@pytest.fixture
def third_party(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(PLUGIN))
    importlib.invalidate_caches()
    yield
    sys.modules.pop("practice_trial", None)


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, manifest: str) -> None:
    """A plugin `odd` with this manifest, in a folder that Python looks into."""
    about = folder / "odd-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: odd\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[labconsole.plugins]\nodd = odd_manifest:plugin\n")
    (folder / "odd_manifest.py").write_text(manifest)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "odd_manifest", raising=False)
    importlib.invalidate_caches()


@pytest.mark.parametrize(("name", "kind"), [("amqp", "amqp.messaging"), ("keypool", "keypool.simulation")])
def test_a_built_in_plugin_comes_by_the_entry_point(name: str, kind: str) -> None:
    plugins = Plugins.discover()
    assert plugins.of_kind(kind).name == name
    assert plugins.trial(kind).kind == kind
    with pytest.raises(KeyError):
        plugins.trial("practice.counting")


@pytest.mark.usefixtures("third_party")
def test_third_party_plugin_is_found_through_the_entry_point_group() -> None:
    plugins = Plugins.discover()
    assert {"amqp.messaging", "practice.counting"} <= set(plugins.kinds())
    assert plugins.trial("practice.counting").title == "Counting"


def test_packages_are_read_once_for_a_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    known = Plugins.discover()
    with monkeypatch.context() as patch:
        patch.setattr(importlib.metadata, "entry_points", lambda **_: pytest.fail("read again"))
        assert Plugins.discover().kinds() == known.kinds()
    install(tmp_path, monkeypatch, "plugin = 5\n")
    assert [broken.name for broken in Plugins.discover().broken] == ["odd"]


@pytest.mark.usefixtures("third_party")
def test_a_broken_plugin_is_kept_with_its_error_and_harms_no_other() -> None:
    plugins = Plugins.discover()
    [broken] = plugins.broken
    assert (broken.name, broken.error) == ("shattered", "RuntimeError: this plugin is in pieces")
    assert plugins.kinds()


def test_a_trial_that_cannot_be_imported_is_not_installed() -> None:
    plugins = Plugins((Plugin(name="x", title="X", description="X", trials={"x": "no_such_module:XTrial"}),))
    assert plugins.installed("x") is None and plugins.installed("y") is None


@pytest.mark.usefixtures("third_party")
@pytest.mark.parametrize("names", ["key_metrics", "finding_metrics"])
def test_a_trial_that_names_a_metric_which_it_does_not_declare_is_refused(names: str) -> None:
    counting = type(Plugins.discover().trial("practice.counting"))
    with pytest.raises(TypeError, match=r"^Misnamed names metrics that it does not declare: checksun$"):
        type("Misnamed", (counting,), {names: ("counted", "checksun")})


def test_object_that_is_not_a_manifest_is_a_broken_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, "plugin = {'name': 'odd', 'title': 'Odd', 'trails': {}}\n")
    [broken] = Plugins.discover().broken
    assert broken.name == "odd" and "trails" in broken.error


@pytest.mark.parametrize(
    "manifest",
    [
        "from labconsole.api import Plugin\nplugin = Plugin(name='odd', title='', description='', api_version=999)\n",
        "plugin = {'name': 'odd', 'title': 'Odd', 'description': '', 'api_version': 999, 'hovercraft': ('eels',)}\n",
    ],
)
def test_a_plugin_for_a_newer_console_is_broken_with_the_reason(
    manifest: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch, manifest)
    [broken] = Plugins.discover().broken
    assert (broken.name, broken.error) == (
        "odd",
        f"The plugin needs version 999 of the plugin interface, and this console has version {API_VERSION}: install a "
        "newer console.",
    )


def test_a_plugin_that_was_written_for_this_console_or_an_older_one_is_found() -> None:
    for version in range(1, API_VERSION + 1):
        assert Plugin(name="x", title="X", description="", api_version=version).api_version == version


def test_a_manifest_refuses_an_unknown_key() -> None:
    with pytest.raises(TypeError, match="colour"):
        Plugin(**{"name": "x", "title": "X", "description": "", "colour": "red"})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wrong",
    [{"title": 3}, {"trials": {"x.kind": 3}}, {"profiles": "demo"}, {"profiles": (3,)}, {"pages": {"x": "x:Page"}}],
)
def test_a_manifest_refuses_a_value_of_another_type(wrong: dict[str, object]) -> None:
    (key,) = wrong
    with pytest.raises(TypeError, match=f"{key} of the plugin's manifest"):
        Plugin(**{"name": "x", "title": "X", "description": "", **wrong})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="opens"):
        PluginPage("X", "x:Page", opens=".pem")  # type: ignore[arg-type]


def test_dotted_names_are_loaded_when_they_are_needed() -> None:
    assert load_dotted("labconsole.model.plugin:Plugin") is Plugin
    with pytest.raises(AttributeError):
        load_dotted("labconsole.model.plugin:Nothing")
    with pytest.raises(ImportError):
        load_dotted("labconsole.nowhere:Nothing")
