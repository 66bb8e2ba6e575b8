"""Changes of States, their keys, and the identities that trials take by name."""

from __future__ import annotations

import unicodedata

from sqlalchemy import delete
from sqlalchemy.dialects.sqlite import insert as upsert

from labconsole.errors import BadInput
from labconsole.security.pki import schema
from labconsole.security.pki.audited_changes import Changing
from labconsole.security.pki.records import FileKey, IdentityRecord, KeyRecord, State, TokenKey
from labconsole.security.pki.tables import KEYS, STATES
from labconsole.security.x509.fingerprints import key_fingerprint
from labconsole.security.x509.key_types import PublicKey, type_of

_LONGEST_NAME = 64


class KeyChanges(Changing):
    """Methods take ids and return what the database then holds. They raise StoreError or BadInput, nothing changed."""

    def add_state(self, name: str, domain: str = "", *, local: bool = True) -> State:
        """Add a State. Raises BadInput: no name, or it is taken."""
        name = self._free_name(name)
        number = self._insert(STATES, name=name, domain=domain, local=local, made=self.at)
        self.note("added State", name, detail=_nature(local, domain))
        return self._state(number)

    def claim_domain(self, state: int, domain: str) -> State:
        """A State has these domains (`domains.domains_from_text`) from now on: the operator has confirmed them."""
        old = self._state(state)
        self._update(STATES, state, domain=domain)
        detail = f"{domain or 'none: any name'}, confirmed by the operator; was {old.domain or 'none'}"
        self.note("claimed domain", old.name, detail=detail)
        return self._state(state)

    def update_state(self, state: int, *, name: str | None = None, local: bool | None = None) -> State:
        """Change what is given. Raises BadInput: no name, or it is taken."""
        old = self._state(state)
        new_name = old.name if name is None else self._free_name(name, but=state)
        new_local = old.local if local is None else local
        self._update(STATES, state, name=new_name, local=new_local)
        self.note("changed State", new_name, detail=f"was {old.name}, {_nature(old.local, old.domain)}")
        return self._state(state)

    def add_key(self, state: int, label: str, public_key: PublicKey, place: FileKey | TokenKey) -> KeyRecord:
        """Add a key pair whose private key is stored in `place` already: see `labconsole.security.pki.keys`.

        Certificates and requests with this public key belong to it from now on. A key that is known stays as it is.

        Raises BadInput: the console cannot use keys of this type.
        """
        kind = type_of(public_key)
        if kind is None:
            raise BadInput(
                "The key is of a type that the console cannot use: choose RSA-2048, P-256 or another that it generates."
            )
        spki = key_fingerprint(public_key)
        known = self._all(KEYS, spki_sha256=spki)
        if known:
            return known[0]
        number = self._insert(KEYS, state=state, label=label, type=kind, spki_sha256=spki, place=place, made=self.at)
        where = f"in the token {place.token}" if isinstance(place, TokenKey) else "in an encrypted file"
        self.note("added key", label, spki, f"{kind} of {self._state(state).name}, {where}")
        return self.key(number)

    def name_identity(self, name: str, certificate: int) -> IdentityRecord:
        """Give a certificate with its key the name by which trials take it; the State's own name moves over to it.

        Raises BadInput: no name, another State's identity has it, or the console has no key of the certificate.
        """
        name = _checked(name)
        record = self.certificate(certificate)
        if record.key is None or record.state is None:
            raise BadInput(f"The console has no key of that certificate, so that {name} cannot be an identity.")
        known = next((identity for identity in self.identities() if identity.name == name), None)
        if known is not None and known.state != record.state:
            raise BadInput(f"{name} is an identity of {self._state(known.state).name}: choose another name.")
        named = upsert(schema.identity).values(name=name, state=record.state, certificate=certificate)
        self._connection.execute(named.on_conflict_do_update(set_={"certificate": named.excluded.certificate}))
        self.note("named identity", name, record.sha256, f"of {self._state(record.state).name}")
        return self.identity(name)

    def forget_identity(self, name: str) -> None:
        """Free the name of an identity; its certificate and key stay. Raises StoreError: there is no such identity."""
        record = self.certificate(self.identity(name).certificate)
        self._connection.execute(delete(schema.identity).where(schema.identity.c.name == name))
        self.note("freed the name of identity", name, record.sha256)

    def _free_name(self, name: str, but: int | None = None) -> str:
        name = _checked(name)
        taken = next((state for state in self.states() if state.name.casefold() == name.casefold()), None)
        if taken is not None and taken.id != but:
            raise BadInput(f"There is a State {taken.name} already: give this one another name.")
        return name


def _checked(name: str) -> str:
    """A name in one form of writing. Raises BadInput."""
    name = unicodedata.normalize("NFC", name).strip()
    if not name or len(name) > _LONGEST_NAME or not name.isprintable():
        raise BadInput(f"{name!r} cannot be a name: take 1 to {_LONGEST_NAME} letters, digits, blanks and signs.")
    return name


def _nature(local: bool, domain: str) -> str:
    where = "its keys lie here" if local else "elsewhere"
    return f"{where}, domain {domain}" if domain else where
