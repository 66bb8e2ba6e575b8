"""The distribution centre (DC): serves published lists to HTTP GET, by the paths of TS 102 941, annex D.

It holds no key: a list is right by its signature, wherever it comes from.
"""

from __future__ import annotations

import re

from labconsole.errors import UserError
from labconsole_v2x.pki.http_transport import CRL_TYPE, CTL_TYPE, UnknownListError
from labconsole_v2x.pki.lists.published_lists import Kind, PublishedLists

_PATH = re.compile(r"/?get(ectl|ctl|crl)(?:/([0-9A-Fa-f]{16}))?(?:/(0|[1-9][0-9]{0,2}))?/?")


class DistributionCentre:
    """Answers GET with the lists of a folder; any thread may call it."""

    def __init__(self, lists: PublishedLists) -> None:
        self._lists = lists

    def answer_get(self, path: str) -> tuple[str, bytes]:
        """The content type and octets of a list. Raises `UnknownListError`.

        `getectl`, `getectl/<HashedId8>`, `getctl/<HashedId8>` and `getcrl/<HashedId8>`; with `/<sequence>` the delta
        that leads to this sequence.
        """
        match = _PATH.fullmatch(path.partition("?")[0])
        if match is None:
            raise UnknownListError("the path is not that of a list")
        kind, signer, sequence = Kind(match[1]), match[2], match[3]
        if kind is Kind.CRL and sequence is not None:
            raise UnknownListError("a CRL has no deltas")
        try:
            octets = self._lists.find(kind, self._signer(kind, signer), None if sequence is None else int(sequence))
        except UserError as error:
            raise UnknownListError("the list cannot be read") from error
        if octets is None:
            raise UnknownListError("no such list is published")
        return CRL_TYPE if kind is Kind.CRL else CTL_TYPE, octets

    def _signer(self, kind: Kind, given: str | None) -> bytes:
        if given is not None:
            return bytes.fromhex(given)
        signers = self._lists.signers(kind)
        if kind is not Kind.ECTL or len(signers) != 1:
            raise UnknownListError("name the signer by its HashedId8")
        return signers[0]
