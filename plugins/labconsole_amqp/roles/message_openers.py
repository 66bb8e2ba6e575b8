"""Opens the messages of a receiver: with the keys of now, those of before a rotation, and of refused signers."""

from __future__ import annotations

from collections.abc import Sequence

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey

from labconsole.security.x509.validation.judgement import Purpose
from labconsole_amqp.link.revocation import RevocationCheck
from labconsole_amqp.wire.envelope import Protection
from labconsole_amqp.wire.sign_encrypt import OpenedMessage, Outcome, open_sealed, rsa_public_key

Certificates = tuple[x509.Certificate, ...]
"""A certificate, and then its chain."""


class MessageOpeners:
    """Opens messages; the newest keys first.

    Messages that were protected before a rotation may be on their way when the keys change: they are opened with the
    keys of then. A signer whose certificate is refused stays known, so that its messages are refused for that reason.
    """

    def __init__(self, protection: Protection, expected: bytes) -> None:
        self._protection = protection
        self._expected = expected
        self._signers: list[tuple[Certificates, RSAPublicKey]] = []
        """All that were used in this run, the newest first."""
        self._accepted: frozenset[Certificates] = frozenset()
        self._decryption: list[RSAPrivateKey | None] = [None]

    def use(self, signer: Certificates, decryption_key: RSAPrivateKey | None, check: RevocationCheck | None) -> None:
        """Use these keys first, and judge all signers by `check`. Raises UserError: the signer has no RSA key."""
        key = rsa_public_key(signer[0], "the sender's messages")
        self._signers = [(signer, key), *(one for one in self._signers if one[0] != signer)]
        known = (certificates for certificates, _ in self._signers)
        self._accepted = frozenset(one for one in known if check is None or not check.refusal(one, Purpose.ANY))
        if decryption_key is not None:
            self._decryption = [decryption_key, *(one for one in self._decryption if one not in (None, decryption_key))]

    def open_all(self, messages: Sequence[bytes]) -> list[OpenedMessage]:
        """The outcome of each message."""
        return [self._open(message) for message in messages]

    def _open(self, message: bytes) -> OpenedMessage:
        if self._protection is Protection.NONE:
            return open_sealed(message, self._protection, expected=self._expected)
        first: OpenedMessage | None = None
        for certificates, key in self._signers:
            for decryption_key in self._decryption:
                opened = open_sealed(message, self._protection, key, decryption_key, expected=self._expected)
                if opened.outcome not in (Outcome.SIGNATURE_WRONG, Outcome.DECRYPTION_FAILED):
                    good = opened.outcome is Outcome.OK
                    return opened if certificates in self._accepted or not good else _refused(opened)
                first = first or opened
        assert first is not None
        return first


def _refused(opened: OpenedMessage) -> OpenedMessage:
    """A message that would be good, if the certificate of its signer were not refused."""
    return opened._replace(outcome=Outcome.SIGNER_REFUSED, payload=None)
