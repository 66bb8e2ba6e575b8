"""Reading thousands of damaged files, the same ones every time, raises nothing but BadInput."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from labconsole.errors import BadInput
from labconsole.security.x509 import parsing, pem_and_der
from labconsole.security.x509.issuing import Issuer
from labconsole.security.x509.names import short_name
from labconsole.security.x509.pkcs12_opening import open_here
from labconsole.security.x509.validation.validator import validate
from tests.helpers.der_mutations import der_mutations
from tests.helpers.mutations import mutations, tenth_and_all
from tests.helpers.pki_samples import PASSWORD, Samples

EACH = 400
"""Damaged copies of each file by each way of damaging: 400 x 2 x 7, and 400 of PEM."""
AT = datetime.now(UTC)


@pytest.fixture(autouse=True)
def _no_child(monkeypatch: pytest.MonkeyPatch) -> None:
    """PKCS#12 files are opened in this process: a process for each of thousands would take minutes."""
    monkeypatch.setattr(pem_and_der, "open_in_child", open_here)


@pytest.fixture(scope="module")
def samples() -> Samples:
    return Samples.made()


@pytest.fixture(scope="module")
def authority(samples: Samples) -> Issuer:
    return samples.authority


@pytest.fixture(scope="module")
def certificate(samples: Samples) -> x509.Certificate:
    return samples.certificate


@pytest.fixture(scope="module")
def files(samples: Samples) -> dict[str, bytes]:
    return dict(samples.files)


def read_each(mutated: Iterator[bytes]) -> tuple[int, int]:
    """How many files were refused with BadInput, and how many were read whole."""
    refused = accepted = 0
    for data in mutated:
        parsing.kind_of(data)
        try:
            things = parsing.read(data, PASSWORD)
        except BadInput as refusal:
            assert str(refusal).endswith(".") and "\n" not in str(refusal)
            refused += 1
            continue
        accepted += 1
        for thing in things:
            if isinstance(thing, x509.Certificate | x509.CertificateSigningRequest):
                assert short_name(thing)
    return refused, accepted


@pytest.mark.filterwarnings("ignore")  # `cryptography` warns of odd serial numbers and the like
@pytest.mark.parametrize("count", [EACH])  # of a tenth, chance may leave half unrefused
@pytest.mark.parametrize("damage", [mutations, der_mutations])
@pytest.mark.parametrize("kind", ["root", "certificate", "csr", "crl", "pkcs12", "open-pkcs12", "key"])
def test_damaged_files_are_refused_or_read_but_raise_nothing_else(
    files: dict[str, bytes], kind: str, damage: Callable[[bytes, int, int], Iterator[bytes]], count: int
) -> None:
    refused, accepted = read_each(damage(files[kind], count, 20261121))
    assert refused + accepted == count
    assert refused > count / 2, "the damage is hardly any"


@pytest.mark.filterwarnings("ignore")
def test_damaged_pem_is_refused_or_read(certificate: x509.Certificate) -> None:
    refused, accepted = read_each(mutations(certificate.public_bytes(Encoding.PEM), EACH, 5))
    assert refused + accepted == EACH and refused > EACH / 2


def test_the_same_seed_gives_the_same_files(files: dict[str, bytes]) -> None:
    for damage in (mutations, der_mutations):
        assert list(damage(files["csr"], 20, 1)) == list(damage(files["csr"], 20, 1))
        assert list(damage(files["csr"], 20, 1)) != list(damage(files["csr"], 20, 2))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("count", tenth_and_all(EACH))
@pytest.mark.parametrize("damage", [mutations, der_mutations])
def test_damaged_files_that_are_read_can_be_validated(
    files: dict[str, bytes],
    authority: Issuer,
    certificate: x509.Certificate,
    damage: Callable[[bytes, int, int], Iterator[bytes]],
    count: int,
) -> None:
    """OpenSSL reads more strictly in places: what it cannot read is not accepted either."""
    crl = parsing.read_crl(files["crl"])
    for kind in ("certificate", "root", "crl"):
        for data in damage(files[kind], count, 7):
            try:
                [thing] = parsing.read(data)
            except BadInput:
                continue
            if isinstance(thing, x509.CertificateRevocationList):
                validate(certificate, [], [authority.certificate], [thing], at=AT)
            elif kind == "certificate":
                judged = validate(thing, [], [authority.certificate], [], at=AT)
                assert not judged.accepted or thing == certificate
            elif isinstance(thing, x509.Certificate):
                validate(certificate, [thing], [authority.certificate], [crl], at=AT)
