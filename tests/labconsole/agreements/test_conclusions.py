"""Acceptances that a console gets for its proposal: whose, and of what, it concludes an agreement with."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from labconsole.agreements import conclusion
from labconsole.agreements.conclusion import concluded
from labconsole.agreements.documents import Acceptance, Party, signed_pem
from labconsole.errors import UserError
from labconsole.paths import HOME_VARIABLE
from labconsole.security.pki.signing_identities import signing_identity
from tests.labconsole.agreements.agreement_files import Files, propose
from tests.labconsole.agreements.two_owners import Owner, new_owner

NOW = datetime.now(UTC).replace(microsecond=0)


@dataclass(frozen=True)
class Proposed:
    """A proposal of State A."""

    a: Owner
    b: Owner
    files: Files

    def accepted(self, by: Owner, **changes: Any) -> bytes:
        """An acceptance by a console that does not check anything."""
        values = {
            "written": NOW,
            "id": self.files.id,
            "proposal_sha256": self.files.sha256,
            "accepter": Party(state=by.state, role="receiver"),
        }
        name = f"{by.folder.name}-signer"
        return signed_pem(Acceptance(**{**values, **changes}), signing_identity(name, by.pki))


@pytest.fixture
def proposed(owners: tuple[Owner, Owner], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Proposed:
    a, b = owners
    files = propose(a, folder=tmp_path)
    monkeypatch.setenv(HOME_VARIABLE, str(a.folder))
    return Proposed(a, b, files)


def test_an_acceptance_of_a_trusted_state_makes_an_agreement(proposed: Proposed) -> None:
    agreement = concluded(proposed.accepted(proposed.b))
    assert agreement.signer.title == "b-signer of State B"
    assert agreement.signed_proposal == proposed.files.proposal.read_bytes()


def test_an_acceptance_of_an_unknown_signer_is_refused(proposed: Proposed, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="signed by c-signer of an unknown State, which is not trusted here"):
        concluded(proposed.accepted(new_owner(tmp_path / "c", "c")))


def test_an_acceptance_of_the_proposer_itself_is_refused(proposed: Proposed) -> None:
    with pytest.raises(UserError, match="signed by a-signer of State A, which is of this console"):
        concluded(proposed.accepted(proposed.a))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"accepter": Party(state="State B", role="sender")}, "another role"),
        ({"proposal_sha256": "0" * 64}, "another text of the proposal"),
        ({"id": "f" * 16}, "has proposed no agreement ffff"),
    ],
)
def test_an_acceptance_of_something_else_is_refused(changes: dict[str, Any], reason: str, proposed: Proposed) -> None:
    with pytest.raises(UserError, match=reason):
        concluded(proposed.accepted(proposed.b, **changes))


def test_a_late_acceptance_is_refused(proposed: Proposed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conclusion, "wall_now", lambda: NOW + timedelta(days=8))
    with pytest.raises(UserError, match="was valid until"):
        concluded(proposed.accepted(proposed.b))


def test_an_acceptance_by_a_certificate_that_is_not_for_signing_is_refused(proposed: Proposed) -> None:
    from labconsole.security.pki.keys import opened_key
    from labconsole.security.pki.reader import PkiReader
    from labconsole.security.x509 import cms
    from labconsole.security.x509.certificate_profiles import CertificateProfile

    proposed.b.name_signer("b-tls", CertificateProfile.TLS_CLIENT)
    with PkiReader.open(proposed.b.pki) as reader:
        snapshot = reader.snapshot()
    record = snapshot.certificates[-1]
    content = cms.read(proposed.accepted(proposed.b)).content
    with opened_key(proposed.b.pki, snapshot.key_by_id[record.key or 0]) as key:
        signed = cms.sign(content, record.certificate, key)
    with pytest.raises(UserError, match="lacks emailProtection"):
        concluded(signed)


def test_a_proposal_of_another_console_is_not_concluded(proposed: Proposed) -> None:
    b = replace(proposed.b)
    kept = proposed.a.folder / "agreements" / f"{proposed.files.id}.proposal.pem"
    content = kept.read_bytes()
    from labconsole.security.x509 import cms

    kept.write_bytes(signing_identity("b-signer", b.pki).sign(cms.read(content).content, "proposal"))
    with pytest.raises(UserError, match="is not signed by a State of this console"):
        concluded(proposed.accepted(b))
