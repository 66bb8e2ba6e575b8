"""Agreements with another owner's console: propose a scenario, show one, accept it, and conclude the agreement."""

from __future__ import annotations

import re
import secrets
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import AfterValidator

from labconsole.clock import wall_now
from labconsole.errors import UserError
from labconsole.model.operation import Confirmation, HomePath, Operation, OperationContext, Result, Tone, TonedText
from labconsole.model.parameters import Parameters, parameter
from labconsole.security.secrets import Prompt, SecretRequest

if TYPE_CHECKING:
    from labconsole.agreements.review import ConsoleRun, Review
    from labconsole.security.pki.signing_identities import SigningIdentity


def _moment(text: str) -> str:
    if text:
        _as_moment(text)
    return text


def _as_moment(text: str) -> datetime:
    """A time as typed, in UTC where it names no zone. Raises ValueError."""
    try:
        moment = datetime.fromisoformat(text.strip().removesuffix("UTC").strip())
    except ValueError:
        raise ValueError("give a time as 2026-12-01 14:30, which is UTC, or with its offset, as +08:00") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC).replace(microsecond=0)


def _setting(text: str) -> str:
    if not re.match(r"[a-z_]+\s*=", text):
        raise ValueError("a setting is of the form KEY=VALUE")
    return text


MomentText = Annotated[str, AfterValidator(_moment)]
Setting = Annotated[str, AfterValidator(_setting)]


def _identity_field() -> Any:
    return parameter(
        "Identity",
        "Name of the identity on the page Certificates whose key signs: its certificate is for message signing, or a "
        "State's",
        min_length=1,
        max_length=64,
        metavar="NAME",
    )


def _file_field(title: str, description: str, *, new: bool = False, metavar: str = "FILE") -> Any:
    kind = "new-file" if new else "file"
    return parameter(title, description, positional=True, metavar=metavar, kind=kind)


def _settings_field(description: str) -> Any:
    return parameter("Settings", description, default=(), option="--set", metavar="KEY=VALUE")


def _signing_identity(name: str) -> SigningIdentity:
    from labconsole.security.pki.signing_identities import signing_identity

    return signing_identity(name)


def _prompt(identity: SigningIdentity, context: OperationContext) -> Prompt:
    """What gives the passphrase of the identity's key, for which the operator was asked before."""
    return lambda _purpose: context.secret(identity.secret.key)


class ProposeParameters(Parameters):
    """A scenario of a profile of this console, and when it begins."""

    profile: str = parameter(
        "Profile", "Name of a profile, or path of a TOML file", min_length=1, positional=True, metavar="PROFILE"
    )
    file: HomePath = _file_field("File", "Proposal to be written", new=True)
    identity: str = _identity_field()
    scenario: str = parameter(
        "Scenario", "Its name, where the profile has several", default="", empty="The profile's only one"
    )
    state: str = parameter(
        "With",
        "State that may accept it, by its name on this console; empty: any State that is trusted here",
        default="",
        option="--with",
        metavar="STATE",
        empty="Any trusted State",
    )
    starts: MomentText = parameter(
        "Begins",
        "When both consoles begin, in UTC: 2026-12-01 14:30; empty: when both operators start the run",
        default="",
        metavar="TIME",
        empty="When both operators start it",
    )
    valid_until: MomentText = parameter(
        "Valid until",
        "Until when it can be accepted, in UTC; empty: until it begins, else 7 days",
        default="",
        metavar="TIME",
        empty="Until it begins, else 7 days",
    )
    settings: tuple[Setting, ...] = _settings_field("Parameters of this console that differ from the profile's")


class Propose(Operation[ProposeParameters]):
    """Writes a signed proposal of a trial of two consoles."""

    name: ClassVar[str] = "agreements.propose"
    title: ClassVar[str] = "Propose a trial"
    description: ClassVar[str] = (
        "Writes a signed file with what another owner's console would run, which role each end plays, and when. The "
        "file has neither secrets nor names of identities and files of this console. Send it to the other owner, and "
        "conclude the agreement with the acceptance that comes back."
    )
    parameters: ClassVar[type[Parameters]] = ProposeParameters
    writes: ClassVar[tuple[str, ...]] = ("certificates",)

    def secrets(self, parameters: ProposeParameters) -> tuple[SecretRequest, ...]:
        return (_signing_identity(parameters.identity).secret,)

    def run(self, parameters: ProposeParameters, context: OperationContext) -> Result:
        from labconsole.agreements.agreement_files import keep_proposal
        from labconsole.agreements.documents import Party, Proposal, signed_pem
        from labconsole.agreements.review import counterpart_of
        from labconsole.agreements.scenarios import chosen_scenario, proposal_times, require_other_state
        from labconsole.model.trial import TRIAL_ID
        from labconsole.output.export_file import must_be_new_files

        must_be_new_files(parameters.file)
        identity = _signing_identity(parameters.identity)
        require_other_state(parameters.state)
        id = secrets.token_hex(8)
        chosen = chosen_scenario(parameters.profile, parameters.scenario, parameters.settings, {TRIAL_ID: id})
        run, other = chosen.run, counterpart_of(chosen.run)
        starts, valid_until = proposal_times(
            *(_as_moment(text) if text else None for text in (parameters.starts, parameters.valid_until))
        )
        proposal = Proposal(
            written=wall_now().replace(microsecond=0),
            id=id,
            title=chosen.title,
            kind=run.trial.kind,
            proposer=Party(state=identity.state.name, role=run.part.role),
            accepter=Party(state=parameters.state, role=other.part.role),
            starts=starts,
            valid_until=valid_until,
            parameters=other.values,
        )
        signed = signed_pem(proposal, identity, _prompt(identity, context))
        keep_proposal(id, signed, chosen.profile(id))
        _write_new(parameters.file, signed)
        return Result(
            (
                f"{parameters.file} is the proposal {id}, signed by {identity.name} of {identity.state.name}: send it "
                f"to the other owner. It can be accepted until {valid_until:%Y-%m-%d %H:%M:%S} UTC.",
                f"The other console would play {other.part.role}:",
                *(f"- {effect}" for effect in other.part.effects),
            ),
            {"id": id, "file": str(parameters.file), "role": run.part.role, "until": valid_until.isoformat()},
            tuple(_loopback_warnings(other)),
        )


class ShowParameters(Parameters):
    """A proposal."""

    file: HomePath = _file_field("File", "Proposal of another console")


class ShowProposal(Operation[ShowParameters]):
    """Shows a proposal, and whether it would be accepted."""

    name: ClassVar[str] = "agreements.show"
    title: ClassVar[str] = "Show a proposal"
    description: ClassVar[str] = (
        "Shows who signed a proposal and whether that is trusted here, what this console would run, connect to and "
        "store, and when; and every reason to refuse it."
    )
    parameters: ClassVar[type[Parameters]] = ShowParameters

    def run(self, parameters: ShowParameters, context: OperationContext) -> Result:
        seen = _reviewed(parameters.file)
        refused = tuple(TonedText(f"Refused: {one}", Tone.BAD) for one in seen.refusals)
        data = {
            "id": seen.proposal.id,
            "sha256": seen.received.sha256,
            "signer": seen.received.signer.title,
            "trusted": seen.received.signer.trusted,
            "refusals": list(seen.refusals),
            "proposal": seen.proposal.model_dump(mode="json"),
        }
        return Result((*seen.sentences(), seen.table(), *refused), data, passed=not refused)


class AcceptParameters(Parameters):
    """A proposal, and the acceptance that is written."""

    file: HomePath = _file_field("File", "Proposal of another console")
    out: HomePath = _file_field("Acceptance", "File to be written, for the proposer", new=True, metavar="OUT")
    identity: str = _identity_field()
    settings: tuple[Setting, ...] = _settings_field(
        "What is this console's own, as its identity: receiver_identity=b-client. What is agreed upon cannot be set"
    )
    confirmed: str = parameter(
        "Confirmed",
        "SHA-256 of the proposal that you have read, or its first 8 digits; not given: it is asked for",
        default="",
        metavar="SHA256",
        terminal_only=True,
    )


class Accept(Operation[AcceptParameters]):
    """Accepts a proposal: signs that, and saves what this console runs as a profile."""

    name: ClassVar[str] = "agreements.accept"
    title: ClassVar[str] = "Accept a proposal"
    description: ClassVar[str] = (
        "Shows what this console would run, connect to and store, and once that is confirmed, signs an acceptance of "
        "exactly this proposal and saves the scenario as a profile under the id of the agreement. Send the acceptance "
        "back to the proposer."
    )
    parameters: ClassVar[type[Parameters]] = AcceptParameters
    writes: ClassVar[tuple[str, ...]] = ("certificates",)

    def confirmation(self, parameters: AcceptParameters) -> Confirmation | None:
        from labconsole.agreements.review import CONFIRMED_DIGITS

        seen = _accepted(parameters)
        digest, confirmed = seen.received.sha256, "".join(parameters.confirmed.lower().split())
        if confirmed:
            if len(confirmed) < CONFIRMED_DIGITS or not digest.startswith(confirmed):
                raise UserError(
                    f"Nothing was accepted: the SHA-256 of the proposal {parameters.file} is another one than was "
                    "confirmed. Read the proposal again."
                )
            return None
        changed = (" = ".join(row[1:]) for row in seen.table().rows if isinstance(row[2], TonedText))
        lines = (*seen.sentences(), f"Parameters other than the defaults: {'; '.join(changed)}.")
        return Confirmation(digest[:CONFIRMED_DIGITS], "\n".join(lines), "--confirmed SHA256")

    def secrets(self, parameters: AcceptParameters) -> tuple[SecretRequest, ...]:
        return (_signing_identity(parameters.identity).secret,)

    def run(self, parameters: AcceptParameters, context: OperationContext) -> Result:
        from labconsole.agreements.agreement_files import keep_agreement, refuse_agreed
        from labconsole.agreements.documents import Acceptance, Party, signed_pem
        from labconsole.agreements.scenarios import profile_of
        from labconsole.output.export_file import must_be_new_files

        must_be_new_files(parameters.out)
        data = _read(parameters.file)
        seen = _accepted(parameters, data)
        proposal, run = seen.proposal, seen.accepted_run()
        refuse_agreed(proposal.id)
        identity = _signing_identity(parameters.identity)
        acceptance = Acceptance(
            written=wall_now().replace(microsecond=0),
            id=proposal.id,
            proposal_sha256=seen.received.sha256,
            accepter=Party(state=identity.state.name, role=run.part.role),
        )
        signed = signed_pem(acceptance, identity, _prompt(identity, context))
        keep_agreement(proposal.id, data, signed, profile_of(proposal.id, proposal.title, run))
        _write_new(parameters.out, signed)
        accepted = (
            f"The proposal {proposal.id} of {seen.received.signer.title} is accepted: send {parameters.out} back. "
            f"{_run_sentence(proposal.id, proposal.starts)}"
        )
        return Result(
            (*seen.sentences(), seen.table(), TonedText(accepted, Tone.GOOD)),
            {"id": proposal.id, "file": str(parameters.out), "role": run.part.role, "sha256": seen.received.sha256},
        )


class ConcludeParameters(Parameters):
    """An acceptance."""

    file: HomePath = _file_field("Acceptance", "Acceptance of a proposal of this console", metavar="ACCEPTANCE")


class Conclude(Operation[ConcludeParameters]):
    """Concludes an agreement that this console proposed."""

    name: ClassVar[str] = "agreements.conclude"
    title: ClassVar[str] = "Conclude an agreement"
    description: ClassVar[str] = (
        "Checks that an acceptance is signed by a trusted State and accepts exactly the proposal of this console, and "
        "saves what this console runs as a profile under the id of the agreement."
    )
    parameters: ClassVar[type[Parameters]] = ConcludeParameters

    def run(self, parameters: ConcludeParameters, context: OperationContext) -> Result:
        from labconsole.agreements.agreement_files import keep_agreement, own_scenario
        from labconsole.agreements.conclusion import concluded

        data = _read(parameters.file)
        agreed = concluded(data)
        proposal, signer = agreed.proposal, agreed.signer
        profile = keep_agreement(proposal.id, agreed.signed_proposal, data, own_scenario(proposal.id))
        sentence = (
            f"{signer.title} has accepted the proposal {proposal.id} and plays {proposal.accepter.role}; this console "
            f"plays {proposal.proposer.role}. {_run_sentence(proposal.id, proposal.starts)}"
        )
        data_of = {"id": proposal.id, "role": proposal.proposer.role, "signer": signer.title, "profile": str(profile)}
        return Result((TonedText(signer.sentence, Tone.GOOD), sentence), data_of)


def _run_sentence(id: str, starts: datetime | None) -> str:
    when = "" if starts is None else f", which waits until {starts:%Y-%m-%d %H:%M:%S} UTC"
    return f"Run it by `labconsole run {id}`{when}."


def _read(path: Path) -> bytes:
    from labconsole.security.x509.parsing import read_file

    return read_file(path, "file")


def _reviewed(path: Path, identity: SigningIdentity | None = None, data: bytes | None = None) -> Review:
    """The review of a proposal by the identity's State, or by any of this console. Raises UserError."""
    from labconsole.agreements.review import review
    from labconsole.model.plugin import Plugins
    from labconsole.security.pki.reader import PkiReader

    with PkiReader.open() as reader:
        snapshot = reader.snapshot()
    state = None if identity is None else identity.state.id
    return review(_read(path) if data is None else data, snapshot, Plugins.discover(), state)


def _accepted(parameters: AcceptParameters, data: bytes | None = None) -> Review:
    """The review of the proposal, with this console's own parameters. Raises UserError: it is refused."""
    from labconsole.agreements.scenarios import settings_of

    seen = _reviewed(parameters.file, _signing_identity(parameters.identity), data)
    model = seen.accepted_run().trial.parameters
    return seen.with_own(settings_of(parameters.settings, model))


def _loopback_warnings(other: ConsoleRun) -> list[str]:
    host = str(other.values.get("host", ""))
    if host in ("localhost", "::1") or host.startswith("127."):
        return [f"The host is {host}, which at the other end is that computer itself: name one that both ends reach."]
    return []


def _write_new(path: Path, data: bytes) -> None:
    """Write a file that does not exist. Raises UserError."""
    from labconsole.output.export_file import complete_file

    with complete_file(path) as partial:
        partial.write_bytes(data)
