"""Two consoles, one trial: what the other one runs, and what a console that plays one end connects to and does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from labconsole.errors import UserError
from labconsole.model.console_part import ConsolePart
from labconsole.model.trial import Parameters
from labconsole_amqp.choices import TEST_TITLES, Leftover, Loop, Mode
from labconsole_amqp.identity_parameters import IdentityParameters
from labconsole_amqp.parameters import AmqpParameters, field_label
from labconsole_amqp.shaping.shaped_link import ShapedLinkParameters
from labconsole_amqp.wire.envelope import Protection
from labconsole_amqp.wire.payload import BUILT_IN

_AGREED = frozenset({"tls_minimum", "message_keys", "pool_keys"})
"""Parameters next to the identities that concern both ends."""


def _declared_by(model: type[Parameters]) -> frozenset[str]:
    return frozenset(model.model_fields)


LOCAL = (
    _declared_by(IdentityParameters) - _AGREED | _declared_by(ShapedLinkParameters) | {"username", "password_file"}
) - {"server_name"}
"""What means something on one console only: names of its identities, its files, its link."""
OWN = LOCAL | {"host", "port", "server_name"}
"""What each console sets for itself: also its way to the broker."""
_OTHER = {Mode.SENDER: Mode.RECEIVER, Mode.RECEIVER: Mode.SENDER}


def counterpart(parameters: AmqpParameters) -> AmqpParameters | None:
    """What the other console runs; None where this one plays both ends.

    Raises UserError: the payload is a file of this console. Raises ValidationError: the other end cannot run it.
    """
    other = _OTHER.get(parameters.mode)
    if other is None:
        return None
    if files := [name for name in parameters.payload_names if name not in BUILT_IN]:
        raise UserError(
            f"{field_label('payload')} is the file {files[0]} of this console, which the other one does not have: "
            f"choose one of {', '.join(BUILT_IN)}."
        )
    kept: dict[str, Any] = {
        name: value for name, value in parameters.model_dump(mode="json").items() if name not in LOCAL
    }
    if "payload" in kept and parameters.payload not in BUILT_IN:  # a file that a mix does not use
        del kept["payload"]
    return AmqpParameters.model_validate({**kept, "mode": other.value})


def console_part(parameters: AmqpParameters) -> ConsolePart | None:
    """The part of a console that plays one end; None where it plays both."""
    if parameters.mode is Mode.BOTH:
        return None
    sends = parameters.mode is Mode.SENDER
    queues = ", ".join(parameters.addresses)
    ends = parameters.senders if sends else parameters.receivers
    effects = [f"{TEST_TITLES[parameters.test]}.", _connection(parameters, ends)]
    count = parameters.per_sender * parameters.senders
    messages = f"{count:,} messages" if parameters.loop in (Loop.CLOSED, Loop.OPEN) else "messages"
    rate = "" if parameters.loop is Loop.CLOSED else f", {parameters.rate:g} a second by each sender"
    effects.append(f"Sends {messages} to {queues}{rate}." if sends else f"Receives {messages} from {queues}{rate}.")
    effects += _protection(parameters)
    if parameters.compare_clocks:
        requests, replies = parameters.clock_queues(parameters.addresses[0])
        effects.append(f"Compares its clock with that of the other console, over {requests} and {replies}.")
    if parameters.leftover is Leftover.DRAIN:
        effects.append(f"Discards messages that are in {queues} before the run.")
    effects.append("Listens on no port.")
    return ConsolePart(parameters.mode.value, tuple(effects), OWN)


def _protection(parameters: AmqpParameters) -> Iterator[str]:
    """Whose certificate of the other end messages are verified with, or encrypted to."""
    if parameters.mode is Mode.RECEIVER and parameters.protection is not Protection.NONE:
        named = parameters.sender_message_identity or parameters.sender_identity or parameters.sender_certificate
        missing = (
            "the lab's sender on this console, and refuses those of the other console: give its certificate as "
            "sender_certificate"
        )
        yield f"Accepts messages that are signed by {named or missing}."
    elif parameters.mode is Mode.SENDER and parameters.protection is Protection.SIGNED_ENCRYPTED:
        named = parameters.receiver_message_identity or parameters.receiver_identity or parameters.receiver_certificate
        missing = (
            "the lab's receiver on this console, and the other console cannot decrypt them: give its certificate as "
            "receiver_certificate"
        )
        yield f"Encrypts messages to {named or missing}."


def _connection(parameters: AmqpParameters, ends: int) -> str:
    times = "once" if ends == 1 else f"{ends} times"
    place = f"{'amqps' if parameters.tls else 'amqp'}://{parameters.host}:{parameters.port}"
    if parameters.username:
        proof = f"as the user {parameters.username}"
    elif parameters.tls:
        named = parameters.sender_identity if parameters.mode is Mode.SENDER else parameters.receiver_identity
        files = parameters.sender_certificate if parameters.mode is Mode.SENDER else parameters.receiver_certificate
        proof = f"with the identity {named}" if named else f"with {files}" if files else "with the lab's identity"
    else:
        proof = "without a login"
    return f"Connects {times} to the broker {place}, {proof}."
