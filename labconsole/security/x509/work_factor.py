"""How much work a password-protected file asks for: a file may demand hours of key derivation on purpose."""

from __future__ import annotations

from collections.abc import Callable

from asn1crypto import algos, cms, core, keys, pkcs12

from labconsole.security.x509.bad_input import BadInput

MOST_ITERATIONS = 10_000_000
"""Of PBKDF2 or PKCS#12's own derivation: some five seconds. OpenSSL takes 2,048, OWASP advises 600,000."""
MOST_SCRYPT = 2**21
"""N x r x p (RFC 7914, 2): 256 MiB of memory, about a second. OpenSSL takes 2**17."""

_SCRYPT = "1.3.6.1.4.1.11591.4.11"
"""RFC 7914, 7; asn1crypto has no name for it, and does not parse what goes with it."""


class _ScryptParameters(core.Sequence):  # type: ignore[misc]  # asn1crypto brings no types
    _fields = [  # noqa: RUF012  # asn1crypto reads it so
        ("salt", core.OctetString),
        ("cost_parameter", core.Integer),
        ("block_size", core.Integer),
        ("parallelization_parameter", core.Integer),
        ("key_length", core.Integer, {"optional": True}),
    ]


def refuse_costly_key(der: bytes, what: str) -> None:
    """Refuse an encrypted PKCS#8 key that takes too long to open. Raises BadInput; faulty DER is left to its reader."""
    _refuse(lambda: [_cost(keys.EncryptedPrivateKeyInfo.load(der)["encryption_algorithm"])], what)


def refuse_costly_pkcs12(der: bytes, what: str) -> None:
    """Refuse a PKCS#12 file that takes too long to open, as far as that shows without its password. Raises BadInput."""
    _refuse(lambda: _pkcs12_costs(pkcs12.Pfx.load(der)), what)


def _refuse(costs: Callable[[], list[float]], what: str) -> None:
    try:
        highest = max(costs(), default=0.0)
    except (ValueError, TypeError, KeyError, OverflowError):  # asn1crypto, of faulty DER: its reader says so
        return
    if highest > 1.0:
        raise BadInput(f"{what} demands far too much work to open it: ask for one with a usual number of iterations.")


def _pkcs12_costs(pfx: pkcs12.Pfx) -> list[float]:
    costs = []
    if not isinstance(pfx["mac_data"], core.Void):
        costs.append(pfx["mac_data"]["iterations"].native / MOST_ITERATIONS)
    for content in pfx.authenticated_safe:
        match content["content_type"].native:
            case "encrypted_data":
                costs.append(_cost(content["content"]["encrypted_content_info"]["content_encryption_algorithm"]))
            case "data":
                costs += map(_cost, _shrouded(content))
    return costs


def _shrouded(content: cms.ContentInfo) -> list[algos.EncryptionAlgorithm]:
    bags = pkcs12.SafeContents.load(content["content"].native)
    return [
        bag["bag_value"]["encryption_algorithm"] for bag in bags if bag["bag_id"].native == "pkcs8_shrouded_key_bag"
    ]


def _cost(algorithm: algos.EncryptionAlgorithm) -> float:
    """The work as a part of the most that is done."""
    if algorithm["algorithm"].native == "pbes2":
        derivation = algorithm["parameters"]["key_derivation_func"]
        parameters = derivation["parameters"]
        if derivation["algorithm"].dotted == _SCRYPT:
            parameters = parameters.parse(_ScryptParameters)
            work = parameters["cost_parameter"].native * parameters["block_size"].native
            return float(work * parameters["parallelization_parameter"].native / MOST_SCRYPT)
        return float(parameters["iteration_count"].native / MOST_ITERATIONS)
    return float(algorithm["parameters"]["iterations"].native / MOST_ITERATIONS)
