"""How long it takes to issue: a certificate, a CRL, an OCSP answer, for every type of CA key.

    python tests/benchmarks/issuing.py [--repeats 50] [--revoked 1000]

Prints CPU time in milliseconds, medians: of this process alone, so that what else runs on the machine counts little.
The end certificates hold P-256 keys. A figure of this machine at this moment, never a test.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from datetime import UTC, datetime

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import ocsp

from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.crl_issuing import Revoked, issue_crl
from labconsole.security.x509.issuing import Issuer, issue, issue_root
from labconsole.security.x509.key_types import TITLES, KeyType, generate
from labconsole.security.x509.names import name_from_text
from labconsole.security.x509.validity import Validity
from labconsole_certificates.revocation.ocsp_answers import NotRevoked, answer

_WEEK = Validity.for_days(7)
_SUBJECT = name_from_text("CN=Broker,C=SG")
_HOST = [x509.DNSName("broker.a.example")]


def main() -> None:
    """Measure every type of key, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=50)
    parser.add_argument("--revoked", type=int, default=1000)
    arguments = parser.parse_args()
    print(f"{'CA key':12} {'certificate':>12} {f'CRL of {arguments.revoked:,}':>14} {'OCSP answer':>12}  (ms of CPU)")
    for type in KeyType:
        figures = [_median_ms(job, arguments.repeats) for job in _jobs(type, arguments.revoked)]
        print(f"{TITLES[type]:12} {figures[0]:12.2f} {figures[1]:14.2f} {figures[2]:12.2f}")


def _jobs(type: KeyType, revoked: int) -> tuple[Callable[[], object], ...]:
    key = generate(type)
    root = Issuer(issue_root(key, name_from_text("CN=State A Root,C=SG"), Validity.for_days(30)), key)
    public_key = generate(KeyType.P_256).public_key()

    def certificate() -> x509.Certificate:
        return issue(root, public_key, _SUBJECT, _HOST, CertificateProfile.TLS_SERVER, _WEEK)

    made = ocsp.OCSPRequestBuilder().add_certificate(certificate(), root.certificate, hashes.SHA256()).build()
    request = made.public_bytes(Encoding.DER)
    now = datetime.now(UTC)
    entries = [Revoked(serial, now, x509.ReasonFlags.superseded) for serial in range(1, revoked + 1)]
    return (
        certificate,
        lambda: issue_crl(root, entries, 1, _WEEK),
        lambda: answer(request, root.certificate, root, lambda _: NotRevoked.GOOD, _WEEK),
    )


def _median_ms(job: Callable[[], object], repeats: int) -> float:
    taken = []
    for _ in range(repeats):
        begun = time.process_time_ns()
        job()
        taken.append((time.process_time_ns() - begun) / 1e6)
    return statistics.median(taken)


if __name__ == "__main__":
    main()
