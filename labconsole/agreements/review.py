"""Review of a proposal by the console that would accept it: what it would run, and every reason to refuse it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic import ValidationError

from labconsole.agreements.documents import Proposal, Received, received
from labconsole.analysis.number_format import format_figure
from labconsole.analysis.parameter_texts import describe_parameters, in_effect
from labconsole.clock import wall_now
from labconsole.errors import BadInput, UserError
from labconsole.model.field_spec import fields_of
from labconsole.model.operation import TextTable, Tone, TonedText
from labconsole.model.plugin import Plugins
from labconsole.model.trial import TRIAL_ID, ConsolePart, Parameters, Trial
from labconsole.model.validation_faults import fault_sentence
from labconsole.security.pki.snapshot import Snapshot

CONFIRMED_DIGITS = 8
"""Digits of a proposal's SHA-256 that a person types."""
_AT_HOME = "It names files or identities of this console, which a proposal must not: do not accept it."


@dataclass(frozen=True)
class ConsoleRun:
    """What a console would run: its trial, complete parameters, and its part."""

    trial: Trial[Any]
    parameters: Parameters
    part: ConsolePart

    @property
    def values(self) -> dict[str, Any]:
        """The parameters as plain JSON."""
        return self.parameters.model_dump(mode="json")

    def with_own(self, settings: Mapping[str, Any]) -> ConsoleRun:
        """The same with this console's own parameters. Raises UserError: one is agreed upon, or does not fit."""
        if agreed := sorted(settings.keys() - self.part.own):
            own = ", ".join(sorted(self.part.own))
            raise UserError(f"{agreed[0]} is agreed upon by both ends: set only what is this console's own ({own}).")
        return console_run(self.trial, {**self.values, **settings})


def console_run(trial: Trial[Any], values: Mapping[str, Any]) -> ConsoleRun:
    """What a console with these parameters would run. Raises UserError: not one of two consoles, or refused."""
    try:
        parameters = trial.parameters.model_validate(dict(values))
    except ValidationError as error:
        raise BadInput(f"{trial.title} refuses the parameters: {fault_sentence(error, trial.parameters)}") from error
    part = trial.console_part(parameters)
    if part is None:
        raise UserError(
            f"{trial.title} with these parameters runs on one console alone: choose a scenario in which this console "
            "plays one end of two."
        )
    return ConsoleRun(trial, parameters, part)


def counterpart_of(run: ConsoleRun) -> ConsoleRun:
    """What the other console runs. Raises UserError: it cannot, or needs what only this console has."""
    try:
        other = run.trial.counterpart(run.parameters)
    except ValidationError as error:
        raise UserError(f"The other console cannot run it: {fault_sentence(error, run.trial.parameters)}") from error
    if other is None:
        raise UserError(f"{run.trial.title} has no counterpart on another console: choose a trial of two consoles.")
    return console_run(run.trial, other.model_dump(mode="json"))


@dataclass(frozen=True)
class Review:
    """A proposal as the reviewing console sees it."""

    received: Received[Proposal]
    run: ConsoleRun | None
    """None where it cannot run it: `refusals` say why."""
    refusals: tuple[str, ...]
    """Reasons to refuse it, one sentence each; the most important first."""

    @property
    def proposal(self) -> Proposal:
        """The proposal itself."""
        return self.received.document

    def accepted_run(self) -> ConsoleRun:
        """What this console would run. Raises BadInput: there is a reason to refuse the proposal."""
        if self.refusals or self.run is None:
            raise BadInput(self.refusals[0])
        return self.run

    def with_own(self, settings: Mapping[str, Any]) -> Review:
        """The same with this console's own parameters. Raises UserError."""
        return replace(self, run=self.accepted_run().with_own(settings)) if settings else self

    def sentences(self) -> Iterator[str]:
        """Who proposes what and when, and what this console would do."""
        proposal, signer = self.proposal, self.received.signer
        yield TonedText(signer.sentence, Tone.GOOD if signer.trusted else Tone.BAD)
        yield f"Agreement {proposal.id}: {proposal.title} ({proposal.kind}). SHA-256 {in_groups(self.received.sha256)}."
        yield (
            f"{self._proposer()} plays {proposal.proposer.role}, this console plays {proposal.accepter.role}. "
            f"{_when(proposal)}"
        )
        if self.run is not None:
            yield "What this console would do:"
            yield from (f"- {effect}" for effect in (*self.run.part.effects, *_disk(self.run)))

    def _proposer(self) -> str:
        """The State that signed, by its name on this console, and the name that it has for itself."""
        state, claimed = self.received.signer.state, self.proposal.proposer.state
        known = "An unknown State" if state is None else state.name
        return known if known == claimed else f"{known}, which calls itself {claimed},"

    def table(self) -> TextTable:
        """The parameters that have an effect, as the form has them."""
        return TextTable(("Group", "Parameter", "Value"), tuple(_rows(self.run)) if self.run is not None else ())


def in_groups(sha256: str) -> str:
    """A SHA-256 in groups of eight digits, of which a person confirms the first."""
    return " ".join(sha256[start : start + CONFIRMED_DIGITS] for start in range(0, len(sha256), CONFIRMED_DIGITS))


def review(data: bytes, snapshot: Snapshot, plugins: Plugins, observer: int | None = None) -> Review:
    """Review the signed proposal `data`, by State `observer` of this console, or any of its States.

    Raises BadInput: it is damaged, was changed, or cannot be read by this version.
    """
    found = received(data, Proposal, snapshot, observer)
    proposal, signer = found.document, found.signer
    refusals = []
    if not signer.trusted:
        refusals.append(f"The proposal is signed by {signer.title}, which is not trusted here: {signer.status.cause}")
    elif signer.state is not None and signer.state.local:
        refusals.append(f"{signer.state.name} of this console has signed the proposal: the other console accepts it.")
    if late := proposal.late(wall_now()):
        refusals.append(late)
    run = None
    try:
        run = proposed_run(proposal, plugins)
    except UserError as error:
        refusals.append(str(error))
    return Review(found, run, tuple(refusals))


def proposed_run(proposal: Proposal, plugins: Plugins) -> ConsoleRun:
    """What the accepter's console would run. Raises UserError: it is not what the trial of this console would send.

    Only parameters that are complete, and would be the same from a console of ours, are accepted: so nothing of a
    proposal can name a file, an identity or a secret of this console.
    """
    trial = plugins.installed(proposal.kind)
    if trial is None:
        raise BadInput(f"The trial {proposal.kind:.60} is not installed here: install the plugin that brings it.")
    run = console_run(trial, proposal.parameters)
    if run.values != proposal.parameters:
        raise BadInput("The proposal does not have all parameters of the trial: ask for one by the same version.")
    if run.values.get(TRIAL_ID) != proposal.id:
        raise BadInput("The trial id among the parameters is not that of the proposal: do not accept it.")
    theirs = counterpart_of(run)
    if counterpart_of(theirs).values != run.values:
        raise BadInput(_AT_HOME)
    if (run.part.role, theirs.part.role) != (proposal.accepter.role, proposal.proposer.role):
        raise BadInput("The proposal names other roles than its parameters: do not accept it.")
    return run


def _when(proposal: Proposal) -> str:
    starts = (
        "when both operators start it" if proposal.starts is None else f"at {proposal.starts:%Y-%m-%d %H:%M:%S} UTC"
    )
    return f"It begins {starts}. The proposal is valid until {proposal.valid_until:%Y-%m-%d %H:%M:%S} UTC."


def _disk(run: ConsoleRun) -> Iterable[str]:
    needed = run.trial.disk_bytes(run.parameters)
    return (f"Stores up to {format_figure(needed, 'B')} of samples.",) if needed else ()


def _rows(run: ConsoleRun) -> Iterator[tuple[str, str, str]]:
    values, model = run.values, type(run.parameters)
    labels = {spec.name: dict(spec.choices) for spec in fields_of(model)}
    for one in describe_parameters(values, model):
        if not in_effect(one.name, values, model):
            continue
        text = labels.get(one.name, {}).get(values.get(one.name), one.text)
        shown = f"{text} {one.unit}".strip() if text != "–" else text
        yield one.group, one.title, TonedText(shown, Tone.WARNING) if one.changed else shown
