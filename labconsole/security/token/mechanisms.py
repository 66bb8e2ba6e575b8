"""Terms for tokens: kinds of keys, wrap mechanisms with the choice of one, and a token's identity.

Free of python-pkcs11: the window uses these terms and never loads a module.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum, StrEnum

from labconsole.security.token.errors import MechanismMissingError


class KeyKind(StrEnum):
    """Kinds of key pairs that a token generates for signatures."""

    RSA_2048 = "rsa-2048"
    RSA_3072 = "rsa-3072"
    RSA_4096 = "rsa-4096"
    P_256 = "p-256"


_AES_GCM = 0x1087
_FIRST_VENDOR = 0x80000000
"""CKM_VENDOR_DEFINED: numbers from here on are vendor-defined."""


class WrapMechanism(IntEnum):
    """Mechanisms that wrap a private key with an AES key and detect a change (PKCS#11 v3.0, section 2.8).

    What 0x210A does differs between modules (`labconsole.security.token.cryptoki.mechanism_probes`): a wrapped key
    is stored with its mechanism, and moved to another module only if that one's probe gives the same answer.
    """

    KEY_WRAP = 0x2109
    """CKM_AES_KEY_WRAP: RFC 3394."""
    KEY_WRAP_PAD = 0x210A
    """CKM_AES_KEY_WRAP_PAD: modules differ in its meaning."""
    KEY_WRAP_KWP = 0x210B
    """CKM_AES_KEY_WRAP_KWP: RFC 5649."""

    @classmethod
    def _missing_(cls, value: object) -> WrapMechanism | None:
        """AES-GCM or a vendor's mechanism, which is tried only where a token's configuration names it."""
        if not isinstance(value, int) or not (value == _AES_GCM or _FIRST_VENDOR <= value < 1 << 64):
            return None
        member = int.__new__(cls, value)
        member._name_ = "GCM" if value == _AES_GCM else f"0x{value:X}"
        member._value_ = value
        cls._value2member_map_[value] = member
        return member

    @property
    def title(self) -> str:
        """`AES_KEY_WRAP_KWP (0x210B)`, or `vendor mechanism 0x80000171`."""
        return f"vendor mechanism 0x{self:X}" if self >= _FIRST_VENDOR else f"AES_{self.name} (0x{self:X})"


AES_GCM = WrapMechanism(_AES_GCM)
"""CKM_AES_GCM, with a random nonce of 12 bytes before the wrapped key (NIST SP 800-38D)."""


@dataclass(frozen=True)
class TokenIdentity:
    """Identity of a token and of its module; versions as the module reports them, such as "2.6"."""

    label: str
    serial: str
    manufacturer: str
    model: str
    module: str
    library_version: str
    cryptoki_version: str


class WrapBehaviour(StrEnum):
    """How a mechanism wraps known values with a known key."""

    RFC3394 = "RFC 3394"
    RFC3394_ZERO_PADDED = "RFC 3394 after padding with zeros to 8 bytes"
    RFC3394_PKCS7 = "RFC 3394 after PKCS #7 padding"
    RFC5649 = "RFC 5649"
    RFC5649_ZERO_PADDED = "RFC 5649 after padding with zeros to 8 bytes"
    AES_GCM = "AES-GCM with a nonce of 12 bytes and a tag of 16"
    UNKNOWN = "unknown"
    ABSENT = "not offered"
    NOT_TESTABLE = "not testable: the module takes no known key"


@dataclass(frozen=True)
class WrapProbe:
    """The observed behaviour of one wrap mechanism of a module.

    `keys` says for each kind that was tried whether a wrapped key signs again; the two `refuses_...` apply to all of
    those, and are False where there is none. `detail` says what failed, with the module's own return values.
    """

    mechanism: WrapMechanism
    behaviour: WrapBehaviour
    keys: Mapping[KeyKind, bool]
    refuses_tampered: bool
    refuses_second_wrap: bool
    detail: str = ""


_PREFERRED = (WrapMechanism.KEY_WRAP_KWP, WrapMechanism.KEY_WRAP_PAD, WrapMechanism.KEY_WRAP)


def probed_kind(kind: KeyKind) -> KeyKind:
    """The kind of the keys that are probed for keys of `kind`."""
    return KeyKind.P_256 if kind is KeyKind.P_256 else KeyKind.RSA_2048


def choose_mechanism(probes: Iterable[WrapProbe], kind: KeyKind) -> WrapMechanism:
    """The first mechanism that wraps keys of `kind` and refuses a changed one.

    Order: those that the token's configuration names, then 0x210B, 0x210A, 0x2109.

    RSA keys of every size are wrapped alike: those of 2048 bits were probed for all.

    Raises:
        MechanismMissingError: there is none; the sentence names the module's mechanisms.
    """
    by_mechanism = {probe.mechanism: probe for probe in probes}
    tried = probed_kind(kind)
    named = tuple(mechanism for mechanism in by_mechanism if mechanism not in _PREFERRED)
    for mechanism in (*named, *_PREFERRED):
        probe = by_mechanism.get(mechanism)
        if probe is not None and probe.keys.get(tried, False) and probe.refuses_tampered:
            return mechanism
    there = [_summary(probe) for probe in by_mechanism.values() if probe.behaviour is not WrapBehaviour.ABSENT]
    raise MechanismMissingError(
        f"The token has no mechanism that wraps {kind} keys and refuses changed ones "
        f"({'; '.join(there) or 'it offers no AES key wrap'}): use another token, or keys of another kind."
    )


def _summary(probe: WrapProbe) -> str:
    carried = [kind.value for kind, signs in probe.keys.items() if signs]
    faults = "" if probe.refuses_tampered or not carried else ", but takes changed ones"
    return f"{probe.mechanism.name} carries {' and '.join(carried) or 'no'} keys{faults}"
