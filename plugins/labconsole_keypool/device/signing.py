"""Serves one request in a signer process: a fresh key, the signature, the CSR, the certificate, the record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding

from labconsole.clock import now_ns, wall_offset_ns
from labconsole.model.trial import Level
from labconsole.security.token.cryptoki.opening import Token
from labconsole.security.token.errors import TokenFullError
from labconsole.security.token.mechanisms import KeyKind
from labconsole_keypool.choices import KeyOrigin, KeySource, Refill
from labconsole_keypool.device.certification_authority import SigningCA
from labconsole_keypool.device.emulation import Device, DeviceOperation
from labconsole_keypool.device.refill import Refiller, discard
from labconsole_keypool.device.signature_writer import Reports, SignatureWriter
from labconsole_keypool.device.signing_sessions import LoadedKey, SigningSessions
from labconsole_keypool.messages import sign_request, sign_response
from labconsole_keypool.messages.certificate_fields import CertificateFields, fields_of, plain_fields
from labconsole_keypool.messages.safe_xml import SignRequestError
from labconsole_keypool.messages.service_frames import Done, Job, JobKind, JobStatus
from labconsole_keypool.messages.sign_request import SignRequest
from labconsole_keypool.messages.signature_algorithms import SignatureAlgorithm, default_for
from labconsole_keypool.series import KEYS_USED_CHANNEL
from labconsole_keypool.store.key_records import SignatureRow, SignatureStatus
from labconsole_keypool.store.key_store import KeyStore


@dataclass(frozen=True, slots=True)
class RequestedSignature:
    """The content of a request of either form: `to_be_signed` is hashed and signed with one key of `kind`."""

    kind: KeyKind
    algorithm: SignatureAlgorithm
    to_be_signed: tuple[bytes, ...]
    fields: CertificateFields
    request: SignRequest | None = None

    def answer(self, signatures: Sequence[bytes], chain: Sequence[x509.Certificate]) -> bytes:
        """The certificate (DER), or the SignResponse (XML); `chain` begins with the certificate."""
        if self.request is None:
            return chain[0].public_bytes(Encoding.DER)
        return sign_response.build(self.request, signatures, chain)


class RefusedError(Exception):
    """A sign request that cannot be served; `answer` is the SignResponse with the reason."""

    def __init__(self, answer: bytes) -> None:
        super().__init__()
        self.answer = answer


def requested_signature(job: Job) -> RequestedSignature:
    """The signatures that `job` asks for; with RSA keys of the scenario's size. Raises RefusedError."""
    if job.kind is JobKind.DIGEST:
        return RequestedSignature(job.key_kind, default_for(job.key_kind), (job.body,), plain_fields(job.request))
    request: SignRequest | None = None
    try:
        request = sign_request.parse(job.body)
        fields = fields_of(request)
    except SignRequestError as error:
        raise RefusedError(sign_response.refused(str(error), request=request)) from error
    kind = job.key_kind if request.algorithm.serves(job.key_kind) else request.key_kind
    return RequestedSignature(
        kind, request.algorithm, tuple(task.to_be_signed for task in request.tasks), fields, request
    )


_SHA256 = hashes.SHA256()


@dataclass(frozen=True, slots=True)
class _Signed:
    """The results of one key: the signatures, the certificate, and the time of the last signature."""

    signatures: tuple[bytes, ...]
    certificate: x509.Certificate
    signed_ns: int


class SigningEngine:
    """Signs with a fresh key for every request, on threads that call `process`.

    Args:
        token: Open; the engine opens a session for each thread.
        store: Where the wrapped keys are; kept by the caller, who closes it after the engine.
        authority: The CA.
        device: Speed and capacity of the token.
        reports: Counts `keys_claimed`, `keys_loaded`, `keys_used`; events; refills. May be called by any thread.
        kind: Kind of keys in the pool; a sign request that asks for another gets a generated one.
        threads: Number of signing threads.
        keys: From the pool, or each generated for its request.
        batch: Key pairs that a refill claims and unwraps.
        low_water: Parallel refill begins when fewer keys than this are in the token.
        refill: When refills begin, and when their keys can be used.
        run: Name of the run in the record.

    Raises:
        TokenError: the token has no session left.
    """

    def __init__(
        self,
        token: Token,
        store: KeyStore,
        authority: SigningCA,
        device: Device,
        reports: Reports,
        *,
        kind: KeyKind,
        threads: int,
        keys: KeySource,
        batch: int,
        low_water: int,
        refill: Refill,
        run: str,
    ) -> None:
        self._store = store
        self._authority = authority
        self._device = device
        self._reports = reports
        self._kind = kind
        self._pooled = keys is KeySource.POOL
        self._run = run
        self._offset_ns = wall_offset_ns()
        self._sessions = SigningSessions(token, threads)
        device.threads = threads
        self._free_ns = [0] * threads
        """Until when the emulated device was busy for each thread."""
        self._refiller = Refiller(
            store, self._sessions, device, reports, kind=kind, batch=batch, low_water=low_water, refill=refill
        )
        self._record = SignatureWriter(store, reports)

    def fill(self, count: int, stored: int = 0) -> int:
        """Load `count` keys into the token's RAM and `stored` into its store, over all sessions; returns their number.

        Called before T0, and not slowed by an emulation: their requests count as A and B.

        Raises:
            TokenFullError: the token does not hold so many.
            TokenError: the token is gone.
            StoreError: the store cannot be used.
        """
        for asked, room, place in ((count, self._device.room, "RAM"), (stored, self._device.store, "store")):
            if asked > room:
                raise TokenFullError(f"The token's {place} holds {room:,} key pairs: ask for fewer than {asked:,}.")
        with self._device.hurrying():
            loaded = self._refiller.load(count, KeyOrigin.TOKEN_RAM)
            return loaded + self._refiller.load(stored, KeyOrigin.TOKEN_STORE)

    def start_refill(self) -> None:
        """From now on keys are loaded by a thread of the engine's own; without it, none are."""
        if self._pooled:
            self._refiller.start()

    def pause_refill(self, paused: bool) -> None:
        """Load nothing while `paused` and keys are in the token: they need the processor for signing."""
        self._refiller.pause(paused)

    def process(self, thread: int, job: Job) -> Done:
        """Serve one request; blocks. Each thread gives its own number, 0 to `threads` - 1.

        A key that does not match its public key becomes invalid, and the request takes the next.

        Raises:
            TokenError: the token is gone or refuses.
            StoreError: the store cannot be used.
        """
        started_ns = now_ns()
        try:
            requested = requested_signature(job)
        except RefusedError as refused:
            return self._refused(job, started_ns, refused.answer)
        while True:
            asked_ns = now_ns()
            key = self._key(thread, requested)
            got_key_ns = now_ns()
            began_ns = min(asked_ns, max(job.received_ns, self._free_ns[thread])) + got_key_ns - asked_ns
            try:
                signed = self._sign(thread, key, requested, began_ns)
                break
            except InvalidSignature:
                self._refuse(key)
        answer = requested.answer(signed.signatures, (signed.certificate, *self._authority.chain))
        finished_ns = now_ns()
        if key.row:
            self._reports.count(KEYS_USED_CHANNEL.name, 1)
        self._record.add(
            SignatureRow(
                run=self._run,
                request=job.request,
                to_be_signed=b"".join(requested.to_be_signed),
                signature=b"".join(signed.signatures),
                certificate=signed.certificate.public_bytes(Encoding.DER) if requested.request else answer,
                received=job.received_ns + self._offset_ns,
                started=started_ns + self._offset_ns,
                got_key=got_key_ns + self._offset_ns,
                finished=finished_ns + self._offset_ns,
                pre_generated=key.origin is not KeyOrigin.GENERATED,
                key=key.row or None,
                status=SignatureStatus.SIGNED,
            )
        )
        times = (started_ns, got_key_ns, signed.signed_ns, finished_ns)
        return Done(job.request, *times, key.origin, JobStatus.SIGNED, answer, key.row)

    def close(self) -> None:
        """End the refill, destroy the keys that are left in the token, write the last records. Threads have ended.

        What was claimed and not used becomes invalid when the store is closed. Raises TokenError, StoreError.
        """
        try:
            self._refiller.close()
        finally:
            self._record.close()

    def _key(self, thread: int, requested: RequestedSignature) -> LoadedKey:
        if self._pooled and requested.kind is self._kind:
            key = self._refiller.take(thread)
            if key is not None:
                return key
        with self._device.busy(DeviceOperation.GENERATE):
            return self._sessions[thread].generate(requested.kind)

    def _sign(self, thread: int, key: LoadedKey, requested: RequestedSignature, began_ns: int) -> _Signed:
        """Sign, certify, destroy. Raises InvalidSignature: this private key is not the one of the public key.

        An emulated device began when it was free for the request and had the key: what this process needs between two
        requests is part of the time that the source gives for all of it.
        """
        public_key = key.key.public_key()
        with self._device.busy(DeviceOperation.SIGN, began_ns) as ends_ns:
            signatures = tuple(requested.algorithm.sign(key.key, data) for data in requested.to_be_signed)
            signed_ns = now_ns()
            for signature, data in zip(signatures, requested.to_be_signed, strict=True):
                requested.algorithm.verify(public_key, signature, data)
            csr = x509.CertificateSigningRequestBuilder(requested.fields.subject).sign(key.key, _SHA256)
            certificate = self._authority.issue(csr, requested.fields)
            discard(key, self._device)
            worked_ns = now_ns()
        self._free_ns[thread] = max(ends_ns, worked_ns)
        return _Signed(signatures, certificate, max(signed_ns, ends_ns))

    def _refused(self, job: Job, started_ns: int, answer: bytes) -> Done:
        now = now_ns()
        self._record.add(
            SignatureRow(
                run=self._run,
                request=job.request,
                to_be_signed=b"",
                signature=b"",
                certificate=b"",
                received=job.received_ns + self._offset_ns,
                started=started_ns + self._offset_ns,
                got_key=now + self._offset_ns,
                finished=now + self._offset_ns,
                pre_generated=False,
                key=None,
                status=SignatureStatus.FAILED,
            )
        )
        return Done(job.request, started_ns, now, now, now, KeyOrigin.NONE, JobStatus.FAILED, answer)

    def _refuse(self, key: LoadedKey) -> None:
        discard(key, self._device)
        self._reports.count(KEYS_USED_CHANNEL.name, 1)
        self._store.invalid([key.row], "its private key is not the one of its public key")
        self._reports.event(
            "key refused",
            f"Key {key.row} became invalid: its private key does not belong to its public key. The wrapped keys of two "
            "rows were exchanged, or the store was changed: see `labconsole hsm verify-store`.",
            Level.WARNING,
        )
