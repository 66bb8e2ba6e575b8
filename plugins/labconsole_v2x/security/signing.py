"""Signed data of a station (EtsiTs103097Data-Signed, TS 103 097 clause 5.2): payload, header, signer, signature."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from labconsole_v2x.security.encoding import compressed, encode_signed_data, encode_signer, encode_to_be_signed_data
from labconsole_v2x.security.keys import SigningKey, signature_digest
from labconsole_v2x.security.structures import Certificate, Header


class PacketSigner:
    """Signs the packets of one ticket; what all of them share is encoded and hashed once."""

    def __init__(self, certificate: Certificate, key: SigningKey) -> None:
        self._key = key
        self._hash_name = key.curve.hash_name
        self._hash = getattr(hashlib, self._hash_name)
        self._certificate_hash = self._hash(certificate.canonical).digest()
        self._digest_signer = encode_signer(digest=certificate.hashed_id8)
        self._certificate_signer = encode_signer([certificate.octets])

    def sign(self, payload: bytes, header: Header, *, include_certificate: bool) -> bytes:
        """Signed data with the ticket as signer: whole, or its HashedId8. R has the form that the key gives.

        An encryption key in the header is sent compressed: that is the form which is signed (IEEE 1609.2, 6.3.9).
        """
        if header.encryption_key is not None:
            header = replace(header, encryption_key=compressed(header.encryption_key))
        tbs = encode_to_be_signed_data(payload, header)
        digest = self._hash(self._hash(tbs).digest() + self._certificate_hash).digest()
        signer = self._certificate_signer if include_certificate else self._digest_signer
        return encode_signed_data(self._hash_name, tbs, signer, self._key.sign_digest(digest))


def sign_to_be_signed_data(tbs: bytes, key: SigningKey, certificate: Certificate | None) -> bytes:
    """Signed data over an encoded `ToBeSignedData`: the signer is a digest, or "self" without a certificate."""
    hash_name = key.curve.hash_name
    signer = encode_signer(digest=certificate.hashed_id8 if certificate else None)
    digest = signature_digest(hash_name, tbs, certificate.canonical if certificate else b"")
    return encode_signed_data(hash_name, tbs, signer, key.sign_digest(digest))
