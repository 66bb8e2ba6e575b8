"""Damaged files that the strict parser still accepts are described without an error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from labconsole.errors import BadInput
from labconsole.security.x509 import parsing, pem_and_der
from labconsole.security.x509.pkcs12_opening import open_here
from labconsole_certificates.describing.pki_objects import describe
from tests.helpers.der_mutations import der_mutations
from tests.helpers.mutations import mutations, tenth_and_all
from tests.helpers.pki_samples import PASSWORD, Samples

COPIES = 400
AT = datetime.now(UTC)


@pytest.fixture(autouse=True)
def _no_child(monkeypatch: pytest.MonkeyPatch) -> None:
    """PKCS#12 files are opened in this process: a process for each of thousands would take minutes."""
    monkeypatch.setattr(pem_and_der, "open_in_child", open_here)


@pytest.fixture(scope="module")
def samples() -> Samples:
    return Samples.made()


def describe_each(damaged: Iterator[bytes]) -> int:
    """How many copies the parser accepts; each of them is described."""
    accepted = 0
    for data in damaged:
        try:
            things = parsing.read(data, PASSWORD)
        except BadInput:
            continue
        accepted += 1
        for thing in things:
            assert describe(thing, AT).sections
    return accepted


@pytest.mark.filterwarnings("ignore")  # `cryptography` warns of odd serial numbers and the like
@pytest.mark.parametrize("count", tenth_and_all(COPIES))
@pytest.mark.parametrize("damage", [mutations, der_mutations])
@pytest.mark.parametrize("kind", ["root", "certificate", "csr", "crl", "pkcs12", "open-pkcs12", "key"])
def test_damaged_files_that_are_accepted_are_described(
    samples: Samples, kind: str, damage: Callable[[bytes, int, int], Iterator[bytes]], count: int
) -> None:
    describe_each(damage(dict(samples.files)[kind], count, 20261121))


@pytest.mark.filterwarnings("ignore")
def test_damaged_pem_that_is_accepted_is_described(samples: Samples) -> None:
    assert describe_each(mutations(samples.certificate.public_bytes(Encoding.PEM), COPIES, 5)) > 0
