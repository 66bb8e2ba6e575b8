"""Validation of what the console itself issues: who refuses, why, and what is said where something is not known."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID

from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.crl_issuing import Revoked, issue_crl
from labconsole.security.x509.csrs import create_csr
from labconsole.security.x509.issuing import Issuer, issue, issue_root, link_certificates, make_self_signed
from labconsole.security.x509.key_types import KeyType, generate
from labconsole.security.x509.validation.judgement import Answer, Decision, Purpose
from labconsole.security.x509.validation.validator import validate
from labconsole.security.x509.validity import Validity
from tests.helpers.authorities import named, new_authority
from tests.helpers.openssl_command import run_openssl
from tests.helpers.x509_keys import key_of

NOW = datetime.now(UTC).replace(microsecond=0)
MONTH = Validity.for_days(30)
P_256 = key_of(KeyType.P_256)
FAST_TYPES = [type_ for type_ in KeyType if type_ not in (KeyType.RSA_3072, KeyType.RSA_4096)]

_CA_USAGE = x509.KeyUsage(False, False, False, False, False, True, True, False, False)


def _below(issuer: Issuer, common_name: str, **limits: int | None) -> Issuer:
    key = key_of(KeyType.P_384)
    profile = CertificateProfile.INTERMEDIATE
    certificate = issue(issuer, key.public_key(), named(f"CN={common_name}"), (), profile, MONTH, **limits)  # type: ignore[arg-type]
    return Issuer(certificate, key, (issuer.certificate, *issuer.chain))


def _end(
    issuer: Issuer,
    names: Sequence[x509.GeneralName] = (x509.DNSName("broker.a.example"),),
    profile: CertificateProfile = CertificateProfile.TLS_SERVER,
    validity: Validity = MONTH,
) -> x509.Certificate:
    return issue(issuer, P_256.public_key(), named("CN=broker"), names, profile, validity)


def _crl(issuer: Issuer, *revoked: x509.Certificate, validity: Validity = MONTH) -> x509.CertificateRevocationList:
    reason = x509.ReasonFlags.key_compromise
    return issue_crl(issuer, [Revoked(one.serial_number, NOW, reason) for one in revoked], 1, validity)


def test_a_path_with_all_crls_is_accepted_by_both() -> None:
    root = new_authority("State A Root")
    below = _below(root, "State A Intermediate")
    leaf = _end(below)

    said = validate(leaf, [below.certificate], [root.certificate], [_crl(root), _crl(below)], at=NOW)

    assert said.accepted
    assert said.decided_by is Decision.BOTH
    assert said.why == "cryptography and OpenSSL both accept it."
    assert said.path == (leaf, below.certificate, root.certificate)
    assert said.revocation_unknown == ()


@pytest.mark.parametrize("type_", FAST_TYPES)
def test_each_type_of_key_is_judged_and_a_forged_signature_is_refused(type_: KeyType) -> None:
    key, other = key_of(type_), new_authority("State A Root")
    root = Issuer(issue_root(key, named("CN=State A Root"), MONTH), key)
    leaf = issue(root, key.public_key(), named("CN=client"), (), CertificateProfile.TLS_CLIENT, MONTH)
    impostor = issue_root(generate(KeyType.P_256), named("CN=State A Root"), MONTH)

    said = validate(leaf, (), [root.certificate], at=NOW)
    forged = validate(leaf, (), [impostor, other.certificate], at=NOW)

    assert said.accepted
    assert said.openssl.answer is Answer.ACCEPTED
    if type_ is KeyType.ED25519:
        assert said.cryptography.answer is Answer.UNKNOWN
        assert said.decided_by is Decision.OPENSSL
        assert "it does not know this type of key or signature" in said.why
    else:
        assert said.decided_by is Decision.BOTH
    assert not forged.accepted


def test_where_no_crl_is_known_it_is_accepted_and_said_unless_crls_are_required() -> None:
    root = new_authority("State A Root")
    below = _below(root, "State A Intermediate")
    leaf = _end(below)

    said = validate(leaf, [below.certificate], [root.certificate], [_crl(root)], at=NOW)
    without = validate(leaf, [below.certificate], [root.certificate], at=NOW)
    strict = validate(leaf, [below.certificate], [root.certificate], [_crl(root)], at=NOW, crls_required=True)

    assert said.accepted
    assert said.revocation_unknown == (below.certificate.subject,)
    assert "Whether it is revoked is not known: there is no CRL of CN=State A Intermediate, and" in said.why
    assert without.revocation_unknown == (below.certificate.subject, root.certificate.subject)
    assert not strict.accepted
    assert strict.decided_by is Decision.OPENSSL
    assert "unable to get certificate CRL, so import one of its issuer" in strict.why


@pytest.mark.parametrize("all_crls", [True, False])
def test_what_a_crl_lists_is_refused_by_openssl_alone(all_crls: bool) -> None:
    root = new_authority("State A Root")
    below = _below(root, "State A Intermediate")
    leaf = _end(below)
    others = [_crl(root)] if all_crls else []

    end = validate(leaf, [below.certificate], [root.certificate], [*others, _crl(below, leaf)], at=NOW)
    ca = validate(leaf, [below.certificate], [root.certificate], [_crl(root, below.certificate)], at=NOW)

    for said, name in ((end, "broker"), (ca, "State A Intermediate")):
        assert not said.accepted
        assert said.revoked
        assert said.decided_by is Decision.OPENSSL
        assert said.cryptography.answer is Answer.ACCEPTED
        assert said.why == (
            f"OpenSSL refuses it: {name}: certificate revoked. cryptography, which reads no CRLs, accepts it."
        )


def test_a_crl_that_is_out_of_date_refuses_and_says_what_to_do() -> None:
    root = new_authority("State A Root")
    old = _crl(root, validity=Validity(NOW - timedelta(days=20), NOW - timedelta(days=10)))

    said = validate(_end(root), (), [root.certificate], [old], at=NOW)

    assert not said.accepted
    assert not said.revoked
    assert "CRL has expired, so publish or import its issuer's newer one" in said.why


def test_a_crl_of_another_ca_with_the_same_name_is_ignored() -> None:
    root, impostor = new_authority("State A Root"), new_authority("State A Root")
    leaf = _end(root)

    said = validate(leaf, (), [root.certificate], [_crl(impostor, leaf)], at=NOW)

    assert said.accepted
    assert said.revocation_unknown == (root.certificate.subject,)


def test_a_root_that_is_not_trusted_any_more_is_named() -> None:
    root, other = new_authority("State A Root"), new_authority("State B Root")

    said = validate(_end(root), [_below(other, "Somebody").certificate], [other.certificate], at=NOW)
    untrusting = validate(_end(root), (), (), at=NOW)

    assert not said.accepted
    assert said.decided_by is Decision.BOTH
    assert "unable to get local issuer certificate, because it is not trusted here" in said.why
    assert said.cryptography.why == "an issuer on the way to a trusted CA is missing"
    assert not untrusting.accepted
    assert "nothing is trusted" in untrusting.why


def test_a_missing_intermediate_refuses() -> None:
    root = new_authority("State A Root")
    assert not validate(_end(_below(root, "State A Intermediate")), (), [root.certificate], at=NOW).accepted


@pytest.mark.parametrize(
    ("offset", "words"), [(timedelta(days=31), "has expired"), (-timedelta(days=2), "not yet valid")]
)
def test_time_is_that_of_the_question(offset: timedelta, words: str) -> None:
    root = new_authority("State A Root")

    said = validate(_end(root), (), [root.certificate], at=NOW + offset)

    assert not said.accepted
    assert said.decided_by is Decision.BOTH
    assert words in said.why


def test_name_constraints_hold_for_what_a_limited_ca_issues() -> None:
    limit = [x509.DNSName("a.example")]
    free = Issuer(issue_root(P_256, named("CN=Limited"), MONTH), P_256)
    limited = issue_root(P_256, named("CN=Limited"), MONTH, name_constraints=limit)
    inside, outside = _end(free), _end(free, [x509.DNSName("broker.b.example")])

    assert validate(inside, (), [limited], at=NOW).accepted
    said = validate(outside, (), [limited], at=NOW)
    assert not said.accepted
    assert said.decided_by is Decision.BOTH
    assert "permitted subtree violation" in said.why
    assert "no permitted name constraints matched" in said.why


@pytest.mark.parametrize(
    ("names", "name", "fits"),
    [
        (["broker.a.example"], "BROKER.a.example.", True),
        (["broker.a.example"], "a.example", False),
        (["Broker.A.Example"], "broker.a.example", True),
        (["*.a.example"], "broker.a.example", True),
        (["*.a.example"], "x.broker.a.example", False),
        (["*.a.example"], "a.example", False),
        (["*.example"], "a.example", False),
        (["xn--bcher-kva.example"], "bücher.example", True),
    ],
)
def test_a_name_must_be_among_the_names(names: list[str], name: str, fits: bool) -> None:
    root = new_authority("State A Root")
    leaf = _end(root, [x509.DNSName(one) for one in names])

    said = validate(leaf, (), [root.certificate], at=NOW, name=name)

    assert said.accepted is fits
    if not fits:
        assert said.decided_by is Decision.CONSOLE
        assert said.why.startswith("It does not fit: broker is for ")


def test_an_ip_address_is_a_name_too() -> None:
    root = new_authority("State A Root")
    leaf = _end(root, [x509.IPAddress(ip_address("127.0.0.1"))])

    assert validate(leaf, (), [root.certificate], at=NOW, name="127.0.0.1").accepted
    assert not validate(leaf, (), [root.certificate], at=NOW, name="127.0.0.2").accepted


def test_the_purpose_must_be_allowed() -> None:
    root = new_authority("State A Root")
    client = _end(root, profile=CertificateProfile.TLS_CLIENT)

    assert validate(client, (), [root.certificate], at=NOW, purpose=Purpose.TLS_CLIENT).accepted
    said = validate(client, (), [root.certificate], at=NOW, purpose=Purpose.TLS_SERVER)
    assert not said.accepted
    assert said.decided_by is Decision.CONSOLE
    assert "the extended key usage of broker does not allow tls-server" in said.why


@pytest.mark.parametrize("allowed", [ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH])
def test_the_purpose_must_be_allowed_by_each_ca_above(allowed: x509.ObjectIdentifier) -> None:
    root, key = new_authority("State A Root"), key_of(KeyType.P_384)
    own = _below(root, "State A Intermediate").certificate
    made = x509.CertificateBuilder(own.issuer, own.subject, own.public_key(), 1).not_valid_before(MONTH.not_before)
    made = made.not_valid_after(MONTH.not_after).add_extension(x509.ExtendedKeyUsage([allowed]), False)
    for extension in own.extensions:
        made = made.add_extension(extension.value, extension.critical)
    below = Issuer(made.sign(root.key, hashes.SHA256()), key, (root.certificate,))

    said = validate(_end(below), [below.certificate], [root.certificate], at=NOW, purpose=Purpose.TLS_SERVER)

    assert said.accepted is (allowed == ExtendedKeyUsageOID.SERVER_AUTH)
    if not said.accepted:
        assert said.decided_by is Decision.CONSOLE
        assert "the extended key usage of State A Intermediate does not allow tls-server" in said.why


def test_a_cas_own_certificate_can_be_judged() -> None:
    root = new_authority("State A Root")
    below = _below(root, "State A Intermediate")

    assert validate(root.certificate, (), [root.certificate], at=NOW).accepted
    assert validate(below.certificate, (), [root.certificate], at=NOW).accepted
    assert validate(_end(below), (), [below.certificate], at=NOW).accepted  # what is trusted need not be a root


def test_a_self_signed_end_certificate_is_trusted_only_if_it_is_a_root_here() -> None:
    names = [x509.DNSName("a.example")]
    leaf = make_self_signed(P_256, named("CN=a"), names, CertificateProfile.TLS_CLIENT, MONTH)

    said = validate(leaf, (), [new_authority("State A Root").certificate], at=NOW)

    assert not said.accepted
    assert "self-signed certificate" in said.why


@pytest.mark.parametrize("path_length", [None, 0])
def test_link_certificates_lead_from_either_root_to_the_other(path_length: int | None) -> None:
    old = new_authority("State A Root", path_length=path_length)
    new = new_authority("State A Root", path_length=path_length)
    old_with_new, new_with_old = link_certificates(old, new)

    for issuer, link, root in ((old, old_with_new, new), (new, new_with_old, old)):
        leaf = _end(issuer)
        said = validate(leaf, [link], [root.certificate], [_crl(root)], at=NOW)
        assert said.accepted, said.why
        assert said.path == (leaf, link, root.certificate)
        assert not validate(leaf, (), [root.certificate], at=NOW).accepted


def test_a_self_signed_root_among_the_intermediates_does_not_block_a_link() -> None:
    old, new = new_authority("State A Root"), new_authority("State A Root")
    _, new_with_old = link_certificates(old, new)

    said = validate(_end(new), [new.certificate, new_with_old], [old.certificate], at=NOW)

    assert said.accepted, said.why


def test_after_a_change_of_the_cas_key_each_certificate_goes_by_the_crl_of_its_own_key() -> None:
    old, new = new_authority("State A Root"), new_authority("State A Root")
    links = link_certificates(old, new)
    roots = [old.certificate, new.certificate]
    leaf = _end(old)
    of_new = _crl(new, validity=Validity(NOW, NOW + timedelta(days=60)))  # newer than that of the old key

    for known in ((), links):
        for crls in ([_crl(old, leaf), of_new], [of_new, _crl(old, leaf)]):
            said = validate(leaf, known, roots, crls, at=NOW)
            assert said.revoked, said


def test_the_crl_of_the_cas_new_key_speaks_for_the_old_one_where_a_link_leads_to_it() -> None:
    old, new = new_authority("State A Root"), new_authority("State A Root")
    leaf = _end(old)
    roots = [old.certificate, new.certificate]

    linked = validate(leaf, link_certificates(old, new), roots, [_crl(new, leaf)], at=NOW)
    unlinked = validate(leaf, (), roots, [_crl(new, leaf)], at=NOW)

    assert linked.revoked
    assert unlinked.revocation_unknown == (old.certificate.subject,)


def _odd(root: Issuer, public_key: object, *extensions: tuple[x509.ExtensionType, bool]) -> x509.Certificate:
    """An end certificate such as `issue` never makes."""
    key_id = x509.AuthorityKeyIdentifier.from_issuer_public_key(root.certificate.public_key())  # type: ignore[arg-type]
    builder = (
        x509.CertificateBuilder()
        .subject_name(named("CN=odd"))
        .issuer_name(root.certificate.subject)
        .public_key(public_key)  # type: ignore[arg-type]
        .serial_number(x509.random_serial_number())
        .not_valid_before(MONTH.not_before)
        .not_valid_after(MONTH.not_after)
        .add_extension(key_id, False)
    )
    for extension, critical in extensions:
        builder = builder.add_extension(extension, critical)
    return builder.sign(root.key, hashes.SHA256())


@pytest.mark.parametrize(
    ("key", "words"),
    [
        (rsa.generate_private_key(public_exponent=65537, key_size=1024), "its RSA key has 1024 bits, and 2048 is"),
        (ec.generate_private_key(ec.SECP192R1()), "its ECDSA key has 192 bits, and 224 is the least"),
    ],
)
def test_weak_keys_are_refused_by_cryptography(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey, words: str) -> None:
    root = new_authority("State A Root")

    said = validate(_odd(root, key.public_key()), (), [root.certificate], at=NOW)

    assert not said.accepted
    assert said.decided_by is Decision.CRYPTOGRAPHY
    assert said.why.startswith(f"cryptography refuses it: {words}")
    assert said.why.endswith("OpenSSL accepts it.")


def test_a_weak_ca_is_nothing_that_one_library_does_not_know() -> None:
    weak = ec.generate_private_key(ec.SECP192R1())
    name = named("CN=Weak Root")
    root = (
        x509.CertificateBuilder(name, name, weak.public_key(), x509.random_serial_number())
        .not_valid_before(MONTH.not_before)
        .not_valid_after(MONTH.not_after)
        .add_extension(x509.BasicConstraints(True, None), True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(weak.public_key()), False)
        .add_extension(_CA_USAGE, True)
        .sign(weak, hashes.SHA256())
    )

    said = validate(_odd(Issuer(root, weak), P_256.public_key()), (), [root], at=NOW)

    assert not said.accepted
    assert said.decided_by is Decision.CRYPTOGRAPHY


@pytest.mark.parametrize("digest", ["sha1", "md5"])
def test_a_broken_hash_is_refused_in_a_path_that_one_library_does_not_know(digest: str, tmp_path: Path) -> None:
    """OpenSSL takes any hash, and `cryptography` gives up at the Ed25519 key of the root."""
    top, key = key_of(KeyType.ED25519), key_of(KeyType.RSA_2048)
    root = Issuer(issue_root(top, named("CN=State A Root"), MONTH), top)
    below = issue(root, key.public_key(), named("CN=below"), (), CertificateProfile.INTERMEDIATE, MONTH)
    ca, ca_key, extensions = tmp_path / "ca.pem", tmp_path / "ca.key", tmp_path / "extensions"
    ca.write_bytes(below.public_bytes(Encoding.PEM))
    ca_key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    extensions.write_text(
        "basicConstraints=critical,CA:FALSE\nauthorityKeyIdentifier=keyid\nsubjectAltName=DNS:a.example"
    )
    csr = create_csr(P_256, named("CN=leaf"), (), CertificateProfile.TLS_CLIENT).public_bytes(Encoding.PEM)
    given = ("-CA", ca, "-CAkey", ca_key, "-extfile", extensions, "-days", "9")
    saids = []
    for hashed in (digest, "sha256"):
        pem = run_openssl("x509", "-req", *given, f"-{hashed}", data=csr)
        leaf = x509.load_pem_x509_certificate(pem[pem.index("-----BEGIN") :].encode())
        saids.append(validate(leaf, [below], [root.certificate], at=datetime.now(UTC)))

    assert [said.accepted for said in saids] == [False, True]
    assert saids[0].decided_by is Decision.CRYPTOGRAPHY
    assert f"signed with {digest.upper()}, which can be forged" in saids[0].why


def test_an_unknown_critical_extension_is_refused() -> None:
    root = new_authority("State A Root")
    strange = x509.UnrecognizedExtension(x509.ObjectIdentifier("1.3.6.1.4.1.99999.1"), b"\x05\x00")

    said = validate(_odd(root, P_256.public_key(), (strange, True)), (), [root.certificate], at=NOW)
    tolerated = validate(_odd(root, P_256.public_key(), (strange, False)), (), [root.certificate], at=NOW)

    assert not said.accepted
    assert said.cryptography.answer is Answer.REFUSED
    assert tolerated.accepted


def test_only_a_ca_has_name_constraints() -> None:
    root = new_authority("State A Root")
    limit = x509.NameConstraints([x509.DNSName("a.example")], None)

    said = validate(_odd(root, P_256.public_key(), (limit, True)), (), [root.certificate], at=NOW)

    assert not said.accepted
    assert said.why == "cryptography refuses it: it is not a CA, and has name constraints. OpenSSL accepts it."


def test_what_rfc_5280_asks_of_a_ca_is_asked_of_roots_too() -> None:
    key = generate(KeyType.P_256)
    name = named("CN=Old Root")
    bare = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(MONTH.not_before)
        .not_valid_after(MONTH.not_after)
        .add_extension(x509.BasicConstraints(True, None), True)
        .sign(key, hashes.SHA256())  # type: ignore[arg-type]
    )

    said = validate(_odd(Issuer(bare, key), P_256.public_key()), (), [bare], at=NOW)

    assert not said.accepted
    assert said.decided_by is Decision.OPENSSL


def test_a_refusal_is_reported_together_with_unsupported_features() -> None:
    key = key_of(KeyType.ED25519)
    root = Issuer(issue_root(key, named("CN=State A Root"), MONTH), key)
    leaf = (
        x509.CertificateBuilder()
        .subject_name(named("CN=odd"))
        .issuer_name(root.certificate.subject)
        .public_key(ec.generate_private_key(ec.SECP192R1()).public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(MONTH.not_before)
        .not_valid_after(MONTH.not_after)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), False)  # type: ignore[arg-type]
        .sign(key, None)  # type: ignore[arg-type]
    )

    said = validate(leaf, (), [root.certificate], at=NOW)

    assert not said.accepted
    assert said.cryptography.answer is Answer.REFUSED


def test_name_constraints_must_be_critical() -> None:
    key, name = generate(KeyType.P_256), named("CN=Lax Root")
    lax = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(MONTH.not_before)
        .not_valid_after(MONTH.not_after)
        .add_extension(x509.BasicConstraints(True, None), True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False)
        .add_extension(_CA_USAGE, True)
        .add_extension(x509.NameConstraints([x509.DNSName("a.example")], None), False)
        .sign(key, hashes.SHA256())  # type: ignore[arg-type]
    )

    assert not validate(_end(Issuer(lax, key)), (), [lax], at=NOW).accepted
