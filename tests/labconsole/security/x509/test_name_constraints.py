"""Limits of names: what is refused when issuing is what openssl refuses when verifying."""

from __future__ import annotations

import ipaddress
import re

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from labconsole.errors import BadInput
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.issuing import Issuer, issue, issue_root
from labconsole.security.x509.key_types import KeyType
from labconsole.security.x509.name_constraints import outside_name_constraints
from labconsole.security.x509.validity import Validity
from tests.helpers.authorities import named
from tests.helpers.openssl_command import OpensslError, run_openssl
from tests.helpers.x509_keys import key_of

KEY = key_of(KeyType.P_256)
WEEK = Validity.for_days(7)
PLAIN = named("CN=client,O=SG Lab,C=SG")


def dns(text: str) -> x509.GeneralName:
    return x509.DNSName(text)


def ip(text: str) -> x509.GeneralName:
    return x509.IPAddress(ipaddress.ip_network(text) if "/" in text else ipaddress.ip_address(text))


def email(text: str) -> x509.GeneralName:
    return x509.RFC822Name(text)


def uri(text: str) -> x509.GeneralName:
    return x509.UniformResourceIdentifier(text)


def directory(text: str) -> x509.GeneralName:
    return x509.DirectoryName(named(text))


CASES = [
    # permitted, name, whether it may be certified
    (dns("example.sg"), dns("broker.example.sg"), True),
    (dns("example.sg"), dns("EXAMPLE.SG"), True),
    (dns("example.sg"), dns("notexample.sg"), False),
    (dns("example.sg"), dns("example.sg.evil.test"), False),
    (dns("example.sg"), ip("127.0.0.1"), False),
    (dns("example.sg"), ip("::1"), False),
    (dns("example.sg"), email("ops@example.th"), True),
    (ip("192.0.2.0/24"), ip("192.0.2.7"), True),
    (ip("192.0.2.0/24"), ip("192.0.3.7"), False),
    (ip("192.0.2.0/24"), ip("2001:db8::1"), False),
    (email("example.sg"), email("ops@example.sg"), True),
    (email("example.sg"), email("ops@mail.example.sg"), False),
    (email(".example.sg"), email("ops@mail.example.sg"), True),
    (email("ops@example.sg"), email("ops@example.sg"), True),
    (email("ops@example.sg"), email("boss@example.sg"), False),
    (uri("example.sg"), uri("https://example.sg/a"), True),
    (uri("example.sg"), uri("https://www.example.sg/a"), False),
    (uri(".example.sg"), uri("https://www.example.sg:8443/a"), True),
    (directory("O=SG Lab,C=SG"), dns("broker.example.th"), True),
    (directory("O=TH Lab,C=TH"), dns("broker.example.sg"), False),
]


def limited(permitted: x509.GeneralName, root: str = "Root") -> Issuer:
    return Issuer(issue_root(KEY, named(f"CN={root},O=SG Lab,C=SG"), WEEK, name_constraints=[permitted]), KEY)


@pytest.fixture(scope="module")
def verified(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[x509.Certificate, str]]:
    """Of each case the root, and what one call of openssl says of its leaf."""
    folder = tmp_path_factory.mktemp("constraints")
    roots, leaves = [], []
    for number, (permitted, name, _) in enumerate(CASES):
        issuer = limited(permitted, f"Root {number}")
        free = Issuer(issue_root(KEY, issuer.certificate.subject, WEEK), KEY)
        leaf = issue(free, KEY.public_key(), PLAIN, [name], CertificateProfile.TLS_CLIENT, WEEK)
        roots.append(issuer.certificate)
        leaves.append(folder / f"leaf-{number}")
        leaves[-1].write_bytes(leaf.public_bytes(Encoding.PEM))
    (folder / "roots").write_bytes(b"".join(root.public_bytes(Encoding.PEM) for root in roots))
    with pytest.raises(OpensslError) as said:
        run_openssl("verify", "-CAfile", folder / "roots", *leaves)
    accepted = re.findall(r"/leaf-(\d+): OK$", str(said.value), re.MULTILINE)
    refused = re.findall(
        r"(error \d+ at .*)\nerror \S*/leaf-(\d+): verification failed$", str(said.value), re.MULTILINE
    )
    answers = {int(number): "OK" for number in accepted} | {int(number): reason for reason, number in refused}
    assert len(accepted) + len(refused) == len(CASES)
    return [(root, answers[number]) for number, root in enumerate(roots)]


@pytest.mark.parametrize("number", range(len(CASES)))
def test_openssl_refuses_the_same(verified: list[tuple[x509.Certificate, str]], number: int) -> None:
    (_, name, allowed), (root, said) = CASES[number], verified[number]
    assert (outside_name_constraints(PLAIN, [name], [root]) is None) == allowed
    assert said == "OK" if allowed else "subtree violation" in said


def test_a_host_in_the_common_name_alone_counts_too() -> None:
    issuer = limited(dns("example.sg"))
    for subject, names in (("CN=broker.example.th", []), ("CN=x", [dns("broker.example.th")])):
        with pytest.raises(BadInput, match=r"broker\.example\.th is outside the names that Root may certify"):
            issue(issuer, KEY.public_key(), named(subject), names, CertificateProfile.TLS_CLIENT, WEEK)
    assert issue(
        issuer,
        KEY.public_key(),
        named("CN=broker.example.th"),
        [dns("broker.example.sg")],
        CertificateProfile.TLS_CLIENT,
        WEEK,
    )


def test_the_limits_of_every_ca_above_are_kept() -> None:
    root = limited(dns("example.sg"))
    key = key_of(KeyType.P_384)
    made = issue(root, key.public_key(), named("CN=Below"), [], CertificateProfile.INTERMEDIATE, WEEK)
    below = Issuer(made, key, (root.certificate,))
    with pytest.raises(BadInput, match="outside the names"):
        issue(below, KEY.public_key(), PLAIN, [dns("example.th")], CertificateProfile.TLS_CLIENT, WEEK)


def test_an_end_certificate_with_the_name_of_its_ca_is_not_free_of_the_limits() -> None:
    root = limited(dns("example.sg"))
    subject = root.certificate.subject
    with pytest.raises(BadInput, match="outside the names"):
        issue(root, KEY.public_key(), subject, [dns("example.th")], CertificateProfile.TLS_CLIENT, WEEK)
