"""The interface of a trial: it describes its parameters, series and metrics, conducts runs and evaluates them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

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
from labconsole.model.series import BYTES as BYTES
from labconsole.model.series import FILE_NAME as FILE_NAME
from labconsole.model.series import REMEDY as REMEDY
from labconsole.model.series import Attachment as Attachment
from labconsole.model.series import Column as Column
from labconsole.model.series import Event as Event
from labconsole.model.series import Level as Level
from labconsole.model.series import LiveChannel as LiveChannel
from labconsole.model.series import LiveKind as LiveKind
from labconsole.model.series import Origin as Origin
from labconsole.model.series import Series as Series
from labconsole.model.series import numpy_type as numpy_type

if TYPE_CHECKING:
    from pathlib import Path

    from labconsole.model.parameters import STORED as STORED
    from labconsole.model.parameters import Parameters as Parameters
    from labconsole.model.trial_command import TrialCommand
    from labconsole.security.secrets import SecretRequest
else:

    def __getattr__(name: str) -> Any:
        """Import names that need pydantic on their first use: a role's process imports this module, and starts in
        half the time without."""
        if name not in ("STORED", "Parameters"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from labconsole.model import parameters

        return getattr(parameters, name)


@dataclass(frozen=True)
class Curve:
    """A line for the run view; curves of one `group` share a plot.

    `t_s` are seconds since T0 and `values` are in `unit`: arrays of equal length. `virtual` is set where a stored run
    is read: whether its series are simulated, so that `t_s` are of a virtual clock.
    """

    title: str
    group: str
    unit: str
    t_s: NDArray[np.float64]
    values: NDArray[np.float64]
    virtual: bool = False


@dataclass(frozen=True)
class Distribution:
    """Observations of one kind in a run, for ECDF and percentile plots: `values` in `unit`, in any order."""

    title: str
    unit: str
    values: NDArray[np.float64]


@dataclass(frozen=True)
class RoleSpec:
    """A role to start: `name` is unique in the run, `target` is `package.module:Class`, `settings` is plain JSON.

    Settings carry references to secrets, never secrets. `secrets` are those of `Trial.secrets` that the role may ask
    its context for. `files` are the local files that the role reads, by the key under which it asks for each
    (`RoleContext.file`): a payload, a CA's certificates, never a private key. They travel with the run: every role
    reads the content that the file had when the run first named it. `private_files` are files with encrypted private
    keys: read in place on this machine, and on another host kept in the memory of the role's process.
    """

    name: str
    target: str
    settings: Mapping[str, Any]
    secrets: tuple[SecretRequest, ...] = ()
    files: Mapping[str, Path] = field(default_factory=dict)
    private_files: Mapping[str, Path] = field(default_factory=dict)


@dataclass(frozen=True)
class DerivedTable:
    """A table that a trial derives from a run's samples.

    `parts` yields all `rows` again at each call, some thousands at a time; each part has the columns of `series`
    as arrays of equal length. The memory of an export does not grow with the run.
    """

    series: Series
    rows: int
    parts: Callable[[], Iterator[Mapping[str, NDArray[Any]]]]


class Samples(Protocol):
    """The stored samples of one run."""

    @property
    def definitions(self) -> int:
        """`Trial.definitions` at the time when the run was started: its figures keep those definitions."""

    def roles(self, series: str) -> list[str]:
        """Names of the roles that recorded `series`, sorted."""

    def table(self, series: str, role: str) -> dict[str, NDArray[Any]]:
        """All rows of one role's series: column name -> array of equal lengths (empty arrays without rows).

        A column of `BYTES` is an array of dtype `object` that holds a `bytes` for each row.
        """

    def parts(
        self, series: str, role: str, numbers: Collection[int] | None = None
    ) -> Iterator[dict[str, NDArray[Any]]]:
        """The same rows as `table` in the parts in which they are stored, one after the other; with `numbers` (from 0)
        only those."""


class RoleHandle(Protocol):
    """A started role, as the trial's `run` sees it."""

    @property
    def name(self) -> str:
        """The role's name."""

    @property
    def running(self) -> bool:
        """Whether the role's process is alive and has not reported its result."""

    @property
    def lost(self) -> bool:
        """Whether the role's process exited without a result: it crashed or was killed. Its trial may start another."""

    def ready(self, timeout_s: float = 30.0) -> dict[str, Any]:
        """Wait until the role is prepared and return what it reported (ports, say). Raises UserError."""

    def begin(self, at_ns: int) -> None:
        """Let the role start its work at `at_ns` (`clock.now_ns`)."""

    def command(self, command: Mapping[str, Any]) -> None:
        """Send a command into the role, which takes it with `RoleContext.take_command`; returns at once."""

    def report(self, timeout_s: float = 30.0) -> dict[str, Any]:
        """Wait for the role's next report (`RoleContext.report`). Raises UserError if it ends or is late."""

    def stop(self) -> None:
        """Ask the role to stop soon and drain; returns at once."""

    def finish(self, timeout_s: float = 30.0) -> dict[str, Any]:
        """Wait for the role to finish, and return its result. Raises UserError if it failed, died or is late."""


class RunContext(Protocol):
    """The interface of a trial's `run`, inside the worker process."""

    @property
    def seed(self) -> int:
        """Seed of all randomness in this run; recorded with it."""

    @property
    def stop_requested(self) -> bool:
        """Whether the operator asked to cancel."""

    @property
    def lead_ns(self) -> int:
        """What a time that roles are sent must lie further in the future, so that those on other hosts know it in time.

        0 where all roles are on this machine.
        """

    @property
    def clock_uncertainty_ns(self) -> int:
        """By how much a time between any two hosts of the run may be wrong; 0 where all roles are on this machine."""

    def start(self, role: RoleSpec, host: str | None = None) -> RoleHandle:
        """Start a role process on a host by name; `host` None: where the scenario wants it, this machine by default.

        Raises UserError: a file of the role cannot be read, is not a regular file, or holds a private key; no host is
        what the scenario asks for, or it does not answer.
        """

    def wait(
        self,
        roles: Sequence[RoleHandle],
        *,
        stall_s: float,
        reason: str,
        on_command: Callable[[dict[str, Any]], None] | None = None,
    ) -> None:
        """Wait until all `roles` ended. Returns early on cancel; raises UserError when one of them fails, or when
        nothing was counted for `stall_s` seconds (`reason` is then the sentence of the error).

        `on_command` is called, in the thread that waits, with each command sent to the trial's `run`, in the form of
        `take_command`; without it commands stay there to be taken.
        """

    def expect(self, total: int, channel: str, begin_ns: int) -> None:
        """Announce the work, for progress and ETA: `total` counts of live channel `channel`, from T0 on.

        `begin_ns` is T0 (`clock.now_ns`), as given to the roles by `RoleHandle.begin`.
        """

    def event(self, name: str, message: str, level: Level = Level.INFO, **data: Any) -> None:
        """Record something that happened, in one sentence."""

    def artefact(self, name: str, media_type: str, content: bytes) -> None:
        """Keep a small file with the run, as evidence (a certificate, a message as sent): never a secret.

        `name` is a file name of letters, digits and `. _ -`, unique in the run; `content` has 1,000,000 bytes at most.
        Raises UserError otherwise.
        """

    def attachment(self, name: str, media_type: str) -> Attachment:
        """Begin a file of any size that is kept with the run (a log, say): never a secret. `name` as in `artefact`,
        unique among the worker's attachments. Raises UserError otherwise."""

    def take_command(self) -> dict[str, Any] | None:
        """The next command that the operator sent to the trial's `run`, if any: `{"name": ..., "parameters": {...}}`,
        its parameters validated by the model that `Trial.commands` declares."""


P = TypeVar("P", bound="Parameters")
_FEW = 3


class Trial(ABC, Generic[P]):
    """A kind of trial: it describes itself, runs its roles, and evaluates what they recorded."""

    kind: ClassVar[str]
    title: ClassVar[str]
    description: ClassVar[str]
    parameters: ClassVar[type[Parameters]]
    series: ClassVar[tuple[Series, ...]]
    metrics: ClassVar[tuple[MetricKind, ...]]
    live: ClassVar[tuple[LiveChannel, ...]]
    key_metrics: ClassVar[tuple[str, ...]] = ()
    """Names of the metrics that lists of runs show, most important first; if empty, the first three of `metrics`."""
    finding_metrics: ClassVar[tuple[str, ...]] = ()
    """Names of the metrics on which findings are drawn; if empty, the key metrics."""
    definitions: ClassVar[int] = 1
    """Version of the metrics' definitions: raised when one changes, and stored with each run that is started."""
    service_level: ClassVar[ServiceLevel | None] = None
    commands: ClassVar[tuple[TrialCommand, ...]] = ()
    """Commands that the operator may send into a run in progress."""
    merge_operation: ClassVar[str] = ""
    """Name of the operation that makes one run of those of two consoles; its parameters are `run`, `other` and `db`."""
    on_hosts: ClassVar[bool] = False
    """Whether its roles run on any host: they read nothing of a disk but their files and private files."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Raises TypeError for a key or finding metric that is not among `metrics`."""
        super().__init_subclass__(**options)
        known = {kind.name for kind in getattr(cls, "metrics", ())}
        if undeclared := [name for name in (*cls.key_metrics, *cls.finding_metrics) if known and name not in known]:
            raise TypeError(f"{cls.__name__} names metrics that it does not declare: {', '.join(undeclared)}")

    @classmethod
    def key_kinds(cls) -> tuple[MetricKind, ...]:
        """The metrics that lists of runs show, the most important first."""
        kinds = {kind.name: kind for kind in cls.metrics}
        return tuple(kinds[name] for name in cls.key_metrics) or cls.metrics[:_FEW]

    def secrets(self, parameters: P) -> tuple[SecretRequest, ...]:
        """Secrets that a run may need; those without keyring entry and file are asked for before it starts."""
        return ()

    @abstractmethod
    def run(self, parameters: P, context: RunContext) -> None:
        """Conduct one run. Raises UserError when it cannot start or continue; its samples stay."""

    @abstractmethod
    def evaluate(self, parameters: P, samples: Samples, events: Sequence[Event]) -> Evaluation:
        """Metrics and verdicts from stored samples and events: pure and repeatable."""

    def curves(self, parameters: P, samples: Samples, events: Sequence[Event]) -> tuple[Curve, ...]:
        """Lines over time that explain the figures, from stored samples."""
        return ()

    def distributions(self, parameters: P, samples: Samples, events: Sequence[Event]) -> tuple[Distribution, ...]:
        """Observations whose distribution is worth comparing (latency, say), from stored samples."""
        return ()

    def contrast(self, reference: P, other: P) -> str:
        """The difference of `other` from `reference` in words ("TLS against plain"); empty unless they are a fair
        pair."""
        return ""

    def questions(self, reference: P, other: P) -> tuple[Question, ...]:
        """The questions that a fair pair (`contrast`) answers: a comparison begins with the answers."""
        return ()

    def ranking(self, parameters: Sequence[P]) -> Ranking | None:
        """The question that scenarios with these parameters answer together; None: there is none."""
        return None

    def comparable(self, reference: P, other: P) -> bool:
        """Whether a finding may compare the two by name although they are not a fair pair.

        False where their tasks differ.
        """
        return True

    def derived(self, parameters: P, samples: Samples, events: Sequence[Event]) -> tuple[DerivedTable, ...]:
        """Tables that an export holds in addition to the samples; their names differ from those of `series`."""
        return ()

    def role_names(self, parameters: P) -> tuple[str, ...]:
        """Names of the roles that a run starts, for the choice of their hosts; empty where they are not known before.

        Raises UserError: the parameters name something that is missing here.
        """
        return ()

    def leaves_idle_time(self, parameters: P) -> bool:
        """Whether the roles act at set times and need less than all cores.

        What records and watches the run then works only while a core is idle, and disturbs no role.
        """
        return False

    def disk_bytes(self, parameters: P) -> int:
        """The most bytes that a run's samples take on the disk of its database, 0 where that is not worth saying.

        A run that finds less room than that does not start.
        """
        return 0

    def warnings(self, parameters: P) -> tuple[str, ...]:
        """Caveats for a reader of the figures, one sentence each ("closed loop: latency includes queueing")."""
        return ()

    def console_part(self, parameters: P) -> ConsolePart | None:
        """The part of this console in a trial of two consoles; None: it plays all of it."""
        return None

    def counterpart(self, parameters: P) -> P | None:
        """What the other console runs, if this one has these parameters: with the same `TRIAL_ID`, and without names
        of identities and files that only this console has. None: there is no other console.

        Raises UserError: it needs something that only this console has.
        """
        return None

    def local_warnings(self, parameters: P) -> tuple[str, ...]:
        """Further caveats of a run whose roles are all on one computer."""
        return ()
