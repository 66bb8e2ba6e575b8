"""NIST's path validation suite (PKITS, 2011): every case with a signed end certificate named Valid... or Invalid...

All of these run with the suite's default settings: any initial policy, no explicit policy asked for. The data come with
`cryptography_vectors`.
"""

from __future__ import annotations

from datetime import UTC, datetime
from importlib.resources import files

import pytest
from cryptography import x509

from labconsole.security.x509.validation.judgement import Answer, Decision, Judgement
from labconsole.security.x509.validation.validator import Validator

AT = datetime(2020, 1, 1, tzinfo=UTC)
CASES = 203
ROOT = "TrustAnchorRootCertificate"
DATA = files("cryptography_vectors") / "x509" / "PKITS_data"

NOT_READ = frozenset({"DSAParametersInheritedCACert", "ValidDSAParameterInheritanceTest5EE"})
"""`cryptography` reads no DSA key without parameters, so that the gate refuses the certificates: one valid case."""

WRONGLY_REFUSED = frozenset(
    {
        # cryptography: RFC 5280, 4.1.2.5 has a date before 2050 as UTCTime; a CA that writes GeneralizedTime is refused
        "ValidGeneralizedTimenotBeforeDateTest4EE",
        # cryptography: DSA is withdrawn (FIPS 186-5), and these keys have 1,024 bits
        "ValidDSASignaturesTest4EE",
        # OpenSSL: pyOpenSSL gives a store no CRLs of other issuers (indirect CRLs)
        "ValidIDPwithindirectCRLTest24EE",
        "ValidIDPwithindirectCRLTest25EE",
        "ValidcRLIssuerTest28EE",
        "ValidcRLIssuerTest29EE",
        "ValidcRLIssuerTest30EE",
        "ValidcRLIssuerTest33EE",
        # OpenSSL: pyOpenSSL gives a store no initial policies, and without them no explicit policy can be satisfied
        "ValidPolicyMappingTest1EE",
        "ValidPolicyMappingTest3EE",
        "ValidPolicyMappingTest5EE",
        "ValidPolicyMappingTest6EE",
        "ValidPolicyMappingTest9EE",
        "ValidPolicyMappingTest11EE",
        "ValidPolicyMappingTest12EE",
        "ValidPolicyMappingTest13EE",
        "ValidPolicyMappingTest14EE",
        "ValidSelfIssuedinhibitAnyPolicyTest7EE",
        "ValidSelfIssuedinhibitAnyPolicyTest9EE",
        "ValidSelfIssuedinhibitPolicyMappingTest7EE",
        "ValidinhibitAnyPolicyTest2EE",
        "ValidinhibitPolicyMappingTest2EE",
        "ValidinhibitPolicyMappingTest4EE",
        "ValidrequireExplicitPolicyTest4EE",
    }
)

pytestmark = pytest.mark.filterwarnings("ignore:Parsed a serial number")


@pytest.fixture(scope="module")
def certificates() -> dict[str, x509.Certificate]:
    """All certificates of the suite that can be read, by name."""
    return {
        file.name.removesuffix(".crt"): x509.load_der_x509_certificate(file.read_bytes())
        for file in (DATA / "certs").iterdir()
        if file.name.removesuffix(".crt") not in NOT_READ
    }


@pytest.fixture(scope="module")
def judgements(certificates: dict[str, x509.Certificate]) -> dict[str, Judgement]:
    """The judgement on each case, by the name of its end certificate."""
    validator = Validator([certificates[ROOT]], _authorities(certificates), _crls(), at=AT, crls_required=True)
    return {name: validator.validate(one) for name, one in certificates.items() if _is_case(name)}


def test_by_default_only_issuers_without_any_crl_are_believed(certificates: dict[str, x509.Certificate]) -> None:
    """Ten cases were accepted that the strict mode refuses; the rest says that nothing is known of their revocation."""
    validator = Validator([certificates[ROOT]], _authorities(certificates), _crls(), at=AT)
    judged = {name: validator.validate(one) for name, one in certificates.items() if _is_case(name)}
    wrong = {name: one for name, one in judged.items() if one.accepted and name.startswith("Invalid")}
    assert set(wrong) == {
        "InvalidMissingCRLTest1EE",
        "InvalidBadCRLIssuerNameTest5EE",  # the CRL has another CA's name
        "InvalidWrongCRLTest6EE",  # the CRL is of another CA
        "InvalidIDPwithindirectCRLTest26EE",  # the CRL's signer is none that is known
    }
    for one in wrong.values():
        assert one.why.endswith("and until one is imported, revoked certificates are accepted.")
    refused = {name for name, one in judged.items() if not one.accepted and name.startswith("Valid")}
    assert refused == WRONGLY_REFUSED


def _crls() -> list[x509.CertificateRevocationList]:
    return [x509.load_der_x509_crl(file.read_bytes()) for file in (DATA / "crls").iterdir()]


def _is_case(name: str) -> bool:
    return name.startswith(("Valid", "Invalid"))


def _authorities(certificates: dict[str, x509.Certificate]) -> list[x509.Certificate]:
    return [certificate for name, certificate in certificates.items() if name != ROOT and not _is_case(name)]


def _right(name: str, accepted: bool) -> bool:
    return accepted == name.startswith("Valid")


def test_nothing_is_wrongly_accepted_and_what_is_wrongly_refused_is_known(judgements: dict[str, Judgement]) -> None:
    wrong = {name: judgement for name, judgement in judgements.items() if not _right(name, judgement.accepted)}

    assert len(judgements) == CASES - 1  # one is not read, and so refused
    assert {name for name, judgement in wrong.items() if judgement.accepted} == set()
    assert set(wrong) == WRONGLY_REFUSED
    assert len(judgements) - len(wrong) == 178


def test_neither_library_alone_would_do(judgements: dict[str, Judgement]) -> None:
    by_cryptography = [
        name
        for name, judgement in judgements.items()
        if judgement.cryptography.answer is Answer.ACCEPTED and not name.startswith("Valid")
    ]
    by_openssl = [name for name, one in judgements.items() if _right(name, one.openssl.answer is Answer.ACCEPTED)]

    assert len(by_cryptography) == 45  # it looks at no CRLs
    assert len(by_openssl) == 180


def test_features_unknown_to_cryptography_are_decided_by_openssl_and_reported(judgements: dict[str, Judgement]) -> None:
    alone = {name: one for name, one in judgements.items() if one.accepted and one.decided_by is Decision.OPENSSL}

    assert {one.cryptography.why.partition(" (")[0] for one in alone.values()} == {
        "it does not know certificate policies",
        "it does not know name constraints of this kind",
        "it does not know names that are alike but not the same byte by byte",
        "it does not know that self-issued certificates do not count for a path length",
    }
    assert all("cryptography does not know" in one.why for one in alone.values())
    assert {name for name in alone if "pathLen" in name} == {
        "ValidSelfIssuedpathLenConstraintTest15EE",
        "ValidSelfIssuedpathLenConstraintTest17EE",
    }


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("InvalidRevokedEETest3EE", "certificate revoked"),
        ("InvalidRevokedCATest2EE", "certificate revoked"),
        ("InvalidMissingCRLTest1EE", "unable to get certificate CRL"),
        ("InvalidOldCRLnextUpdateTest11EE", "CRL has expired"),
        ("InvalidDNnameConstraintsTest2EE", "permitted subtree violation"),
        ("InvalidpathLenConstraintTest5EE", "path length constraint exceeded"),
        ("InvalidcAFalseTest2EE", "invalid CA certificate"),
    ],
)
def test_why_something_is_refused_is_said(judgements: dict[str, Judgement], case: str, words: str) -> None:
    assert words in judgements[case].why


def test_a_revoked_certificate_is_distinguished_from_an_untrusted_one(judgements: dict[str, Judgement]) -> None:
    assert judgements["InvalidRevokedEETest3EE"].revoked
    assert judgements["InvalidRevokedCATest2EE"].revoked
    assert not judgements["InvalidMissingCRLTest1EE"].revoked
    assert not judgements["ValidCertificatePathTest1EE"].revoked


def test_policies_are_processed_without_crls_too(certificates: dict[str, x509.Certificate]) -> None:
    validator = Validator([certificates[ROOT]], _authorities(certificates), (), at=AT)

    said = validator.validate(certificates["InvalidrequireExplicitPolicyTest3EE"])

    assert not said.accepted
    assert "OpenSSL: no explicit policy." in said.why
