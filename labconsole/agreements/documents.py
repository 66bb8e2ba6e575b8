"""The documents of an agreement: proposal, acceptance and statement of results, as canonical JSON in CMS SignedData.

Nothing else decodes to the same document: what is read is encoded again and must be the same. The SHA-256 of a
proposal is that of its JSON, so that `openssl cms -verify -out proposal.json` and `sha256sum` give the same.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, ClassVar, Generic, Literal, TypeVar

from asn1crypto import pem
from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from labconsole import __version__
from labconsole.errors import BadInput
from labconsole.model.validation_faults import fault_sentence
from labconsole.security.pki.signing_identities import Signer, SigningIdentity, signer_of
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.secrets import Prompt
from labconsole.security.x509 import cms
from labconsole.security.x509.fingerprints import fingerprint
from labconsole.store.encoding import to_json

FORMAT = "labconsole agreement 1"
_SKEW = timedelta(minutes=5)
"""Tolerance for a clock that is ahead of ours."""
_NO_DOCUMENT = "It is not an agreement of the lab console: ask for the file again."


def _whole_second_utc(moment: datetime) -> datetime:
    if moment.utcoffset() != timedelta(0) or moment.microsecond:
        raise ValueError("a time of an agreement is in UTC and whole seconds")
    return moment.astimezone(UTC)


Moment = Annotated[AwareDatetime, AfterValidator(_whole_second_utc)]
AgreementId = Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
_Text = Annotated[str, Field(max_length=200)]


class _Document(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    same_version: ClassVar[bool] = True
    """Whether only the version of the console that wrote it reads it: what both run must be the same."""

    format: Literal["labconsole agreement 1"] = "labconsole agreement 1"
    console: _Text = __version__
    """Version of the console that wrote it."""
    written: Moment

    def encoded(self) -> bytes:
        """Its canonical JSON, which is what is signed and hashed."""
        return to_json(self.model_dump(mode="json")).encode()


class Party(BaseModel):
    """An end of an agreement: its State, by the name that the writer of the document has for it, and its role."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    state: _Text
    role: _Text


class Proposal(_Document):
    """What the accepter's console would run, and when."""

    document: Literal["proposal"] = "proposal"
    id: AgreementId
    """The id of the trial at both ends, too."""
    title: _Text
    kind: _Text
    proposer: Party
    accepter: Party
    """Its State is empty where any trusted one may accept."""
    starts: Moment | None
    """When both consoles begin; None: when their operators start the run."""
    valid_until: Moment
    """Until when it can be accepted and concluded."""
    parameters: dict[str, Any]
    """Those of the accepter's console, all of them; neither secrets nor paths."""

    def late(self, now: datetime) -> str:
        """Why it cannot be accepted any more at `now`, or not yet, in one sentence; empty: it can."""
        if now > self.valid_until:
            return (
                f"The proposal {self.id} was valid until {self.valid_until:%Y-%m-%d %H:%M:%S} UTC: ask for a new one."
            )
        if self.written > now + _SKEW:
            return (
                f"The proposal {self.id} was written at {self.written:%Y-%m-%d %H:%M} UTC, which is in the future: "
                "check the clock of this computer."
            )
        return ""


class Acceptance(_Document):
    """The accepter's answer, which holds for exactly one proposal."""

    document: Literal["acceptance"] = "acceptance"
    id: AgreementId
    proposal_sha256: Sha256
    accepter: Party


class SignedRun(BaseModel):
    """A run in a bundle: its uuid, and the digest by which it is sealed."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    uuid: _Text
    digest: Sha256


class Results(_Document):
    """The statement that a bundle holds these runs, as their console has sealed them."""

    same_version: ClassVar[bool] = False

    document: Literal["results"] = "results"
    state: _Text
    bundle_sha256: Sha256
    runs: Annotated[list[SignedRun], Field(max_length=10_000)]


D = TypeVar("D", bound=_Document)


@dataclass(frozen=True)
class Received(Generic[D]):
    """A document whose signature is that of the certificate in its file, and what is known of the signer."""

    document: D
    sha256: str
    """Of the document's JSON."""
    signer: Signer


def signed_pem(document: _Document, identity: SigningIdentity, prompt: Prompt | None = None) -> bytes:
    """PEM of CMS SignedData with `document`, signed by `identity`. Raises UserError."""
    name = type(document).__name__.lower()
    armored: bytes = pem.armor("CMS", identity.sign(document.encoded(), name, prompt))
    return armored


def received(data: bytes, kind: type[D], snapshot: Snapshot, observer: int | None = None) -> Received[D]:
    """The document of this kind in the CMS file `data`, its signer judged now by State `observer`, or any local State.

    Raises BadInput: changed after it was signed, another kind, format or version. An untrusted signer raises nothing.
    """
    message = cms.verify(data)
    document = _parsed(message.content, kind)
    return Received(document, fingerprint(message.content), signer_of(message, snapshot, observer))


def _parsed(content: bytes, kind: type[D]) -> D:
    try:
        values = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise BadInput(_NO_DOCUMENT) from error
    if not isinstance(values, dict) or not str(values.get("format", "")).startswith("labconsole agreement "):
        raise BadInput(_NO_DOCUMENT)
    _refuse_others(values, kind)
    try:
        document = kind.model_validate(values)
        encoded = document.encoded()
    except ValidationError as error:
        raise BadInput(f"The agreement cannot be read, {fault_sentence(error, kind)} Ask for it again.") from error
    except (ValueError, RecursionError) as error:  # a number or text that JSON does not have
        raise BadInput(_NO_DOCUMENT) from error
    if encoded != content:
        raise BadInput("The agreement is not written as the console writes it: ask for one by the console.")
    return document


def _refuse_others(values: dict[str, Any], kind: type[_Document]) -> None:
    """Raises BadInput for a document of another kind, another format or by another version of the console."""
    wanted = kind.model_fields["document"].default
    if values["format"] != FORMAT or (kind.same_version and values.get("console") != __version__):
        raise BadInput(
            f"The agreement was written by version {values.get('console')!s:.40} of the console, and this is "
            f"{__version__}: bring both consoles to the same version."
        )
    if values.get("document") != wanted:
        raise BadInput(f"The file has the document {values.get('document')!s:.40}, and here a {wanted} is needed.")
