"""Which wrap mechanism of a token serves for keys of a kind, as the probes have seen it."""

from __future__ import annotations

from collections.abc import Iterable

from labconsole.security.token.errors import MechanismMissingError
from labconsole.security.token.mechanisms import KeyKind, WrapBehaviour, WrapMechanism, WrapProbe

_PREFERRED = (WrapMechanism.KEY_WRAP_KWP, WrapMechanism.KEY_WRAP_PAD, WrapMechanism.KEY_WRAP)


def choose_mechanism(probes: Iterable[WrapProbe], kind: KeyKind) -> WrapMechanism:
    """The first that carries keys of `kind` and refuses a changed one: of those that the token's configuration names,
    in its order, then of 0x210B, 0x210A, 0x2109.

    RSA keys of every size are wrapped alike: those of 2048 bits were tried for all.

    Raises:
        MechanismMissingError: there is none; the sentence names what the module has.
    """
    by_mechanism = {probe.mechanism: probe for probe in probes}
    tried = KeyKind.P_256 if kind is KeyKind.P_256 else KeyKind.RSA_2048
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
