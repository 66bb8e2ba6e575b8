"""Prints how long path validation, the status of 2,000 certificates, and the handshakes of 40 States take."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import version

import psutil
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from OpenSSL import SSL, crypto

from labconsole.security.certificate_status import all_statuses
from labconsole.security.pki.records import CertificateRecord, CrlRecord, Origin, State, TrustKind, TrustRecord
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.crl_issuing import issue_crl
from labconsole.security.x509.fingerprints import fingerprint
from labconsole.security.x509.issuing import Issuer, issue, issue_root
from labconsole.security.x509.key_types import KeyType, generate
from labconsole.security.x509.validation.validator import Validator
from labconsole.security.x509.validity import Validity
from labconsole_certificates.exchange.handshake import perform_handshake
from labconsole_certificates.exchange.tls_context import TlsCredentials

STATES, LEAVES, JUDGED = 40, 48, 500
NOW = datetime.now(UTC)
YEAR = Validity.for_days(365)
TYPES = (KeyType.P_256, KeyType.RSA_2048, KeyType.ED25519, KeyType.ML_DSA_65)


class Country:
    """A State's root, intermediate, CRLs, and a key for all its end certificates."""

    def __init__(self, number: int, type_: KeyType) -> None:
        self.number = number
        key, below = generate(type_), generate(type_)
        root = issue_root(key, x509.Name.from_rfc4514_string(f"CN=Root {number}"), YEAR)
        self.root = Issuer(root, key)
        name = x509.Name.from_rfc4514_string(f"CN=CA {number}")
        profile = CertificateProfile.INTERMEDIATE
        self.ca = Issuer(issue(self.root, below.public_key(), name, (), profile, YEAR), below, (root,))
        self.crls = tuple(issue_crl(issuer, (), 1, YEAR) for issuer in (self.root, self.ca))
        self.key = generate(type_)

    def issued(self, profile: CertificateProfile, name: str) -> x509.Certificate:
        """An end certificate of the intermediate."""
        subject = x509.Name.from_rfc4514_string(f"CN={name}")
        return issue(self.ca, self.key.public_key(), subject, [x509.DNSName(name)], profile, YEAR)


def seconds(work: Callable[[], object]) -> float:
    """How long it takes, once."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def judgements(type_: KeyType) -> tuple[float, float]:
    """Seconds for one judgement with CRLs, and that over OpenSSL's time for the same path and CRLs alone."""
    country = Country(1, type_)
    leaf = country.issued(CertificateProfile.TLS_CLIENT, "a.example")
    validator = Validator([country.root.certificate], [country.ca.certificate], country.crls, at=NOW)
    store = crypto.X509Store()
    store.add_cert(crypto.X509.from_cryptography(country.root.certificate))
    for crl in country.crls:
        store.add_crl(crl)
    store.set_flags(crypto.X509StoreFlags.CRL_CHECK | crypto.X509StoreFlags.CRL_CHECK_ALL)
    end, between = crypto.X509.from_cryptography(leaf), [crypto.X509.from_cryptography(country.ca.certificate)]

    def alone() -> None:
        for _ in range(JUDGED):
            crypto.X509StoreContext(store, end, between).verify_certificate()

    def both() -> None:
        for _ in range(JUDGED):
            assert validator.validate(leaf).accepted

    pairs = [(seconds(both), seconds(alone)) for _ in range(5)]
    return min(mine for mine, _ in pairs) / JUDGED, sorted(mine / theirs for mine, theirs in pairs)[2]


def snapshot_of(countries: list[Country]) -> Snapshot:
    """What the database would hold of them: two local States that trust all."""
    states = tuple(State(one.number, f"State {one.number}", "", one.number <= 2, NOW) for one in countries)
    certificates: list[CertificateRecord] = []
    crls: list[CrlRecord] = []
    trust: list[TrustRecord] = []

    def add(certificate: x509.Certificate, state: int, profile: CertificateProfile) -> int:
        der = certificate.public_bytes(Encoding.DER)
        number = len(certificates) + 1
        certificates.append(
            CertificateRecord(
                number, der, fingerprint(der), state, None, profile, Origin.IMPORTED, None, None, NOW, None
            )
        )
        return number

    for country in countries:
        issuers = [
            add(country.root.certificate, country.number, CertificateProfile.ROOT),
            add(country.ca.certificate, country.number, CertificateProfile.INTERMEDIATE),
        ]
        for issuer, crl in zip(issuers, country.crls, strict=True):
            der = crl.public_bytes(Encoding.DER)
            times = (YEAR.not_before, YEAR.not_after)
            crls.append(CrlRecord(len(crls) + 1, der, fingerprint(der), issuer, 1, *times))
        for local in (1, 2):
            trust.append(TrustRecord(len(trust) + 1, local, issuers[0], TrustKind.ROOT, NOW, "", None))
        for leaf in range(LEAVES):
            profile = CertificateProfile.TLS_CLIENT
            add(country.issued(profile, f"{leaf}.state{country.number}.example"), country.number, profile)
    return Snapshot(states=states, certificates=tuple(certificates), crls=tuple(crls), trust=tuple(trust))


def handshakes(countries: list[Country]) -> int:
    """Every State's client, certified by the next one, connects to every other's broker."""
    roots = tuple(country.root.certificate for country in countries)
    crls = tuple(crl for country in countries for crl in country.crls)
    clients, servers = [], []
    for country, other in zip(countries, [*countries[1:], countries[0]], strict=True):
        client = other.issued(CertificateProfile.TLS_CLIENT, f"client{country.number}.example")
        server = country.issued(CertificateProfile.TLS_SERVER, f"broker{country.number}.example")
        clients.append(TlsCredentials(client, (other.ca.certificate,), other.key, roots, crls))
        servers.append(TlsCredentials(server, (country.ca.certificate,), country.key, roots, crls))
    done = [
        perform_handshake(client, server)
        for row, client in enumerate(clients)
        for column, server in enumerate(servers)
        if row != column
    ]
    assert all(one.ok for one in done)
    return len(done)


def main() -> None:
    """Print all figures with machine and versions."""
    libraries = ", ".join(f"{name} {version(name)}" for name in ("cryptography", "pyOpenSSL"))
    print(f"{platform.processor() or platform.machine()}, {psutil.cpu_count()} cores, {platform.platform()}")
    print(f"Python {platform.python_version()}, {libraries}, {SSL.OpenSSL_version(SSL.OPENSSL_VERSION).decode()}")
    for type_ in TYPES:
        took, ratio = judgements(type_)
        print(f"path of three with CRLs, {type_}: {took * 1e3:.2f} ms, {ratio:.1f} times OpenSSL alone")
    countries = [Country(number, KeyType.P_256) for number in range(1, STATES + 1)]
    snapshot = snapshot_of(countries)
    first, again = (seconds(lambda: all_statuses(snapshot, NOW)) for _ in range(2))
    print(f"status of {len(snapshot.certificates):,} certificates: {first:.2f} s, again {again:.2f} s")
    begun = time.perf_counter()
    number = handshakes(countries)
    took = time.perf_counter() - begun
    print(f"{number:,} mutual handshakes of {STATES} States: {took:.1f} s, {took / number * 1e3:.1f} ms each")


if __name__ == "__main__":
    main()
