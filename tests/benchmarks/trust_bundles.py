"""The time to import the trust bundles of 40 States: one file each, verified, checked, and on disk.

    python tests/benchmarks/trust_bundles.py [--states 40] [--key-type p-256] [--runs 5]

Each State's bundle holds a root, an intermediate, both link certificates of a second root, and two CRLs. Prints, per
run and as medians, the time for the first bundles (fingerprint typed) and for the next ones (signed with a trusted
key). A figure of this machine at this moment, never a test.
"""

from __future__ import annotations

import argparse
import platform
import sqlite3
import statistics
import tempfile
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path

from labconsole.security.pki.store import PkiStore
from labconsole.security.x509 import cms
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.crl_issuing import issue_crl
from labconsole.security.x509.fingerprints import fingerprint
from labconsole.security.x509.issuing import Issuer, issue, issue_root, link_certificates
from labconsole.security.x509.key_types import KeyType, generate
from labconsole.security.x509.names import name_from_text
from labconsole.security.x509.validity import Validity
from labconsole_certificates.trust.bundle_format import BundleContent, encode
from labconsole_certificates.trust.bundle_import import import_bundle

_IMPORTER = "Importer"


@dataclass(frozen=True)
class Bundles:
    """The first and the next bundle of a State, and the fingerprint of the root that signed them."""

    first: bytes
    following: bytes
    fingerprint: str


def bundles_of(number: int, states: int, type: KeyType) -> Bundles:
    """The trust bundle of the State with this number; it trusts all others."""
    old, new = (_root(f"State {number} Root", type) for _ in range(2))
    intermediate = issue(
        old,
        generate(type).public_key(),
        name_from_text(f"CN=State {number} Intermediate"),
        (),
        CertificateProfile.INTERMEDIATE,
        Validity.for_days(900),
    )
    made = datetime.now(UTC).replace(microsecond=0)
    content = BundleContent(
        state=f"State {number}",
        domain=f"state-{number}.example",
        sequence=1,
        made=made,
        next_update=made + timedelta(days=30),
        roots=(old.certificate, new.certificate),
        intermediates=(intermediate,),
        links=link_certificates(old, new),
        crls=tuple(issue_crl(root, [], 1, Validity.for_days(7)) for root in (old, new)),
        trusted=tuple(f"{each:064x}" for each in range(states)),
    )
    signed = [cms.sign(encode(each), old.certificate, old.key) for each in (content, replace(content, sequence=2))]
    return Bundles(*signed, fingerprint(old.certificate))


def _root(name: str, type: KeyType) -> Issuer:
    key = generate(type)
    return Issuer(issue_root(key, name_from_text(f"CN={name}"), Validity.for_days(3650)), key)


def run(bundles: list[Bundles], directory: Path) -> tuple[float, float]:
    """Seconds for all first bundles and for all next ones, into a new database."""
    with PkiStore.open(directory) as store:
        with store.change() as change:
            change.add_state(_IMPORTER)
        begun = time.perf_counter()
        for each in bundles:
            import_bundle(store, _IMPORTER, each.first, each.fingerprint)
        between = time.perf_counter()
        for each in bundles:
            import_bundle(store, _IMPORTER, each.following)
        return between - begun, time.perf_counter() - between


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--states", type=int, default=40)
    parser.add_argument("--key-type", default="p-256", choices=[each.value for each in KeyType])
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    print(f"{platform.platform()}, {platform.machine()}, Python {platform.python_version()}")
    packages = ", ".join(f"{name} {version(name)}" for name in ("cryptography", "asn1crypto", "SQLAlchemy"))
    print(f"{packages}, SQLite {sqlite3.sqlite_version}")
    bundles = [bundles_of(number, arguments.states, KeyType(arguments.key_type)) for number in range(arguments.states)]
    size = statistics.mean(len(each.first) for each in bundles)
    print(f"{arguments.states} States, {arguments.key_type}, {size:,.0f} bytes per bundle")
    print(f"{'run':>6} {'first, s':>10} {'next, s':>10}")
    with tempfile.TemporaryDirectory() as folder:
        taken = [run(bundles, Path(folder) / str(number)) for number in range(arguments.runs)]
    for number, (first, following) in enumerate(taken, 1):
        print(f"{number:>6} {first:>10.3f} {following:>10.3f}")
    medians = [statistics.median(column) for column in zip(*taken, strict=True)]
    print(f"{'median':>6} {medians[0]:>10.3f} {medians[1]:>10.3f}")


if __name__ == "__main__":
    main()
