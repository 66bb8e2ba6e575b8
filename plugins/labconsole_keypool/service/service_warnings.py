"""What a reader of a live run's figures must know."""

from __future__ import annotations

from collections.abc import Iterator

from labconsole.security.token.configuration import is_lab
from labconsole.security.token.mechanisms import KeyKind
from labconsole_keypool.choices import KeySource
from labconsole_keypool.service.service_parameters import ServiceParameters


def warnings(parameters: ServiceParameters) -> Iterator[str]:
    """One sentence each."""
    if parameters.timing:
        faster = (
            f" Everything ran {parameters.speed:g} times faster, and figures are in the device's time."
            if parameters.speed > 1
            else ""
        )
        yield (
            f"Emulated: the token was slowed down to the timing profile {parameters.timing}; the figures are those of "
            f"that device, not of this token.{faster}"
        )
        if parameters.signers > len(parameters.signing_tokens):
            yield (
                f"Each of the {parameters.signers} signers emulates a device of its own: they sign as many devices "
                "would, not as one that they share."
            )
    if parameters.keys is KeySource.POOL and parameters.key_kind is KeyKind.P_256 and not parameters.timing:
        yield "A pool gains nothing for P-256: such a key is generated faster than it is loaded and unwrapped."
    if parameters.keys is KeySource.POOL and not (parameters.pool_at_start or parameters.keys_at_start):
        yield "The pool is empty at the start: requests wait until keys are generated, as without a pool."
    if parameters.time_scale > 1 and not parameters.timing:
        yield (
            f"Requests arrive {parameters.time_scale:g} times faster than the pattern says; the token is as fast as "
            "it is."
        )
    if len(parameters.tokens) > 1 and all(map(is_lab, parameters.tokens)):
        yield "The tokens share one computer's processors: two of them sign no faster than one."
