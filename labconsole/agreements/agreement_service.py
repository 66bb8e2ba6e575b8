"""A console without a window that serves its agreements: runs each once, exchanges signed bundles, merges the runs.

What it has done is read from the run database and from what it has noted of each agreement (`Served`), so that it goes
through the same steps after a restart, and never runs an agreement a second time.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from filelock import FileLock, Timeout
from pydantic import ValidationError

from labconsole.agreements.agreed_runs import departures
from labconsole.agreements.agreement_files import (
    Served,
    agreed_ids,
    agreed_proposal,
    keep_served,
    other_signer,
    proposed_here,
    served,
)
from labconsole.agreements.documents import Proposal
from labconsole.agreements.exchange_folder import ExchangeFolder
from labconsole.agreements.signed_bundles import write_signed_bundle
from labconsole.clock import wall_now
from labconsole.engine.protocol import LiveFrame
from labconsole.engine.queue import QueueItem, RunQueue
from labconsole.errors import UserError
from labconsole.model.operation import OperationContext, conduct
from labconsole.model.plugin import Plugins
from labconsole.model.series import Event, Level
from labconsole.model.trial import TRIAL_ID
from labconsole.paths import agreements_dir
from labconsole.profiles.campaign_run import run_campaign
from labconsole.profiles.needed_secrets import needed_secrets
from labconsole.profiles.profile import campaign_of, load_profile
from labconsole.security.pki.reader import PkiReader
from labconsole.security.pki.signing_identities import Signer, signing_identity
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.secrets import Secret, SecretRequest, missing_secrets
from labconsole.store.backups import back_up
from labconsole.store.reader import Reader
from labconsole.store.records import NewCampaign, RunRow, RunStatus

_LOOK_S = 1.0
_STEP_S = 0.25
_AGAIN_S = 30.0
"""The pause before a step that was refused is tried again."""
LATE = timedelta(minutes=5)
"""How late a run may begin: as long as consoles wait for each other by default."""


@dataclass(frozen=True)
class _Agreed:
    """An agreement, and the other console's signer, judged now."""

    proposal: Proposal
    other: Signer
    role: str
    """What this console plays."""
    other_role: str

    @property
    def id(self) -> str:
        return self.proposal.id

    @property
    def by_hand(self) -> str:
        """The rest of a sentence on a run that this agent does not do."""
        return f"It is not run again by itself: `labconsole run {self.id}` does so."


def agreed_secrets() -> tuple[SecretRequest, ...]:
    """The secrets that the agreements need that no agent has begun."""
    plugins = Plugins.discover()
    found: list[SecretRequest] = []
    for id in agreed_ids():
        with suppress(UserError):  # its file or profile is damaged, which the agent reports; it serves the others
            if not served(id).begun:
                found += needed_secrets(load_profile(id, plugins).scenarios, plugins)
    return tuple(found)


@dataclass
class AgreementService:
    """Serves the agreements of this console with the owners that share a folder, until it is asked to stop."""

    folder: Path
    identity: str
    """Name of the identity that signs bundles; looked up for each, so that it may be rotated meanwhile."""
    database: Path
    context: OperationContext
    _plugins: Plugins = field(default_factory=Plugins.discover)
    _said: dict[str, str] = field(default_factory=dict)
    """The newest sentence on each agreement and file."""
    _again_s: dict[str, float] = field(default_factory=dict)
    """When a refused step of an agreement is tried again (`time.monotonic`)."""
    _announced: set[str] = field(default_factory=set)
    """Agreements of which it is reported that they wait for their time."""
    _complete: set[str] = field(default_factory=set)
    _unmerged: set[tuple[str, str]] = field(default_factory=set)
    """Pairs of runs whose merge was refused."""

    def serve(self) -> None:
        """Serve until `context.stop_requested`. Raises UserError: identity, folder or database cannot be used."""
        signer = signing_identity(self.identity)
        with _only_agent(), PkiReader.open() as certificates:
            folder = ExchangeFolder(self.folder, self.database, self._plugins)
            self._recover()
            self.context.say(
                f"Serves agreements over {self.folder}, signing as {signer.name} of {signer.state.name}, until it is "
                "stopped. It accepts and concludes nothing: a person does."
            )
            while not self.context.stop_requested:
                snapshot = certificates.snapshot()
                for about, sentence in folder.news(snapshot):
                    self._say(about, sentence)
                waiting = [id for id in agreed_ids() if id not in self._complete]
                for id in waiting:
                    self._serve(id, snapshot)
                if not waiting:
                    self._say("", "No agreement is open: waits for one that a person accepts or concludes.")
                self._pause()

    def _serve(self, id: str, snapshot: Snapshot) -> None:
        """Do the next step of an agreement, or report what it waits for."""
        if self.context.stop_requested or time.monotonic() < self._again_s.get(id, 0.0):
            return
        try:
            state, proposal = served(id), agreed_proposal(id)
            if state.merged or proposal is None:
                self._complete.add(id)
                return
            roles = proposal.proposer.role, proposal.accepter.role
            agreed = _Agreed(proposal, other_signer(id, snapshot), *(roles if proposed_here(id) else roles[::-1]))
            own, theirs = self._runs(agreed)
            if state.begun:
                self._exchange(agreed, state, own, theirs)
            elif own:
                self._complete.add(id)
                self._say(id, f"Agreement {id}: run {own[0].id} was begun by a person, who also exchanges its results.")
            else:
                self._begin(agreed)
        except UserError as error:
            self._again_s[id] = time.monotonic() + _AGAIN_S
            self._say(id, f"Agreement {id}: {error}")

    def _runs(self, agreed: _Agreed) -> tuple[list[RunRow], list[RunRow]]:
        """The runs of an agreement, newest first: those made here, and those that finished on the other console."""
        with closing(Reader(self.database)) as reader:
            rows = reader.of_parameter(agreed.proposal.kind, TRIAL_ID, agreed.id)
        own = [row for row in rows if row.owner is not None]  # what is imported or merged has no process
        finished = [row for row in rows if row.owner is None and row.status is RunStatus.FINISHED]
        return own, [row for row in finished if self._role(row) == agreed.other_role]

    def _role(self, row: RunRow) -> str:
        """What the console of a run has played; empty where it played all of it, or another version ran it."""
        trial = self._plugins.trial(row.kind)
        try:
            part = trial.console_part(trial.parameters.of_stored(row.parameters))
        except ValidationError:
            return ""
        return "" if part is None else part.role

    def _begin(self, agreed: _Agreed) -> None:
        """Run an agreement, once it begins. Raises UserError: it is not run, or not yet."""
        id, starts = agreed.id, agreed.proposal.starts
        if starts is not None and wall_now() < starts:
            if id not in self._announced:
                self._announced.add(id)
                self._say(
                    id, f"Agreement {id}: waits until {starts:%Y-%m-%d %H:%M:%S} UTC, to play {agreed.role} then."
                )
                self._scenario(agreed)  # what is wrong with it is reported in time
            return
        until = agreed.proposal.valid_until if starts is None else starts + LATE
        if wall_now() > until:
            raise UserError(
                f"Its time has passed ({until:%Y-%m-%d %H:%M:%S} UTC at the latest): this agent was not there, or ran "
                f"another agreement. {agreed.by_hand}"
            )
        if not agreed.other.trusted:
            raise UserError(f"Not run, since the other owner is no longer trusted. {agreed.other.sentence}")
        campaign, secrets = self._scenario(agreed)
        keep_served(id, Served(begun=f"{wall_now():%Y-%m-%d %H:%M:%S}"))
        self._say(id, f"Agreement {id}: runs now, as {agreed.role}.")
        self._run(campaign, secrets)

    def _scenario(self, agreed: _Agreed) -> tuple[NewCampaign, dict[str, Secret]]:
        """What runs, with the secrets that were asked for.

        Raises UserError: it is not what was agreed upon, or a passphrase is missing.
        """
        profile = load_profile(agreed.id, self._plugins)
        trial = self._plugins.trial(profile.kind)
        for scenario in profile.scenarios:
            departed = departures(trial, scenario.parameters)
            if departed is None or departed:
                reason = " ".join(departed or ("It has another trial id.",))
                raise UserError(f"Not run, since the profile {agreed.id} is not as agreed upon. {reason}")
        entered: dict[str, Secret] = {}
        for request in missing_secrets(needed_secrets(profile.scenarios, self._plugins)):
            secret = self.context.secret(request.key)
            if secret is None:
                raise UserError(
                    f"There is no passphrase for {request.purpose}: store it in the keyring or a passphrase file, or "
                    "start this agent again on a terminal, where it asks for it."
                )
            entered[request.key] = secret
        return campaign_of(profile), entered

    def _run(self, campaign: NewCampaign, secrets: Mapping[str, Secret]) -> None:
        wakeup = threading.Event()
        with closing(RunQueue(self.database, live_hz=0.0, wake=wakeup.set)) as queue:
            run_campaign(queue, campaign, secrets, _Reports(self.context), lambda: self.context.stop_requested, wakeup)
        back_up(self.database)

    def _exchange(self, agreed: _Agreed, state: Served, own: list[RunRow], theirs: list[RunRow]) -> None:
        """Do what follows the run: export, and merge once the other bundle is here. Raises UserError."""
        finished = next((row for row in own if row.status is RunStatus.FINISHED and not row.trashed), None)
        if finished is None:
            self._say(agreed.id, f"Agreement {agreed.id}: {_unfinished(agreed, state, own)}")
        elif state.sent != finished.uuid:
            self._export(agreed, state, finished)
        elif not theirs:
            self._say(
                agreed.id,
                f"Agreement {agreed.id}: waits for the signed bundle of {agreed.other.title} in {self.folder}.",
            )
        elif (finished.uuid, theirs[0].uuid) not in self._unmerged:
            self._merge(agreed, state, finished, theirs[0])

    def _export(self, agreed: _Agreed, state: Served, run: RunRow) -> None:
        identity = signing_identity(self.identity)
        name = f"{agreed.id}-{agreed.role}-{run.uuid[:8]}.lcz"
        secret = self.context.secret(identity.secret.key)
        try:  # in a folder of its own: another owner's link under the name of a file would be followed
            with (
                tempfile.TemporaryDirectory(prefix=".", dir=self.folder) as own,
                closing(Reader(self.database)) as reader,
            ):
                signature = write_signed_bundle(reader, [run.id], Path(own) / name, identity, lambda _purpose: secret)
                for file in (Path(own) / name, signature):
                    file.replace(self.folder / file.name)
        except OSError as error:
            raise UserError(f"{name} cannot be written to {self.folder} ({error.strerror}): check it.") from error
        keep_served(agreed.id, state.model_copy(update={"sent": run.uuid}))
        failed = f" Its data fail a check: {' '.join(run.failed_checks)}" if run.failed_checks else ""
        self._say(
            agreed.id,
            f"Agreement {agreed.id}: run {run.id} has finished, and is in {name} and {name}.p7s for "
            f"{agreed.other.title}.{failed}",
        )

    def _merge(self, agreed: _Agreed, state: Served, own: RunRow, theirs: RunRow) -> None:
        name = self._plugins.trial(agreed.proposal.kind).merge_operation
        if name:
            merge = self._plugins.operation(name)
            values = {"run": own.id, "other": theirs.id, "db": self.database}
            try:
                result = conduct(merge, merge.parameters.model_validate(values), self.context)
            except UserError:
                self._unmerged.add((own.uuid, theirs.uuid))
                raise
            said = (*(part for part in result.parts if isinstance(part, str)), *result.warnings)
        else:
            said = (f"Runs {own.id} and {theirs.id} are those of both consoles; their trial has no merge.",)
        keep_served(agreed.id, state.model_copy(update={"merged": theirs.uuid}))
        for sentence in said:
            self.context.say(f"Agreement {agreed.id}: {sentence}")

    def _recover(self) -> None:
        """End the runs of consoles that died, and create the database where there is none."""
        with closing(RunQueue(self.database)) as queue:
            queue.recover()
            while queue.busy and not self.context.stop_requested:
                queue.pump()
                time.sleep(_STEP_S)

    def _say(self, about: str, sentence: str) -> None:
        """Report a sentence, unless it was the newest one on the same agreement or file."""
        if self._said.get(about) != sentence:
            self._said[about] = sentence
            self.context.say(sentence)

    def _pause(self) -> None:
        until_s = time.monotonic() + _LOOK_S
        while not self.context.stop_requested and time.monotonic() < until_s:
            time.sleep(_STEP_S)


@contextmanager
def _only_agent() -> Iterator[None]:
    """Raises UserError: another process serves the agreements of this console."""
    try:
        with FileLock(agreements_dir() / ".serving.lock", timeout=0, mode=0o600):
            yield
    except Timeout:
        raise UserError("Another agent serves the agreements of this console: stop that one first.") from None


def _unfinished(agreed: _Agreed, state: Served, own: list[RunRow]) -> str:
    """The state of an agreement that was begun, and has no run that finished."""
    if not own:
        return f"begun at {state.begun} UTC, and no run of it is in the database. {agreed.by_hand}"
    newest = own[0]
    if not newest.status.final:
        return f"waits for run {newest.id}, which is {newest.status}."
    return f"run {newest.id} {newest.status}: {newest.reason} {agreed.by_hand}"


class _Reports:
    """`CampaignListener` that reports what an operator should know, in sentences."""

    def __init__(self, context: OperationContext) -> None:
        self._context = context
        self._waited_for = 0

    def waiting_for(self, other: QueueItem | None) -> None:
        """Report once for each run of another console that has to finish first."""
        if other is not None and other.run_id != self._waited_for:
            self._waited_for = other.run_id
            self._context.say(f"Waits for run {other.run_id} ({other.scenario}) of another console to finish.")

    def report(self, run_id: int, item: QueueItem | None) -> None:
        """The service reports the end, from the database."""

    def items_changed(self) -> None:
        """Nothing that is reported."""

    def live(self, run_id: int, frame: LiveFrame) -> None:
        """Nothing that is reported."""

    def event(self, run_id: int, event: Event) -> None:
        """Report warnings and errors."""
        if event.level is not Level.INFO:
            self._context.say(f"Run {run_id}: {event.message}")

    def log(self, run_id: int, line: str) -> None:
        """Report a line of output."""
        self._context.say(f"Run {run_id}: {line}")

    def finished(self, run_id: int, status: RunStatus) -> None:
        """The service reports the end, from the database."""
