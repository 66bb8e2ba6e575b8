"""Changes of trust between States: roots and pins, bundles, what was handed over and proven, rotations."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType

from sqlalchemy import insert, update

from labconsole.errors import BadInput
from labconsole.security.pki import schema
from labconsole.security.pki.audited_changes import Changing
from labconsole.security.pki.records import (
    BundleRecord,
    HandoverRecord,
    Item,
    ProofRecord,
    RotationRecord,
    RotationStatus,
    TrustKind,
    TrustRecord,
)
from labconsole.security.pki.tables import BUNDLES, HANDOVERS, PROOFS, ROTATIONS, TRUST
from labconsole.security.x509.names import short_name
from labconsole.store.rows import stored

_ENDED = (RotationStatus.FINISHED, RotationStatus.CANCELLED)
_BEFORE: Mapping[RotationStatus, Collection[RotationStatus]] = MappingProxyType(
    {
        RotationStatus.PREPARING: (),
        RotationStatus.OVERLAP: (RotationStatus.PREPARING,),
        RotationStatus.SWITCHED: (RotationStatus.OVERLAP,),
        RotationStatus.FINISHED: (RotationStatus.SWITCHED,),
        RotationStatus.CANCELLED: (RotationStatus.PREPARING, RotationStatus.OVERLAP),
    }
)
"""What a rotation must be, to become that: of two consoles that take one step, one does."""


class TrustChanges(Changing):
    """Methods take ids and return what the database then holds. They raise StoreError or BadInput, nothing changed."""

    def trust(self, state: int, certificate: int, kind: TrustKind, confirmed: str) -> TrustRecord:
        """A State trusts a certificate from now on, if it does not yet; `confirmed`: how it came to that."""
        for known in self._all(TRUST, state=state, certificate=certificate, kind=kind, withdrawn=None):
            return known
        number = self._insert(
            TRUST, state=state, certificate=certificate, kind=kind, since=self.at, confirmed=confirmed
        )
        self._note_trust("trusted", state, certificate, kind, confirmed)
        return self._all(TRUST, id=number)[0]

    def withdraw_trust(self, trust: int) -> TrustRecord:
        """A State distrusts a certificate. Raises BadInput: it did before."""
        found = self._all(TRUST, id=trust)
        if not found or found[0].withdrawn is not None:
            raise BadInput("That trust was withdrawn before.")
        self._update(TRUST, trust, withdrawn=self.at)
        self._note_trust("withdrew trust in", found[0].state, found[0].certificate, found[0].kind, "")
        return self._all(TRUST, id=trust)[0]

    def add_bundle(
        self,
        *,
        importer: int,
        subject: int,
        sequence: int,
        made: datetime,
        next_update: datetime,
        sha256: str,
        signer: str,
        trusted: Sequence[str],
    ) -> BundleRecord:
        """Note that `importer` imported a bundle of `subject`, or made its own; fields as in BundleRecord.

        Raises BadInput: it had that sequence number before.
        """
        name = self._state(subject).name
        if self._all(BUNDLES, importer=importer, subject=subject, sequence=sequence):
            raise BadInput(f"{self._state(importer).name} has a bundle {sequence} of {name}: ask for a newer one.")
        number = self._insert(
            BUNDLES,
            importer=importer,
            subject=subject,
            sequence=sequence,
            made=made,
            next_update=next_update,
            sha256=sha256,
            signer=signer,
            trusted=tuple(trusted),
        )
        what = "made bundle" if importer == subject else "took in bundle"
        self.note(what, name, sha256, f"number {sequence}, by {self._state(importer).name}")
        return self._all(BUNDLES, id=number)[0]

    def hand_over(self, sender: int, receiver: int, item: Item, sha256: str) -> HandoverRecord:
        """Note that something, with this SHA-256 (hex), went from one State to another."""
        number = self._insert(HANDOVERS, at=self.at, sender=sender, receiver=receiver, item=item, sha256=sha256)
        self.note(f"handed over {item}", f"{self._state(sender).name} to {self._state(receiver).name}", sha256)
        return self._all(HANDOVERS, id=number)[0]

    def add_proof(
        self, client: int, server: int, client_certificate: int, server_certificate: int, detail: str
    ) -> ProofRecord:
        """Note that `client` connected to `server` by TLS with these certificates; `detail`: protocol and cipher."""
        number = self._insert(
            PROOFS,
            at=self.at,
            client=client,
            server=server,
            client_certificate=client_certificate,
            server_certificate=server_certificate,
            detail=detail,
        )
        names = f"{self._state(client).name} to {self._state(server).name}"
        self.note("proved by handshake", names, self.certificate(client_certificate).sha256, detail)
        return self._all(PROOFS, id=number)[0]

    def add_rotation(self, certificate: int, overlap_days: int, peers: Sequence[int]) -> RotationRecord:
        """Begin to replace a certificate. `peers` are States that must confirm.

        Raises BadInput: it is being replaced.
        """
        record = self.certificate(certificate)
        name = short_name(record.certificate)
        if self._all(ROTATIONS, certificate=certificate, ended=None):
            raise BadInput(f"{name} is being rotated: finish or cancel that rotation first.")
        status = RotationStatus.PREPARING
        number = self._insert(
            ROTATIONS, certificate=certificate, status=status, overlap_days=overlap_days, begun=self.at
        )
        self.add_rotation_peers(number, peers)
        self.note("began rotation", name, record.sha256, f"overlap {overlap_days} days, {len(set(peers))} peers")
        return self.rotation(number)

    def add_rotation_peers(self, rotation: int, peers: Sequence[int]) -> None:
        """These States must confirm, too."""
        unless_there = insert(schema.rotation_peer).prefix_with("OR IGNORE")
        for peer in peers:
            self._connection.execute(unless_there, {"rotation": rotation, "peer": peer})

    def advance_rotation(
        self, rotation: int, status: RotationStatus, *, successor: int | None = None
    ) -> RotationRecord:
        """A rotation has come to `status`; `successor` as soon as it is there.

        Raises BadInput: it has ended, or another process has taken that step meanwhile.
        """
        record = self.rotation(rotation)
        certificate = self.certificate(record.certificate)
        name = short_name(certificate.certificate)
        if record.status in _ENDED:
            raise BadInput(f"The rotation of {name} is {record.status}: begin a new one.")
        if record.status not in _BEFORE[status]:
            raise BadInput(
                f"The rotation of {name} is {record.status} by now, so that step is no longer possible: check it again."
            )
        values: dict[str, object] = {"status": status}
        if successor is not None:
            values["successor"] = successor
        if status is RotationStatus.SWITCHED:
            values["switched"] = self.at
        if status in _ENDED:
            values["ended"] = self.at
        self._update(ROTATIONS, rotation, **values)
        self.note("advanced rotation", name, certificate.sha256, status)
        return self.rotation(rotation)

    def confirm_rotation(self, rotation: int, peer: int) -> RotationRecord:
        """A peer has confirmed the successor. Raises BadInput: it is not a peer of the rotation."""
        record = self.rotation(rotation)
        name = self._state(peer).name
        if peer not in record.peers:
            raise BadInput(f"{name} need not confirm this rotation.")
        if peer not in record.confirmed:
            row = schema.rotation_peer.c
            confirmed = update(schema.rotation_peer).values(confirmed=stored(row.confirmed, self.at))
            self._connection.execute(confirmed.where(row.rotation == rotation, row.peer == peer))
            self.note("confirmed rotation", name, self.certificate(record.certificate).sha256)
        return self.rotation(rotation)

    def _note_trust(self, what: str, state: int, certificate: int, kind: TrustKind, detail: str) -> None:
        record = self.certificate(certificate)
        subject = f"{self._state(state).name}: {kind} {short_name(record.certificate)}"
        self.note(what, subject, record.sha256, detail)
