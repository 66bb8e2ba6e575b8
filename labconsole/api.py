"""The one import place for plugin authors: `from labconsole.api import Plugin, Trial, Series`.

Everything here is part of the plugin interface, whose version is `API_VERSION`. It rises by one with the first release
that adds a name or a field to it, changes the meaning of one, or removes one; the changelog names each of these. What
one version offers, the next one still does: a name that will be removed stays for one version more, and the changelog
says what replaces it. A manifest may say for which version its plugin was written (`Plugin.api_version`): a console
whose version is lower shows the plugin as broken, and says so.

Names are imported when they are first asked for: a manifest needs `Plugin`, and neither numpy nor pydantic. Pages and
panels of the window have their own place, `labconsole_ui.panels.plugin_page` and `labconsole_ui.panels.trial_panel`:
the core never imports Qt.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from labconsole.analysis.answers import Answer as Answer
    from labconsole.analysis.answers import AnswerBar as AnswerBar
    from labconsole.analysis.change import Judgement as Judgement
    from labconsole.analysis.columns import RunGroup as RunGroup
    from labconsole.analysis.report_outline import OutlineChapter as OutlineChapter
    from labconsole.analysis.report_outline import ReportOutline as ReportOutline
    from labconsole.analysis.report_outline import VerdictList as VerdictList
    from labconsole.analysis.table_shape import ShapeColumn as ShapeColumn
    from labconsole.analysis.table_shape import ShapeRow as ShapeRow
    from labconsole.analysis.table_shape import TableShape as TableShape
    from labconsole.cli.command import Command as Command
    from labconsole.cli.exit_codes import BAD_USAGE as BAD_USAGE
    from labconsole.cli.exit_codes import CANCELLED as CANCELLED
    from labconsole.cli.exit_codes import CHECK_FAILED as CHECK_FAILED
    from labconsole.cli.exit_codes import FAILED as FAILED
    from labconsole.cli.exit_codes import FINISHED as FINISHED
    from labconsole.clock import now_ns as now_ns
    from labconsole.clock import wall_now as wall_now
    from labconsole.clock import wall_offset_ns as wall_offset_ns
    from labconsole.clock import wall_time as wall_time
    from labconsole.doctor import Check as Check
    from labconsole.engine.protocol import LiveFrame as LiveFrame
    from labconsole.errors import UserError as UserError
    from labconsole.model.console_part import TRIAL_ID as TRIAL_ID
    from labconsole.model.console_part import ConsolePart as ConsolePart
    from labconsole.model.metrics import FULL_SPEED as FULL_SPEED
    from labconsole.model.metrics import LINK_RATE as LINK_RATE
    from labconsole.model.metrics import LINK_USE as LINK_USE
    from labconsole.model.metrics import OFFERED_RATE as OFFERED_RATE
    from labconsole.model.metrics import Direction as Direction
    from labconsole.model.metrics import Evaluation as Evaluation
    from labconsole.model.metrics import Metric as Metric
    from labconsole.model.metrics import MetricKind as MetricKind
    from labconsole.model.metrics import Question as Question
    from labconsole.model.metrics import Ranking as Ranking
    from labconsole.model.metrics import ServiceLevel as ServiceLevel
    from labconsole.model.metrics import Verdict as Verdict
    from labconsole.model.metrics import VerdictKind as VerdictKind
    from labconsole.model.operation import Confirmation as Confirmation
    from labconsole.model.operation import Operation as Operation
    from labconsole.model.operation import OperationContext as OperationContext
    from labconsole.model.operation import Result as Result
    from labconsole.model.operation import TextTable as TextTable
    from labconsole.model.operation import Tone as Tone
    from labconsole.model.operation import TonedText as TonedText
    from labconsole.model.parameters import STORED as STORED
    from labconsole.model.parameters import Parameters as Parameters
    from labconsole.model.parameters import parameter as parameter
    from labconsole.model.plugin import API_VERSION as API_VERSION
    from labconsole.model.plugin import OperationEntry as OperationEntry
    from labconsole.model.plugin import Plugin as Plugin
    from labconsole.model.plugin import PluginPage as PluginPage
    from labconsole.model.role import Role as Role
    from labconsole.model.role import RoleContext as RoleContext
    from labconsole.model.role import SeriesWriter as SeriesWriter
    from labconsole.model.series import BYTES as BYTES
    from labconsole.model.series import REMEDY as REMEDY
    from labconsole.model.series import Attachment as Attachment
    from labconsole.model.series import Column as Column
    from labconsole.model.series import Event as Event
    from labconsole.model.series import Level as Level
    from labconsole.model.series import LiveChannel as LiveChannel
    from labconsole.model.series import LiveKind as LiveKind
    from labconsole.model.series import Origin as Origin
    from labconsole.model.series import Series as Series
    from labconsole.model.trial import Curve as Curve
    from labconsole.model.trial import DerivedTable as DerivedTable
    from labconsole.model.trial import Distribution as Distribution
    from labconsole.model.trial import RoleHandle as RoleHandle
    from labconsole.model.trial import RoleSpec as RoleSpec
    from labconsole.model.trial import RunContext as RunContext
    from labconsole.model.trial import Samples as Samples
    from labconsole.model.trial import Trial as Trial
    from labconsole.model.trial_command import TrialCommand as TrialCommand
    from labconsole.paths import data_dir as data_dir
    from labconsole.profiles.timing_profile import TimingProfile as TimingProfile
    from labconsole.profiles.timing_profile import load_timing as load_timing
    from labconsole.security.secrets import Secret as Secret
    from labconsole.security.secrets import SecretRefusedError as SecretRefusedError
    from labconsole.security.secrets import SecretRequest as SecretRequest
    from labconsole.security.secrets import SecretSource as SecretSource
    from labconsole.store.database_file import DatabaseKind as DatabaseKind
    from labconsole.store.database_file import DatabaseReader as DatabaseReader
    from labconsole.store.errors import StoreError as StoreError
    from labconsole.store.rows import Rows as Rows
    from labconsole.store.writer import Writer as Writer

PLACES = {
    "labconsole.model.operation": "Confirmation Operation OperationContext Result TextTable Tone TonedText",
    "labconsole.analysis.answers": "Answer AnswerBar",
    "labconsole.analysis.change": "Judgement",
    "labconsole.analysis.columns": "RunGroup",
    "labconsole.analysis.report_outline": "OutlineChapter ReportOutline VerdictList",
    "labconsole.analysis.table_shape": "ShapeColumn ShapeRow TableShape",
    "labconsole.cli.command": "Command",
    "labconsole.cli.exit_codes": "BAD_USAGE CANCELLED CHECK_FAILED FAILED FINISHED",
    "labconsole.clock": "now_ns wall_now wall_offset_ns wall_time",
    "labconsole.doctor": "Check",
    "labconsole.engine.protocol": "LiveFrame",
    "labconsole.errors": "UserError",
    "labconsole.paths": "data_dir",
    "labconsole.model.plugin": "API_VERSION OperationEntry Plugin PluginPage",
    "labconsole.model.role": "Role RoleContext SeriesWriter",
    "labconsole.security.secrets": "Secret SecretRefusedError SecretRequest SecretSource",
    "labconsole.model.series": "BYTES REMEDY Attachment Column Event Level LiveChannel LiveKind Origin Series",
    "labconsole.store.database_file": "DatabaseKind DatabaseReader",
    "labconsole.store.errors": "StoreError",
    "labconsole.store.rows": "Rows",
    "labconsole.store.writer": "Writer",
    "labconsole.profiles.timing_profile": "TimingProfile load_timing",
    "labconsole.model.console_part": "TRIAL_ID ConsolePart",
    "labconsole.model.metrics": (
        "FULL_SPEED LINK_RATE LINK_USE OFFERED_RATE Direction Evaluation Metric MetricKind Question Ranking "
        "ServiceLevel Verdict VerdictKind"
    ),
    "labconsole.model.trial": "Curve DerivedTable Distribution RoleHandle RoleSpec RunContext Samples Trial",
    "labconsole.model.trial_command": "TrialCommand",
    "labconsole.model.parameters": "STORED Parameters parameter",
}
"""Module -> the names that are imported from it; a test holds them and the imports for type checkers together."""

if not TYPE_CHECKING:  # a type checker would take any name for one that is here

    def __getattr__(name: str) -> object:
        for module, names in PLACES.items():
            if name in names.split():
                value = globals()[name] = getattr(import_module(module), name)
                return value
        raise AttributeError(f"module {__name__} has no attribute {name}")

    def __dir__() -> list[str]:
        return sorted(name for names in PLACES.values() for name in names.split())
