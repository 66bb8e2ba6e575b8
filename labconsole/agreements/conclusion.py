"""Conclusion of an agreement by its proposer: the acceptance is of a trusted State, and of exactly the proposal."""

from __future__ import annotations

from dataclasses import dataclass

from labconsole.agreements.agreement_files import kept_proposal
from labconsole.agreements.documents import Acceptance, Proposal, received
from labconsole.clock import wall_now
from labconsole.errors import BadInput
from labconsole.security.pki.reader import PkiReader
from labconsole.security.pki.signing_identities import Signer


@dataclass(frozen=True)
class Agreement:
    """A proposal of this console, and who has accepted it."""

    proposal: Proposal
    signed_proposal: bytes
    signer: Signer
    """Of the acceptance."""


def concluded(data: bytes) -> Agreement:
    """The agreement that the signed acceptance `data` makes. Raises UserError: it is refused, with the reason."""
    with PkiReader.open() as reader:
        snapshot = reader.snapshot()
    answer = received(data, Acceptance, snapshot)
    acceptance = answer.document
    signed_proposal = kept_proposal(acceptance.id)
    own = received(signed_proposal, Proposal, snapshot)
    proposal = own.document
    if own.signer.state is None or not own.signer.state.local:
        raise BadInput(f"The proposal {proposal.id} is not signed by a State of this console: propose it again.")
    signer = received(data, Acceptance, snapshot, own.signer.state.id).signer
    if not signer.trusted:
        raise BadInput(f"The acceptance is signed by {signer.title}, which is not trusted here: {signer.status.cause}")
    if signer.state is None or signer.state.local:
        raise BadInput(f"The acceptance is signed by {signer.title}, which is of this console: the other one accepts.")
    if acceptance.proposal_sha256 != own.sha256 or acceptance.id != proposal.id:
        raise BadInput(
            f"The acceptance is of another text of the proposal {proposal.id}: one of the two was changed. Propose the "
            "trial again."
        )
    if proposal.accepter.state and signer.state.name != proposal.accepter.state:
        raise BadInput(
            f"The acceptance is signed by {signer.title}, and the proposal is for {proposal.accepter.state}: ask both."
        )
    if acceptance.accepter.role != proposal.accepter.role:
        raise BadInput("The acceptance names another role than the proposal: propose the trial again.")
    if late := proposal.late(wall_now()):
        raise BadInput(late)
    return Agreement(proposal, signed_proposal, signer)
