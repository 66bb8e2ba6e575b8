"""The pool of keys that each sign one message: generated ahead in a sender's token, and listed for the receivers."""

from __future__ import annotations

import base64
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from labconsole.analysis.number_format import format_duration
from labconsole.clock import now_ns
from labconsole.errors import UserError
from labconsole.model.role import RoleContext
from labconsole.security.token.mechanisms import KeyKind
from labconsole.security.x509.key_types import TITLES
from labconsole_amqp.envelopes.content_format import Content, ContentKeys
from labconsole_amqp.envelopes.formats import EnvelopeFormat
from labconsole_amqp.envelopes.key_list import keys_in, signed_list
from labconsole_amqp.envelopes.signing import Verifier, VerifierPool
from labconsole_amqp.parameters import field_label
from labconsole_amqp.roles.role_keys import token_pin
from labconsole_amqp.roles.role_settings import RoleSettings, require_running
from labconsole_amqp.series import GENERATING_KEYS, KEYS_GENERATED

if TYPE_CHECKING:
    from labconsole.security.token.one_time_keys import OneTimeKey

_EXAMPLES = 1
"""A key more, for the example of a message that a sender shows before the run."""


class MessageKeyPool:
    """The keys of one sender that have not signed yet; any thread may take them."""

    def __init__(self, keys: Iterable[OneTimeKey]) -> None:
        self._keys = deque(keys)
        self._size = len(self._keys)

    def take(self) -> OneTimeKey:
        """The next key. Raises UserError: all have signed."""
        try:
            return self._keys.popleft()
        except IndexError as error:
            raise UserError(
                f"The pool is empty: each of its {self._size - _EXAMPLES:,} keys has signed a message. Set "
                f"{field_label('pool_keys')} higher, or the load lower."
            ) from error


def make_pool(settings: RoleSettings, keys: ContentKeys, context: RoleContext, opened: ExitStack) -> MessageKeyPool:
    """Generate the keys of a sender ahead, in the token of its message identity, and report their signed list.

    `keys` are those of its messages; the keys of the pool sign until `opened` is closed. Raises UserError: the token
    refuses, or the run is stopped meanwhile.
    """
    from labconsole.security.token.one_time_keys import OneTimeKey, opened_one_time_keys

    parameters, token = settings.parameters, settings.message_token
    assert token is not None and keys.signer is not None
    pin = token_pin(settings, context)
    generator = opened.enter_context(opened_one_time_keys(token.token, KeyKind(keys.signer.type.value), pin))
    size, made, began_ns = parameters.pool_size + _EXAMPLES, list[OneTimeKey](), now_ns()
    while len(made) < size:
        require_running(context)
        is_first = not made
        made += generator.generate(size - len(made))
        if is_first and len(made) < size:
            estimate = format_duration((now_ns() - began_ns) / 1e9 * size / len(made))
            context.event(GENERATING_KEYS, f"Generating {size:,} message keys takes the token about {estimate}.")
        context.tick()
    took_ns = sum(one.generate_ns + one.wrap_ns for one in made)
    context.event(
        KEYS_GENERATED,
        f"The token {token.token} has generated and wrapped {size:,} {TITLES[keys.signer.type]} keys in "
        f"{format_duration(took_ns / 1e9)}; they are kept outside of it.",
        keys=size,
        generate_ns=sum(one.generate_ns for one in made),
        wrap_ns=sum(one.wrap_ns for one in made),
    )
    content = signed_list(parameters.envelope, keys, settings.index, (one.public_key for one in made))
    for suffix, octets in (("list", content.octets), ("signature", content.detached_signature)):
        if octets:
            with context.attachment(f"message-keys.{suffix}", "application/octet-stream") as attachment:
                attachment.write(octets)
    context.report(message_keys=[base64.b64encode(part).decode() for part in content])
    return MessageKeyPool(made)


class ListedKeys:
    """A receiver's side of the pools: the lists of its queue's senders; `used` are the ids of keys that have signed."""

    def __init__(self, command: Mapping[str, Any], settings: RoleSettings) -> None:
        """`command` is that of `key_lists_command`, `settings` are the receiver's."""
        address_of = settings.parameters.address_of
        self._lists: dict[int, Sequence[str]] = {
            index: one for index, one in enumerate(command["lists"]) if address_of(index) == settings.address
        }
        self.used: set[bytes] = set()

    def verifier(self, format: EnvelopeFormat, keys: ContentKeys, signer: Verifier) -> VerifierPool:
        """What verifies the messages of its senders by the keys in their lists, which `signer` has signed.

        `keys` are those of their messages. Raises UserError: a list is refused.
        """
        own = replace(keys, verifier=signer)
        contents = ((index, Content(*map(base64.b64decode, one))) for index, one in self._lists.items())
        found = (key for index, content in contents for key in keys_in(format, own, index, content, signer.type))
        return VerifierPool(signer.type, found)
