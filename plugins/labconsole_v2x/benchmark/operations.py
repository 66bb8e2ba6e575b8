"""The operations of the benchmark, on packets of tickets that this process has created, as often as asked."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import cycle
from random import Random
from typing import Any

from labconsole.clock import now_ns
from labconsole.errors import UserError
from labconsole_v2x.benchmark.benchmark_series import Measured
from labconsole_v2x.messages.geonetworking import encode_basic_header, secured_octets
from labconsole_v2x.messages.its_time import its_us
from labconsole_v2x.security.backends import Backend, generate_key, key_loader
from labconsole_v2x.security.chain import DigestVerifier
from labconsole_v2x.security.issuing import LabPki
from labconsole_v2x.security.keys import SigningKey, integers
from labconsole_v2x.security.reading import read_signature
from labconsole_v2x.security.scanning import scan_certificate, scan_signed_data
from labconsole_v2x.security.signing import PacketSigner
from labconsole_v2x.security.structures import CAM_PSID, Curve, Header
from labconsole_v2x.security.trust import TrustStore
from labconsole_v2x.security.verification import ACCEPTED, CheckSettings, Verifier
from labconsole_v2x.stations.routes import vehicle_route
from labconsole_v2x.stations.sending import CamSender, Identity

_TICKETS = 8
_PACKETS = 1024
"""Different packets, which the executions verify in turn."""
_AGE_S = 3600
_BASIC = encode_basic_header(1000, 1, secured=True)


class PacketOperations:
    """The packets, keys and certificates of the benchmark, and its operations."""

    def __init__(self, backend: Backend, curve: Curve, token: Any) -> None:
        start_s = its_us(time.time_ns()) // 1_000_000 - _AGE_S
        self._curve = curve
        self._load = key_loader(backend, token)
        self._pki = LabPki.create(start_s, root_curve=curve, authority_curve=curve)
        signing = Backend.OPENSSL if backend is Backend.AWS_LC else backend
        self._keys: list[SigningKey] = [generate_key(signing, curve, token) for _ in range(_TICKETS)]
        self._tickets = [self._pki.ticket(key.public_key, start_s) for key in self._keys]
        self._signers = [PacketSigner(*pair) for pair in zip(self._tickets, self._keys, strict=True)]
        self._payloads = self._created_payloads()
        self._now_us = its_us(time.time_ns())
        self._headers = [Header(CAM_PSID, self._now_us + number) for number in range(_PACKETS)]
        self._packets, self._whole = (
            [
                _BASIC
                + self._signers[n % _TICKETS].sign(self._payloads[n], self._headers[n], include_certificate=whole)
                for n in range(_PACKETS)
            ]
            for whole in (False, True)
        )
        self._digests = [os.urandom(32 if curve.size == 32 else 48) for _ in range(_PACKETS)]
        verify = self._load(self._tickets[0].verification_key)
        self._known = self._trust(known=True)
        made = ((read_signature(self._keys[0].sign_digest(digest), 0)[0], digest) for digest in self._digests)
        self._raw = [(verify, *integers(signature), digest) for signature, digest in made]

    def _created_payloads(self) -> list[bytes]:
        """CAMs of a moving vehicle, in BTP-B and GeoNetworking, without security."""
        route, sender = vehicle_route(Random(1)), CamSender(Identity.of(bytes(range(8))))
        return [sender.create(route.at(number / 10)).frame[14 + len(_BASIC) :] for number in range(_PACKETS)]

    def measure(self, operation: Measured, count: int, threads: int = 1) -> tuple[int, int]:
        """Do an operation at most `count` times in each thread; returns how often in all, and the ns that it took."""
        count = min(count, _PACKETS)
        works = [self._prepared(operation, count) for _ in range(threads)]
        if threads == 1:
            began_ns = now_ns()
            works[0]()
        else:
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(time.sleep, [0.001] * threads))  # the threads have started
                began_ns = now_ns()
                for done in [pool.submit(work) for work in works]:
                    done.result()
        return count * threads, now_ns() - began_ns

    def _prepared(self, operation: Measured, count: int) -> Callable[[], None]:
        """What does it `count` times; what belongs to no operation is done before."""
        match operation:
            case Measured.RAW_SIGN:
                return partial(self._raw_sign, self._digests[:count])
            case Measured.RAW_VERIFY:
                return partial(self._raw_verify, self._raw[:count])
            case Measured.SIGN:
                made = zip(cycle(self._signers), self._payloads, self._headers, strict=False)
                return partial(self._sign, list(made)[:count])
            case Measured.VERIFY | Measured.VERIFY_DECODED:
                verifier = self._verifier(self._known, decode=operation is Measured.VERIFY_DECODED)
                return partial(self._verify, [(verifier, packet) for packet in self._packets[:count]])
            case Measured.VERIFY_COLD:
                cold = [self._verifier(self._trust(known=False), decode=False) for _ in range(count)]
                return partial(self._verify_cold, list(zip(cold, self._whole[:count], strict=True)))
            case _:
                return partial(self._parse_hash, self._packets[:count])

    def _trust(self, *, known: bool) -> TrustStore:
        """A store with the root CA, and with AA and tickets where they are known."""
        trust = TrustStore(load_key=self._load)
        trust.add_root(self._pki.root)
        for certificate in (self._pki.aa, *self._tickets) if known else ():
            trust.add(certificate)
        return trust

    def _verifier(self, trust: TrustStore, *, decode: bool) -> Verifier:
        return Verifier(trust, CheckSettings(decode_content=decode), lambda: self._now_us)

    def _raw_sign(self, digests: Sequence[bytes]) -> None:
        sign = self._keys[0].sign_digest
        for digest in digests:
            sign(digest)

    def _raw_verify(self, made: Sequence[tuple[DigestVerifier, bytes, bytes, bytes]]) -> None:
        for verify, r, s, digest in made:
            if not verify(r, s, digest):
                raise _invalid()

    def _sign(self, made: Sequence[tuple[PacketSigner, bytes, Header]]) -> None:
        for signer, payload, header in made:
            _BASIC + signer.sign(payload, header, include_certificate=False)

    def _verify(self, packets: Sequence[tuple[Verifier, bytes]]) -> None:
        for verifier, packet in packets:
            if verifier.verify(secured_octets(packet) or b"").reason is not ACCEPTED:
                raise _invalid()

    def _verify_cold(self, packets: Sequence[tuple[Verifier, bytes]]) -> None:
        """Ticket and AA unknown: their certificates are validated, and their keys loaded."""
        for verifier, packet in packets:
            verifier.trust.add(scan_certificate(self._pki.aa.octets))
            if verifier.verify(secured_octets(packet) or b"").reason is not ACCEPTED:
                raise _invalid()

    def _parse_hash(self, packets: Sequence[bytes]) -> None:
        sha = hashlib.sha256 if self._curve.hash_name == "sha256" else hashlib.sha384
        hashes = {ticket.hashed_id8: sha(ticket.canonical).digest() for ticket in self._tickets}
        for packet in packets:
            data = scan_signed_data(secured_octets(packet) or b"")
            sha(sha(data.tbs).digest() + hashes[data.digest or b""]).digest()


def _invalid() -> UserError:
    return UserError("A packet of the benchmark was not accepted: the backend does not verify what it has signed.")
