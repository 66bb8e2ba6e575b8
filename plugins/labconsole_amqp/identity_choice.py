"""Which identities a run uses: the operator's own files where they are named, else the console's lab identities."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from labconsole.security.identities import IdentityFiles
from labconsole.security.lab_identities import BROKER, STATE_A, STATE_B, LabIdentities, lab_identities
from labconsole_amqp.parameters import AmqpParameters


class IdentityChoice:
    """The identities of one run; the lab's are made on first use, and only if one of them is needed.

    Every property raises TrialError if the lab identities cannot be made.
    """

    def __init__(self, parameters: AmqpParameters) -> None:
        self._parameters = parameters
        self.notes: tuple[str, ...] = ()

    @cached_property
    def _lab(self) -> LabIdentities:
        lab = lab_identities()
        self.notes = lab.notes
        return lab

    @property
    def trust(self) -> Path:
        """PEM file with the authority that peers are checked against."""
        return Path(self._parameters.trust) if self._parameters.trust else self._lab.authority_file

    @property
    def broker(self) -> IdentityFiles:
        """The embedded broker's identity."""
        return self._lab.files(BROKER)

    @property
    def sender(self) -> IdentityFiles:
        """The sender's identity, with key."""
        given = self._parameters
        if not given.sender_certificate:
            return self._lab.files(STATE_A)
        return _files(given.sender_certificate, given.sender_key, given.sender_passphrase_file)

    @property
    def receiver(self) -> IdentityFiles:
        """The receiver's identity, with key."""
        given = self._parameters
        if not given.receiver_certificate:
            return self._lab.files(STATE_B)
        return _files(given.receiver_certificate, given.receiver_key, given.receiver_passphrase_file)

    @property
    def sender_certificate(self) -> Path:
        """What a receiver verifies with."""
        given = self._parameters.sender_certificate
        return Path(given) if given else self._lab.files(STATE_A).certificate

    @property
    def receiver_certificate(self) -> Path:
        """What a sender encrypts for."""
        given = self._parameters.receiver_certificate
        return Path(given) if given else self._lab.files(STATE_B).certificate


def _files(certificate: str, key: str, passphrase_file: str) -> IdentityFiles:
    return IdentityFiles(
        certificate=Path(certificate), key=Path(key), passphrase_file=Path(passphrase_file) if passphrase_file else None
    )
