"""Time per message of envelope and cryptography, one thread: `python tests/benchmarks/envelope.py [SECONDS]`.

The first table is the source's envelope by payload and step, the second all formats at 237 B: medians of protecting and
opening whole AMQP messages, and the bytes that each adds to the plain message.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path

import cryptography
from cryptography.hazmat.backends.openssl import backend
from cryptography.hazmat.primitives.asymmetric import rsa

from labconsole.clock import now_ns
from labconsole.security.x509.key_types import KeyType
from labconsole_amqp.envelopes.formats import EnvelopeFormat
from labconsole_amqp.envelopes.message_envelope import MessageForm, SourceEnvelope
from labconsole_amqp.wire.envelope import MessageParts, Protection, encode, message_number
from labconsole_amqp.wire.envelope_layout import LayoutMemory, decode
from labconsole_amqp.wire.payload import BUILT_IN, load_payload
from labconsole_amqp.wire.sign_encrypt import Outcome, open_sealed, seal

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.labconsole_amqp.envelope_lab import PROTECTIONS, Ends, ends, private_key

_ROUNDS = 5


def microseconds(call: Callable[[], object], seconds: float) -> float:
    """Best mean of some rounds, in microseconds per call."""
    best = float("inf")
    for _ in range(_ROUNDS):
        calls, began = 0, now_ns()
        while now_ns() - began < seconds / _ROUNDS * 1e9:
            for _ in range(20):
                call()
            calls += 20
        best = min(best, (now_ns() - began) / calls / 1_000)
    return best


def median_us(times: list[int]) -> float:
    """Median in microseconds, which a busy machine moves least."""
    return sorted(times)[len(times) // 2] / 1_000


def main(seconds: float = 0.5) -> None:
    """Print one row per payload."""
    print(f"{platform.machine()}, {platform.system()} {platform.release()}, Python {platform.python_version()}")
    print(
        f"cryptography {cryptography.__version__}, {backend.openssl_version_text()}, labconsole {version('labconsole')}"
    )
    key = rsa.generate_private_key(65537, 2048)
    public_key = key.public_key()
    timed = ("encode", "encode signed", "known layout", "decode", "decode sealed")
    columns = (*timed, "sign", "encrypt", "verify", "decrypt")
    print("us per message".ljust(16) + "".join(column.rjust(15) for column in columns))
    for name in BUILT_IN:
        payload = load_payload(name).data
        plain, signed, sealed = (seal(payload, protection, key, public_key) for protection in Protection)
        message, _ = encode(plain, 1_747_728_000_000, message_id=message_number(0, 1))
        sealed_message, _ = encode(sealed, 1_747_728_000_000)
        calls: tuple[Callable[[], object], ...] = (
            partial(encode, plain, 1_747_728_000_000),
            partial(encode, signed, 1_747_728_000_000),
            partial(LayoutMemory().decode, sealed_message),
            partial(decode, message),
            partial(decode, sealed_message),
        )
        figures = [microseconds(call, seconds) for call in calls]
        parts = [seal(payload, Protection.SIGNED_ENCRYPTED, key, public_key) for _ in range(int(400 * seconds))]
        opened = [
            open_sealed(encode(part)[0], Protection.SIGNED_ENCRYPTED, public_key, key, expected=payload)
            for part in parts
        ]
        assert {result.outcome for result in opened} == {Outcome.OK}
        figures += [median_us([part.sign_ns for part in parts]), median_us([part.encrypt_ns for part in parts])]
        figures += [
            median_us([result.verify_ns for result in opened]),
            median_us([result.decrypt_ns for result in opened]),
        ]
        print(f"{name} ({len(payload)} B)".ljust(16) + "".join(f"{figure:15.2f}" for figure in figures))
    print()
    formats(seconds)


def formats(seconds: float) -> None:
    """Print one row per format and protection, measured in turns: a busy moment so falls on all of them."""
    payload = load_payload("fpl-tac").data
    plain = len(encode(MessageParts(payload))[0])
    print(
        f"us per message at {len(payload)} B".ljust(40)
        + "".join(one.rjust(15) for one in ("protect", "open", "added B"))
    )
    cases = [(format, protection) for format in EnvelopeFormat for protection in PROTECTIONS]
    pairs = {case: source_ends(case[1]) if not case[0].is_hardened else ends(*case, expected=payload) for case in cases}
    times: dict[tuple[EnvelopeFormat, Protection], tuple[list[int], list[int]]] = {case: ([], []) for case in cases}
    sizes = {}
    for sequence in range(int(400 * seconds)):
        for case, pair in pairs.items():
            began = now_ns()
            message = pair.sender.protect(payload, message_number(0, sequence)).message
            done = now_ns()
            result = pair.receiver.accept(pair.receiver.open(message))
            opened = now_ns()
            assert result.outcome is Outcome.OK, (case, result)
            times[case][0].append(done - began)
            times[case][1].append(opened - done)
            sizes[case] = len(message) - plain
    for (format, protection), figures in times.items():
        row = "".join(f"{median_us(one):15.1f}" for one in figures) + f"{sizes[format, protection]:15}"
        print(f"{format.value} {protection.value}".ljust(40) + row)


def source_ends(protection: Protection) -> Ends:
    """Both ends of the source's envelope."""
    sender, recipient = private_key(KeyType.RSA_2048, "sender"), private_key(KeyType.RSA_2048, "recipient")
    form = MessageForm(protection)
    return Ends(
        SourceEnvelope(form, signing_key=sender, recipient_key=recipient.public_key()),
        SourceEnvelope(form, verification_key=sender.public_key(), decryption_key=recipient),
    )


if __name__ == "__main__":
    main(*map(float, sys.argv[1:]))
