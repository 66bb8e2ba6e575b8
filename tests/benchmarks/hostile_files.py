"""Damaged certificates, CSRs, CRLs, PKCS#12 files, trust bundles and OCSP requests, 100,000 of each: none may raise
anything but its refusal, none may take over two seconds of CPU. `hostile_files.py [KIND ...] [--count N] [--seed N]`"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import ocsp

from labconsole.errors import BadInput
from labconsole.security.x509 import cms, parsing, pem_and_der
from labconsole.security.x509.csrs import judge_csr
from labconsole.security.x509.issuing import Issuer, link_certificates
from labconsole.security.x509.names import name_as_text, short_name
from labconsole.security.x509.pkcs12_opening import open_here
from labconsole.security.x509.validation.validator import validate
from labconsole.security.x509.validity import Validity
from labconsole_certificates.describing.pki_objects import describe
from labconsole_certificates.revocation.ocsp_answers import NotRevoked, answer
from labconsole_certificates.trust.bundle_format import BundleContent, encode
from labconsole_certificates.trust.bundle_inspection import inspect_bundle
from tests.helpers.authorities import new_authority
from tests.helpers.der_mutations import der_mutations
from tests.helpers.mutations import mutations
from tests.helpers.pki_samples import PASSWORD, Samples

LONGEST_S = 2.0
AT = datetime.now(UTC).replace(microsecond=0)
DAY = Validity.for_days(1)


def read_all(data: bytes, samples: Samples) -> None:
    """Read, describe and judge what a person would drop on the window."""
    root = samples.authority.certificate
    for thing in parsing.read(data, PASSWORD):
        describe(thing, AT)
        match thing:
            case x509.Certificate():
                short_name(thing), name_as_text(thing.issuer)
                validate(thing, [], [root], [], at=AT)
                validate(samples.certificate, [thing], [root], [], at=AT)
            case x509.CertificateSigningRequest():
                short_name(thing), judge_csr(thing)
            case x509.CertificateRevocationList():
                validate(samples.certificate, [], [root], [thing], at=AT)


def bundle_content(root: Issuer, samples: Samples) -> BundleContent:
    """What a State with two roots would hand to others."""
    successor = new_authority("Beta Root")
    return BundleContent(
        state="Bêta",
        domain="beta.example",
        sequence=3,
        made=AT,
        next_update=AT + timedelta(days=30),
        roots=(root.certificate, successor.certificate),
        intermediates=(),
        links=link_certificates(root, successor),
        crls=(),
        trusted=("ab" * 32, "cd" * 32),
    )


def take_bundle(data: bytes) -> None:
    """Look into a bundle, and describe the message that carries it."""
    describe(cms.read(data), AT)
    inspect_bundle(data)


def kinds() -> dict[str, tuple[bytes, Callable[[bytes], object]]]:
    """By its name each kind: a good file, and what is done with each damaged one."""
    samples = Samples.made()
    root = new_authority("Beta Root")
    content = encode(bundle_content(root, samples))
    request = ocsp.OCSPRequestBuilder().add_certificate(
        samples.certificate, samples.authority.certificate, hashes.SHA256()
    )
    asked = request.add_extension(x509.OCSPNonce(bytes(16)), critical=False).build().public_bytes(Encoding.DER)
    authority = samples.authority
    every = lambda data: read_all(data, samples)  # noqa: E731
    return {
        "csr": (samples.files["csr"], every),
        "crl": (samples.files["crl"], every),
        "certificate": (samples.files["certificate"], every),
        "pkcs12": (samples.files["pkcs12"], every),
        "bundle": (cms.sign(content, root.certificate, root.key), take_bundle),
        "signed-again": (content, lambda data: take_bundle(cms.sign(data, root.certificate, root.key))),
        "ocsp": (asked, lambda data: answer(data, authority.certificate, authority, lambda _: NotRevoked.GOOD, DAY)),
    }


def tried(name: str, damaged: Iterator[bytes], use: Callable[[bytes], object]) -> bool:
    """Use each damaged file, and print how it went; whether nothing was raised but refusals, and none took too long."""
    read = refused = faults = late = 0
    longest = 0.0
    for data in damaged:
        begun = time.process_time()
        try:
            use(data)
            read += 1
        except BadInput:
            refused += 1
        except Exception:  # noqa: BLE001 - this is what is looked for
            faults += 1
            if faults <= 5:
                print(f"{name}: {data.hex()}\n{traceback.format_exc()}")
        took = time.process_time() - begun
        longest, late = max(longest, took), late + (took > LONGEST_S)
    print(
        f"{name}: {read + refused + faults:,} damaged files, {refused:,} refused, {read:,} read, "
        f"{faults} other faults, longest {longest * 1000:.0f} ms, {late} over {LONGEST_S:g} s",
        flush=True,
    )
    return not faults and not late


def main() -> int:
    """Exit code 1: something was raised, or took too long."""
    parser = argparse.ArgumentParser(description=__doc__)
    available = kinds()
    parser.add_argument("kind", nargs="*", help=f"of {', '.join(available)}; default: all")
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=20261122)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    pem_and_der.open_in_child = open_here  # type: ignore[assignment]  # a process for each would take hours
    half = arguments.count // 2
    fine = True
    for name in arguments.kind or available:
        good, use = available[name]
        use(good)
        damaged = chain(mutations(good, half, arguments.seed), der_mutations(good, half, arguments.seed))
        fine &= tried(name, damaged, use)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
