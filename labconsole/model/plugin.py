"""Plugins: static manifests, found by the entry point group `labconsole.plugins`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Self

from labconsole.errors import UserError
from labconsole.model.dotted_names import load_dotted as load_dotted

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    # Both import numpy and pydantic, which the help of the command line does without.
    from labconsole.model.operation import Operation
    from labconsole.model.trial import Trial

GROUP = "labconsole.plugins"

API_VERSION = 1
"""Version of the plugin interface; `labconsole.api` documents when it rises."""


@dataclass(frozen=True)
class PluginPage:
    """A page that a plugin brings into the window alongside its trials; its key there is `page:<plugin>:<name>`."""

    title: str
    """The title of the tab, and in the navigation where a plugin has more than one entry."""
    factory: str
    """QWidget factory taking the shell's PageContext."""
    opens: tuple[str, ...] = ()
    """Suffixes of files, lower case with their dot, that the page takes by `open_files(paths)` when they are dropped on
    the window."""

    def __post_init__(self) -> None:
        _check_types(self)


@dataclass(frozen=True)
class OperationEntry:
    """An operation that a plugin brings. The help of the terminal is made from this alone, without importing it."""

    target: str
    """`labconsole.model.operation.Operation` class."""
    command: str = ""
    """Its command of the terminal (`pki create-root`); empty: only `labconsole action NAME` runs it there."""
    help: str = ""
    """One line of the command's help, without a full stop."""

    def __post_init__(self) -> None:
        _check_types(self)


@dataclass(frozen=True)
class Plugin:
    """A plugin's manifest: names and dotted strings (`package.module:attribute`), imported only when needed.

    Raises TypeError for a key that is not known, and for a value of another type; UserError where it was written for a
    newer console.
    """

    name: str
    """Short name, unique: `amqp`."""
    title: str
    """The title in the navigation."""
    description: str
    """One sentence for the first-start page and `labconsole trials`."""
    trials: dict[str, str] = field(default_factory=dict)
    """Trial kind -> Trial class."""
    operations: dict[str, OperationEntry] = field(default_factory=dict)
    """Name of an operation (`certificates.create-root`), as audit and `labconsole action` have it -> the operation."""
    panels: dict[str, str] = field(default_factory=dict)
    """Trial kind -> QWidget factory taking the shell's PanelContext."""
    pages: dict[str, PluginPage] = field(default_factory=dict)
    """Name of a page -> the page."""
    commands: dict[str, str] = field(default_factory=dict)
    """Command of the terminal (`hsm verify-store`, `broker`) -> `labconsole.cli.command.Command`."""
    command_groups: dict[str, str] = field(default_factory=dict)
    """Group of commands that only plugins bring (`pki`) -> its line in the help."""
    upkeep: tuple[str, ...] = ()
    """Functions that a window calls in the background at its start and each hour; they ask the operator nothing."""
    doctor_checks: tuple[str, ...] = ()
    """Functions returning `doctor.Check` lists."""
    profiles: tuple[str, ...] = ()
    """Names of the profiles that belong to this plugin."""
    published: tuple[str, ...] = ()
    """Files with the published figures of the plugin's source, without `.toml`: of `resources/published` (`swim-wp16`),
    or in the folder of a package (`their_package:source`); their form is in `labconsole.analysis.published_figures`."""
    table_shapes: tuple[str, ...] = ()
    """Tuples of `analysis.table_shape.TableShape`: the tables of the plugin's source."""
    outlines: dict[str, str] = field(default_factory=dict)
    """Name of an outline (`labconsole report ... --outline NAME`) -> `analysis.report_outline.ReportOutline`."""
    api_version: int = 1
    """Version of the plugin interface (`labconsole.api`) for which the plugin was written."""

    def __new__(cls, *_: object, api_version: object = 1, **__: object) -> Self:
        """Raise UserError for a manifest of a newer console, before one of its newer fields is refused."""
        if isinstance(api_version, int) and api_version > API_VERSION:
            raise UserError(
                f"The plugin needs version {api_version} of the plugin interface, and this console has version "
                f"{API_VERSION}: install a newer console."
            )
        return super().__new__(cls)

    def __post_init__(self) -> None:
        _check_types(self)


def _mapping_to(kind: type) -> Callable[[object], bool]:
    return lambda value: (
        isinstance(value, dict) and all(isinstance(key, str) and isinstance(one, kind) for key, one in value.items())
    )


_TYPES: dict[object, Callable[[object], bool]] = {
    "int": lambda value: isinstance(value, int),
    "str": lambda value: isinstance(value, str),
    "tuple[str, ...]": lambda value: isinstance(value, tuple) and all(isinstance(one, str) for one in value),
    "dict[str, str]": _mapping_to(str),
    "dict[str, PluginPage]": _mapping_to(PluginPage),
    "dict[str, OperationEntry]": _mapping_to(OperationEntry),
}


def _check_types(manifest: Plugin | PluginPage | OperationEntry) -> None:
    """Raise TypeError unless each field is of its type; pydantic would do the same, and takes 0.1 s to import."""
    for one in fields(manifest):
        if not _TYPES[one.type](getattr(manifest, one.name)):
            raise TypeError(f"{one.name} of the plugin's manifest is not of the type {one.type}")


@dataclass(frozen=True)
class BrokenPlugin:
    """A plugin whose manifest could not be loaded; shown with its error, never ends the console."""

    name: str
    error: str


@lru_cache(maxsize=1)
def _entries(path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """The entry points of plugins by name, in the packages on Python's `path`; to read them takes 10 ms."""
    from importlib.metadata import entry_points  # imported late: a role's process does not need it

    return tuple(sorted(entry_points(group=GROUP), key=lambda entry: entry.name))


class Plugins:
    """All plugins that are installed, found once."""

    def __init__(self, found: tuple[Plugin, ...], broken: tuple[BrokenPlugin, ...] = ()) -> None:
        self.found = found
        self.broken = broken

    @classmethod
    def discover(cls) -> Plugins:
        """Load every manifest of the entry point group; one that fails is kept as broken."""
        found: list[Plugin] = []
        broken: list[BrokenPlugin] = []
        for entry in _entries(tuple(sys.path)):
            try:
                manifest = entry.load()
                if isinstance(manifest, dict):
                    manifest = Plugin(**manifest)
                if not isinstance(manifest, Plugin):
                    raise TypeError(f"{entry.value} is not a Plugin, but {type(manifest).__name__}")
                found.append(manifest)
            except UserError as error:
                broken.append(BrokenPlugin(entry.name, str(error)))
            except Exception as error:  # noqa: BLE001 - foreign code: anything may be raised
                broken.append(BrokenPlugin(entry.name, f"{type(error).__name__}: {error}"))
        return cls(tuple(found), tuple(broken))

    def kinds(self) -> list[str]:
        """All trial kinds, sorted."""
        return sorted(kind for plugin in self.found for kind in plugin.trials)

    def of_kind(self, kind: str) -> Plugin:
        """The plugin that brings trial `kind`. Raises KeyError."""
        for plugin in self.found:
            if kind in plugin.trials:
                return plugin
        raise KeyError(kind)

    def trial(self, kind: str) -> Trial[Any]:
        """An instance of the trial `kind`. Raises KeyError, or what its import raises."""
        trial: Trial[Any] = load_dotted(self.of_kind(kind).trials[kind])()
        return trial

    def all_installed(self, kinds: Iterable[str]) -> dict[str, Trial[Any]]:
        """Those of the trials `kinds` that are installed, by kind."""
        return {kind: trial for kind in sorted(set(kinds)) if (trial := self.installed(kind)) is not None}

    def installed(self, kind: str) -> Trial[Any] | None:
        """The trial `kind`, or None where no plugin brings it or it is broken: its stored runs can still be shown."""
        if kind not in self.kinds():
            return None
        try:
            return self.trial(kind)
        except Exception:
            import logging  # which the help of the command line does without

            logging.getLogger(__name__).warning("the trial %s cannot be imported", kind, exc_info=True)
            return None

    @property
    def providers(self) -> tuple[Plugin, ...]:
        """All manifests: that of the console itself, with operations and pages, and those of the plugins."""
        own: Plugin = load_dotted("labconsole.operations.manifest:OWN")
        return (own, *self.found)

    def operations(self) -> list[str]:
        """The names of all operations, sorted."""
        return sorted(name for plugin in self.providers for name in plugin.operations)

    def operation(self, name: str) -> Operation[Any]:
        """An instance of the operation `name`. Raises KeyError, or what its import raises."""
        for plugin in self.providers:
            if name in plugin.operations:
                operation: Operation[Any] = load_dotted(plugin.operations[name].target)()
                return operation
        raise KeyError(name)
