"""`labconsole merge`: the runs of two consoles, sender and receiver of one trial, as one run."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from pydantic import ValidationError

from labconsole import __version__
from labconsole.analysis.number_format import format_metric
from labconsole.cli.database import RunDatabase, open_database
from labconsole.clock_comparison import Offset
from labconsole.errors import UserError
from labconsole.model.operation import Operation, OperationContext, Result
from labconsole.model.parameters import Parameters, parameter
from labconsole.model.validation_faults import fault_sentence
from labconsole.paths import database_path
from labconsole.store.evidence.checking import verify
from labconsole.store.reader import Reader
from labconsole.store.records import RunStatus
from labconsole.store.run_store import Store
from labconsole.store.run_transfer import MergedRun, add_merged_run
from labconsole_amqp.choices import Mode
from labconsole_amqp.merging.merged_samples import BothEnds, End
from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.trial.amqp_trial import AmqpTrial

_NAMESPACE = uuid.UUID("5a0f6a3e-2f1b-4c86-9d0e-3b8a1c7d9e42")
_SHOWN = ("lost", "duplicated", "latency_mean", "queue_time_mean", "clock_offset", "clock_uncertainty")

_LOOKED_AT = 100
_OTHER_END = {"sender": "receiver", "receiver": "sender"}


class MergeParameters(Parameters):
    """The two runs."""

    run: int = parameter("Run", "Number of the run of one console", ge=1, positional=True, metavar="RUN")
    other: int = parameter(
        "Other run",
        "Number of the run of the other console, whose bundle was imported",
        ge=1,
        positional=True,
        metavar="OTHER",
    )
    db: RunDatabase = None


class MergeRuns(Operation[MergeParameters]):
    """Merges the runs of a console that played the sender and one that played the receiver."""

    name: ClassVar[str] = "amqp.merge"
    title: ClassVar[str] = "Merge two consoles' runs"
    description: ClassVar[str] = (
        "Makes one run of the runs of two consoles that played sender and receiver of one trial: with the latency of "
        "each message, the receiver's times corrected by the offset of the clocks. Import the other console's bundle "
        "first. Both runs stay as they are."
    )
    parameters: ClassVar[type[Parameters]] = MergeParameters
    writes: ClassVar[tuple[str, ...]] = ("runs",)

    def run(self, parameters: MergeParameters, context: OperationContext) -> Result:
        database = parameters.db or database_path()
        with open_database(database) as reader, Store.open(database) as store:
            both = BothEnds.of(_end(reader, parameters.run), _end(reader, parameters.other))
            owners = _owners(reader, both)
            run_id, new = add_merged_run(store, _merged(reader, both))
        with Reader(database) as reader:
            row, evidence = reader.run(run_id).row, reader.evidence(run_id)
        digest = evidence.digest if evidence is not None else ""
        figures = [row.metrics[name] for name in _SHOWN if name in row.metrics]
        shown = ", ".join(f"{one.name.replace('_', ' ')} {format_metric(one)}" for one in figures)
        done = f"Run {run_id} is runs {both.sender.detail.row.id} and {both.receiver.detail.row.id} merged"
        sentence = f"{done}: {shown}." if new else f"{done} already: nothing was changed."
        data = {"run": run_id, "new": new, "trial": both.sender.trial, "evidence": digest, "signers": owners.signers}
        return Result((sentence, *owners.sentences), data, (*row.failed_checks, *owners.warnings))


def newest_pair(database: Path) -> tuple[int, int] | None:
    """The newest runs of sender and receiver of one session, not older than `_LOOKED_AT` runs; None without.

    Raises StoreError.
    """
    found: dict[tuple[str, Offset, str], int] = {}
    with Reader(database) as reader:
        for row in reader.runs()[:_LOOKED_AT]:
            mode = str(row.parameters.get("mode"))
            if row.kind != AmqpTrial.kind or row.status is not RunStatus.FINISHED or mode not in _OTHER_END:
                continue
            try:
                parameters = AmqpParameters.of_stored(row.parameters)
            except ValidationError:  # those of another version of the console
                continue
            end = End(reader.run(row.id), reader.samples(row.id), parameters)
            if not end.trial or end.clocks is None:
                continue
            session = end.trial, end.clocks.before
            found.setdefault((*session, mode), row.id)
            if (*session, _OTHER_END[mode]) in found:
                return found[*session, Mode.SENDER.value], found[*session, Mode.RECEIVER.value]
    return None


def _end(reader: Reader, run_id: int) -> End:
    """A run that is as it was sealed. Raises UserError."""
    detail = reader.run(run_id)
    row = detail.row
    if row.kind != AmqpTrial.kind:
        raise UserError(f"Run {run_id} is of {row.kind}: runs of {AmqpTrial.kind} can be merged.")
    if row.status is not RunStatus.FINISHED:
        raise UserError(f"Run {run_id} is {row.status.value}: both runs must have finished. Run the trial again.")
    if faults := verify(reader, run_id).faults:
        raise UserError(f"{faults[0]} Import its bundle again, into a new database.")
    try:
        parameters = AmqpParameters.of_stored(row.parameters)
    except ValidationError as error:
        raise UserError(
            f"Run {run_id} has parameters of another version of the console: {fault_sentence(error, AmqpParameters)}"
        ) from error
    return End(detail, reader.samples(run_id), parameters)


def _merged(reader: Reader, both: BothEnds) -> MergedRun:
    rows = both.sender.detail.row, both.receiver.detail.row
    parameters, trial = both.parameters, AmqpTrial()
    payloads = {_payloads(reader, row.id) for row in rows}
    if len(payloads) > 1:
        raise UserError("The two runs had different payloads: run both consoles again with the same one.")
    made = (
        f"Merged from run {rows[0].uuid} (sender) and run {rows[1].uuid} (receiver); the receiver's times are "
        "corrected by the offset of the clocks."
    )
    sender, receiver = rows
    assert sender.started and receiver.started and sender.ended and receiver.ended
    return MergedRun(
        uuid=str(uuid.uuid5(_NAMESPACE, f"{sender.uuid} {receiver.uuid}")),
        kind=AmqpTrial.kind,
        name=f"{sender.scenario} (both consoles)",
        title=f"Trial {both.sender.trial}, both consoles",
        parameters=parameters.model_dump(mode="json"),
        seed=sender.seed,
        started=min(sender.started, receiver.started),
        ended=max(sender.ended, receiver.ended),
        provenance=_provenance(reader, both),
        warnings=[made, *trial.warnings(parameters)],
        definitions=both.definitions,
        roles=both.stored_roles(),
        events=both.event_records(),
        chunks=both.chunks(),
        artefacts=list(_artefacts(reader, both)),
        evaluation=trial.evaluate(parameters, both, both.events),
    )


@dataclass
class _Owners:
    """Who signed the bundles of the two runs, and whether the runs were as agreed upon."""

    sentences: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    signers: dict[str, str] = field(default_factory=dict)
    """By end."""


def _owners(reader: Reader, both: BothEnds) -> _Owners:
    """Raises UserError: a run is not as it was signed."""
    # The window imports this module when it starts, and both need the certificate layer.
    from labconsole.agreements.agreed_runs import departures
    from labconsole.agreements.signed_bundles import signer_of_run

    owners, trial = _Owners(), AmqpTrial()
    for end in (both.sender, both.receiver):
        row, evidence = end.detail.row, reader.evidence(end.detail.row.id)
        signer = signer_of_run(row.uuid, evidence.digest if evidence is not None else "")
        if signer is not None:
            owners.signers[end.name] = signer.title
            said = owners.sentences if signer.trusted else owners.warnings
            said.append(f"Run {row.id} ({end.name}) came in a signed bundle. {signer.sentence}")
        try:
            departed = departures(trial, row.parameters)
        except UserError as error:  # the agreement's files are of another version: the runs can be merged nevertheless
            owners.warnings.append(str(error))
            continue
        if departed == ():
            owners.sentences.append(f"Run {row.id} ({end.name}) was as agreed upon in {both.sender.trial}.")
        owners.warnings += [f"Run {row.id} ({end.name}): {one}" for one in departed or ()]
    return owners


def _payloads(reader: Reader, run_id: int) -> tuple[bytes, ...]:
    """The hash of each payload of a run."""
    return tuple(line.split()[0] for line in reader.artefact(run_id, "payload.sha256").splitlines())


def _provenance(reader: Reader, both: BothEnds) -> dict[str, Any]:
    """Both runs by uuid and digest, and what each was measured with."""
    sender, receiver = both.sender.detail, both.receiver.detail
    return {
        "console": __version__,
        "host": f"{sender.provenance.get('host')} (sender), {receiver.provenance.get('host')} (receiver)",
        "clock": "the sender's; the receiver's times are corrected by the measured offset",
        "wall_offset_ns": sender.provenance.get("wall_offset_ns", 0),
        "seed": sender.row.seed,
        "trial": both.sender.trial,
        "sender": _surroundings(reader, both.sender),
        "receiver": _surroundings(reader, both.receiver),
    }


def _surroundings(reader: Reader, end: End) -> dict[str, Any]:
    evidence = reader.evidence(end.detail.row.id)
    found = {"run": end.detail.row.uuid, "evidence": evidence.digest if evidence is not None else ""}
    for name, value in end.detail.provenance.items():
        nested = isinstance(value, Mapping)
        found[name] = ", ".join(f"{key} {one}" for key, one in value.items()) if nested else value
    return found


def _artefacts(reader: Reader, both: BothEnds) -> Iterator[tuple[str, str, bytes]]:
    for end in (both.sender, both.receiver):
        run_id = end.detail.row.id
        for kept in reader.artefacts(run_id):
            yield f"{end.name}.{kept.name}", kept.media_type, reader.artefact(run_id, kept.name)
