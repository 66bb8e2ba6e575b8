"""A folder of published lists: each is signed with the next sequence, next to the delta from the one before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path

from filelock import FileLock, Timeout

from labconsole.errors import UserError
from labconsole.security.private_files import write_private
from labconsole_v2x.pki.lists.signed_lists import (
    OpenedList,
    RefusedListError,
    read_list,
    sign_revocation_list,
    sign_trust_list,
)
from labconsole_v2x.pki.lists.trust_lists import (
    SEQUENCES,
    Command,
    DeletedCentre,
    DeletedCertificate,
    Entry,
    RevocationList,
    TrustList,
    changes,
)
from labconsole_v2x.pki.request_parts import Content
from labconsole_v2x.pki.station_requests import CertifiedKey

LIST_S = 90 * 86_400
"""The time from a list to its next update: three months, as the EU's certificate policy has at most."""
KEPT_DELTAS = 64
"""So many deltas of a signer are kept; a station further behind gets the full list."""
_LOCK, _LOCK_TIMEOUT_S = ".lists.lock", 60.0


class Kind(StrEnum):
    """The kinds of lists, by the beginning of their files' names."""

    ECTL = "ectl"
    CTL = "ctl"
    CRL = "crl"

    @property
    def content(self) -> Content:
        """The kind of the message."""
        contents = {
            Kind.ECTL: Content.TLM_TRUST_LIST,
            Kind.CTL: Content.ROOT_TRUST_LIST,
            Kind.CRL: Content.REVOCATION_LIST,
        }
        return contents[self]


class PublishedLists:
    """The newest full list of each signer and kind, and its last deltas; any process may publish and read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, kind: Kind, signer: bytes, sequence: int | None = None) -> Path:
        """The file of a list; with a sequence, that of the delta which leads to it."""
        delta = "" if sequence is None else f"-{sequence}"
        return self.folder / f"{kind}-{signer.hex()}{delta}.oer"

    def find(self, kind: Kind, signer: bytes, sequence: int | None = None) -> bytes | None:
        """The octets of a list, None where there is none. Raises UserError."""
        path = self.path(kind, signer, sequence)
        try:
            return path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise UserError(f"The list {path} cannot be read ({error.strerror}): check the folder.") from error

    def signers(self, kind: Kind) -> tuple[bytes, ...]:
        """The HashedId8 of those that have published a list of a kind."""
        paths = self.folder.glob(f"{kind}-{'[0-9a-f]' * 16}.oer")
        return tuple(bytes.fromhex(path.stem.rpartition("-")[2]) for path in sorted(paths))

    def publish_trust_list(
        self, kind: Kind, entries: Iterable[Entry], signer: CertifiedKey, now_us: int, valid_s: int = LIST_S
    ) -> TrustList:
        """Sign a full list with the next sequence, and its delta if there was one before. Raises UserError."""
        listed, certificate = tuple(entries), signer.certificate
        with self._publishing():
            opened = self._newest(kind, signer)
            before = opened.values if opened is not None and isinstance(opened.values, TrustList) else None
            sequence = 0 if before is None else (before.sequence + 1) % SEQUENCES
            issued_us = now_us if opened is None else max(now_us, opened.generation_us + 1)
            next_update_s = issued_us // 1_000_000 + valid_s

            def sign(is_full: bool, commands: tuple[Command, ...]) -> bytes:
                values = TrustList(is_full, sequence, next_update_s, commands)
                return sign_trust_list(values, kind.content, signer.key, certificate, issued_us)

            if before is not None:
                delta = sign(False, changes(_entries(before), listed))
                write_private(self.path(kind, certificate.hashed_id8, sequence), delta)
            self.path(kind, certificate.hashed_id8, (sequence - KEPT_DELTAS) % SEQUENCES).unlink(missing_ok=True)
            write_private(self.path(kind, certificate.hashed_id8), sign(True, listed))
        return TrustList(True, sequence, next_update_s, listed)

    def publish_revocation_list(
        self, entries: Iterable[bytes], signer: CertifiedKey, now_us: int, valid_s: int = LIST_S, *, keep: bool = False
    ) -> RevocationList:
        """Sign a CRL, never with an older time than the one before; `keep`: what that revokes stays revoked.

        Raises UserError.
        """
        with self._publishing():
            opened = self._newest(Kind.CRL, signer)
            if keep and opened is not None and isinstance(opened.values, RevocationList):
                entries = dict.fromkeys((*opened.values.entries, *entries))
            issued_us = now_us if opened is None else max(now_us, opened.generation_us + 1)
            this_update_s = issued_us // 1_000_000
            values = RevocationList(this_update_s, this_update_s + valid_s, tuple(entries))
            octets = sign_revocation_list(values, signer.key, signer.certificate, issued_us)
            write_private(self.path(Kind.CRL, signer.certificate.hashed_id8), octets)
        return values

    def _newest(self, kind: Kind, signer: CertifiedKey) -> OpenedList | None:
        """The newest list of a signer, whatever its times. Raises UserError: it is not one of this signer."""
        certificate = signer.certificate
        octets = self.find(kind, certificate.hashed_id8)
        if octets is None:
            return None
        try:
            return read_list(
                octets,
                lambda content, one: certificate if (content, one) == (kind.content, certificate.hashed_id8) else None,
            )
        except RefusedListError as error:
            path = self.path(kind, certificate.hashed_id8)
            raise UserError(
                f"{path} is not a list of {certificate.name or 'its signer'} ({error.reason}): restore it, since "
                "stations refuse a sequence that starts again."
            ) from error

    def revoked(self, signer: CertifiedKey) -> tuple[bytes, ...]:
        """The HashedId8 in the newest CRL of a root. Raises UserError: it is not one of this root."""
        opened = self._newest(Kind.CRL, signer)
        return opened.values.entries if opened is not None and isinstance(opened.values, RevocationList) else ()

    @contextmanager
    def _publishing(self) -> Iterator[None]:
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with FileLock(self.folder / _LOCK, timeout=_LOCK_TIMEOUT_S, mode=0o600):
                yield
        except Timeout as error:
            raise UserError(f"Another process has been writing {self.folder} for a minute: end it.") from error
        except OSError as error:
            reason = error.strerror or error
            raise UserError(f"{self.folder} cannot be written ({reason}): choose another folder.") from error


def _entries(full: TrustList) -> tuple[Entry, ...]:
    return tuple(one for one in full.commands if not isinstance(one, DeletedCertificate | DeletedCentre))
