"""Whether a State accepts a certificate, by its roots, CRLs and pins, and why not."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import ClassVar

from labconsole.model.operation import Result
from labconsole.model.trial import Parameters
from labconsole.security.identities import validity_problem
from labconsole.security.pki.domains import path_refusal
from labconsole.security.pki.known_crls import crls_under
from labconsole.security.pki.reader import PkiReader
from labconsole.security.pki.records import TrustKind
from labconsole.security.x509.names import short_name
from labconsole.security.x509.validation.judgement import Opinion
from labconsole.security.x509.validation.validator import validate
from labconsole_certificates.operations.parameter_fields import CertificateChoice, StateParameters
from labconsole_certificates.operations.pki_operation import PkiReport
from labconsole_certificates.operations.record_lookup import certificate_named, state_named


class CheckParameters(StateParameters):
    """A State, and a certificate to check."""

    certificate: CertificateChoice


class Check(PkiReport[CheckParameters]):
    """Checks whether a State accepts a certificate."""

    name: ClassVar[str] = "certificates.check"
    title: ClassVar[str] = "Check a certificate"
    description: ClassVar[str] = (
        "Checks whether a State accepts a certificate, by its roots, CRLs and pins, and why not."
    )
    parameters: ClassVar[type[Parameters]] = CheckParameters

    def read(self, parameters: CheckParameters, reader: PkiReader) -> Result:
        snapshot, at = reader.snapshot(), datetime.now(UTC)
        state = state_named(snapshot, parameters.state)
        record = certificate_named(snapshot, parameters.certificate)
        name = short_name(record.certificate)
        opinions: dict[str, str] = {}
        if record in snapshot.trusted_by(state.id, TrustKind.PIN):
            problem = validity_problem(record.certificate, at)
            problem = problem or path_refusal(snapshot, (record.certificate,)).rstrip(".")
            accepted, why = not problem, f"it is pinned, but {problem}." if problem else "it is pinned."
        else:
            roots = snapshot.trusted_by(state.id, TrustKind.ROOT)
            judgement = validate(
                record.certificate,
                [other.certificate for other in snapshot.certificates if other.removed is None],
                [root.certificate for root in roots],
                crls_under(snapshot, roots),
                at=at,
            )
            refused = path_refusal(snapshot, judgement.path) if judgement.accepted else ""
            accepted, why = judgement.accepted and not refused, refused or judgement.why
            opinions = {
                "cryptography": _opinion(judgement.cryptography),
                "OpenSSL, with CRLs": _opinion(judgement.openssl),
            }
        lines = [f"{state.name} {'accepts' if accepted else 'refuses'} {name}: {why}"]
        lines += [f"  {library}: {opinion}" for library, opinion in opinions.items()]
        data = {"state": state.name, "certificate": name, "sha256": record.sha256, "accepted": accepted, "why": why}
        return Result(("\n".join(lines),), {**data, "opinions": opinions}, passed=accepted)


def _opinion(opinion: Opinion) -> str:
    return f"{opinion.answer}, {opinion.why}" if opinion.why else str(opinion.answer)
