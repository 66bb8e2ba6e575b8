"""The work that opening a password-protected file costs: a hostile file may demand hours of key derivation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from asn1crypto import algos, core, keys, pkcs12

from labconsole.errors import BadInput

MOST_ROUNDS = 3_000_000
"""Rounds of all parts of a file together: below two seconds. OpenSSL uses 2,048 for each of three, NSS 600,000."""
MOST_SCRYPT = 2**21
"""N x r x p (RFC 7914, 2): 256 MiB of memory, about a second. OpenSSL takes 2**17."""

_QUICK_HASHES = frozenset({"sha1", "sha224", "sha256"})
"""Hashes for which processors have instructions."""
_SLOW_HASH = 2
"""A round of HMAC-SHA-512 or another hash, in rounds of HMAC-SHA-256: 3,000,000 take three seconds."""

_SCRYPT = "1.3.6.1.4.1.11591.4.11"
"""RFC 7914, 7; asn1crypto has no name for it, and does not parse its parameters."""
_PBMAC1 = "1.2.840.113549.1.5.14"
"""RFC 9579: the rounds of the integrity check are those of its own key derivation. Missing in asn1crypto, too."""
_DEEPEST = 4
"""Depth of bags within bags (RFC 7292, 4.2.6): no known program writes any."""
_UNPARSED = (ValueError, TypeError, KeyError, AttributeError, OverflowError)
"""Exceptions of asn1crypto for faulty DER."""


class _ScryptParameters(core.Sequence):  # type: ignore[misc]  # asn1crypto brings no types
    _fields = [  # noqa: RUF012  # asn1crypto reads it so
        ("salt", core.OctetString),
        ("cost_parameter", core.Integer),
        ("block_size", core.Integer),
        ("parallelization_parameter", core.Integer),
        ("key_length", core.Integer, {"optional": True}),
    ]


class _Pbmac1Parameters(core.Sequence):  # type: ignore[misc]
    _fields = [  # noqa: RUF012
        ("key_derivation_func", algos.KdfAlgorithm),
        ("message_auth_scheme", core.Any),
    ]


def refuse_costly_key(der: bytes, what: str) -> None:
    """Refuse an encrypted PKCS#8 key that takes too long to open, or whose work is unknown. Raises BadInput."""
    _refuse(lambda: [_cost(keys.EncryptedPrivateKeyInfo.load(der)["encryption_algorithm"])], what)


def refuse_costly_pkcs12(der: bytes, what: str) -> None:
    """Refuse a PKCS#12 file that takes too long to open, or whose work is unknown. Raises BadInput.

    The contents of its encrypted parts are known with the password only: it is opened under a time limit, too.
    """
    _refuse(lambda: _pkcs12_costs(pkcs12.Pfx.load(der)), what)


def _refuse(costs: Callable[[], Iterable[float]], what: str) -> None:
    try:
        work = sum(costs())
    except _UNPARSED as error:
        raise BadInput(
            f"{what} is damaged, or protected in a way that is not supported: ask for it again, with PBES2."
        ) from error
    if work > 1.0:
        raise BadInput(f"{what} demands far too much work to open it: ask for one with a usual number of iterations.")


def _pkcs12_costs(pfx: pkcs12.Pfx) -> Iterator[float]:
    if not isinstance(pfx["mac_data"], core.Void):
        yield _mac_cost(pfx["mac_data"])
    for content in pfx.authenticated_safe:
        match content["content_type"].native:
            case "encrypted_data":
                yield _cost(content["content"]["encrypted_content_info"]["content_encryption_algorithm"])
            case "data":
                yield from _bag_costs(pkcs12.SafeContents.load(content["content"].native), _DEEPEST)
            case _:
                raise ValueError("neither data nor encrypted data (RFC 7292, 4.1)")


def _bag_costs(bags: pkcs12.SafeContents, deepest: int) -> Iterator[float]:
    if deepest == 0:
        raise ValueError("bags nested too deep")
    for bag in bags:
        match bag["bag_id"].native:
            case "pkcs8_shrouded_key_bag":
                yield _cost(bag["bag_value"]["encryption_algorithm"])
            case "safe_contents":
                yield from _bag_costs(bag["bag_value"], deepest - 1)


def _mac_cost(mac: pkcs12.MacData) -> float:
    algorithm = mac["mac"]["digest_algorithm"]
    cost = _rounds(mac["iterations"])
    if algorithm["algorithm"].dotted == _PBMAC1:
        cost += _derivation_cost(algorithm["parameters"].parse(_Pbmac1Parameters)["key_derivation_func"])
    return cost


def _cost(algorithm: algos.EncryptionAlgorithm) -> float:
    """The work as a share of the limit."""
    if algorithm["algorithm"].native == "pbes2":
        return _derivation_cost(algorithm["parameters"]["key_derivation_func"])
    return _rounds(algorithm["parameters"]["iterations"])


def _derivation_cost(derivation: algos.KdfAlgorithm) -> float:
    parameters = derivation["parameters"]
    if derivation["algorithm"].dotted == _SCRYPT:
        parameters = parameters.parse(_ScryptParameters)
        factors = [parameters[name].native for name in ("cost_parameter", "block_size", "parallelization_parameter")]
        if min(factors) < 1:
            raise ValueError("a factor that is not positive")
        return float(factors[0] * factors[1] * factors[2] / MOST_SCRYPT)
    quick = parameters["prf"]["algorithm"].native in _QUICK_HASHES
    return _rounds(parameters["iteration_count"]) * (1 if quick else _SLOW_HASH)


def _rounds(number: core.Integer) -> float:
    rounds = number.native
    if rounds < 0:
        raise ValueError("a negative number of rounds")
    return float(rounds / MOST_ROUNDS)
