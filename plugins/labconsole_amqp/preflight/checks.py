"""The checks before a run, each with its result, a sentence and evidence: from what connecting found anyway."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Self

from cryptography.hazmat.primitives.hashes import SHA256

from labconsole.clock_comparison import Offset
from labconsole.errors import UserError
from labconsole.security.x509.validation.judgement import Purpose
from labconsole_amqp.choices import BrokerChoice
from labconsole_amqp.link.connection import ConnectError, Connection, ConnectStep
from labconsole_amqp.link.revocation import RevocationCheck
from labconsole_amqp.link.sender import too_large
from labconsole_amqp.parameters import field_label

if TYPE_CHECKING:
    from cryptography import x509

_EXPIRES_SOON_DAYS = 30


class CheckName(StrEnum):
    """The checks, in their order in the list."""

    OWN_CERTIFICATE = "own certificate"
    TCP = "TCP"
    TLS = "TLS"
    CERTIFICATE = "broker's certificate"
    OTHER_CERTIFICATE = "other end's certificate"
    """Where there is no broker."""
    REVOCATION = "revocation"
    SASL = "SASL"
    LINK = "link"
    QUEUE_DEPTH = "queue depth"
    MESSAGE_SIZE = "message size"
    TRIAL_ID = "trial id"
    CLOCK_OFFSET = "clock offset"


_OF_STEP = {
    ConnectStep.TCP: CheckName.TCP,
    ConnectStep.TLS: CheckName.TLS,
    ConnectStep.CERTIFICATE: CheckName.CERTIFICATE,
    ConnectStep.REVOCATION: CheckName.REVOCATION,
    ConnectStep.SASL: CheckName.SASL,
}


class CheckResult(StrEnum):
    """The result of a check, in the words of verdicts."""

    PASSED = "pass"
    WARNING = "warning"
    FAILED = "fail"
    UNKNOWN = "unknown"
    """It could not be done; its sentence says why."""
    NOT_APPLICABLE = "not applicable"


@dataclass(frozen=True)
class Check:
    """One check of one end: `sentence` has the cause, and the remedy where it did not pass."""

    name: CheckName
    result: CheckResult
    sentence: str
    evidence: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The plain form, for events."""
        evidence = dict(self.evidence)
        return {"name": self.name, "result": self.result, "sentence": self.sentence, "evidence": evidence}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The inverse of `to_json`."""
        return cls(CheckName(data["name"]), CheckResult(data["result"]), data["sentence"], data["evidence"])


class Preflight:
    """The checks of one end, in the order in which they are done: those that did not fail are reported.

    `direct`: there is no broker, and the certificate that is checked is the other end's.
    """

    def __init__(self, report: Callable[[Check], None] | None = None, *, direct: bool = False) -> None:
        self.done: list[Check] = []
        self.failed: Check | None = None
        """The check that failed: there is none after it."""
        self.broker = ""
        """`host:port`, once it is known: sentences begin with it."""
        self._report, self._direct = report, direct

    def add(self, *checks: Check) -> None:
        """Record checks that did not fail."""
        for check in checks:
            self.done.append(check)
            if self._report is not None:
                self._report(check)

    @contextmanager
    def checking(self, name: CheckName) -> Iterator[None]:
        """Record a fault in the block as the failure of `name`, or of the step of connecting that failed. Raises it."""
        try:
            yield
        except UserError as error:
            failed = _OF_STEP[error.step] if isinstance(error, ConnectError) else name
            if failed is CheckName.CERTIFICATE and self._direct:
                failed = CheckName.OTHER_CERTIFICATE
            if self.failed is None:
                self.failed = Check(failed, CheckResult.FAILED, full_sentence(str(error), self.broker))
            raise

    def to_json(self) -> list[dict[str, Any]]:
        """The plain form of all checks, for an event."""
        failed = () if self.failed is None else (self.failed,)
        return [check.to_json() for check in (*self.done, *failed)]


def full_sentence(clause: str, broker: str) -> str:
    """A clause that may begin with the broker's name, as a sentence with capital and full stop."""
    begun = f"The broker {clause}" if broker and clause.startswith(broker) else clause[:1].upper() + clause[1:]
    return begun if begun.endswith((".", "?", "!")) else f"{begun}."


def connection_checks(connection: Connection, broker: BrokerChoice) -> Iterator[Check]:
    """The checks that an open connection has passed; without a broker, the other end is this console's."""
    times, target, direct = connection.times, connection.endpoint, broker is BrokerChoice.NONE
    connected = f"Connected to {target.name} in {times.tcp_ns / 1e6:.1f} ms."
    yield Check(
        CheckName.TCP,
        CheckResult.PASSED,
        f"{target.name} has connected." if connection.is_accepted else connected,
        {"peer": target.name, "tcp_ns": times.tcp_ns},
    )
    yield from _tls_checks(connection, broker)
    other = "Other end" if direct else "Broker"
    container = f" {other}: {connection.container}." if connection.container else ""
    login_ns = times.sasl_ns + times.open_ns
    yield Check(
        CheckName.SASL,
        CheckResult.PASSED,
        f"Logged in by {target.mechanism} in {login_ns / 1e6:.1f} ms.{container}",
        {"mechanism": target.mechanism, "login_ns": login_ns, "container": connection.container},
    )


def _tls_checks(connection: Connection, broker: BrokerChoice) -> Iterator[Check]:
    tls, times, direct = connection.endpoint.tls, connection.times, broker is BrokerChoice.NONE
    certificate = CheckName.OTHER_CERTIFICATE if direct else CheckName.CERTIFICATE
    if tls is None:
        for name in (CheckName.TLS, certificate, CheckName.REVOCATION):
            yield Check(name, CheckResult.NOT_APPLICABLE, "Test 1 has no TLS.")
        return
    yield Check(
        CheckName.TLS,
        CheckResult.PASSED,
        f"{connection.tls_version} with {connection.cipher} in {times.tls_ns / 1e6:.1f} ms.",
        {
            "version": connection.tls_version,
            "cipher": connection.cipher,
            "tls_ns": times.tls_ns,
            "minimum": tls.minimum,
        },
    )
    presented = connection.peer_certificates
    yield certificate_check(certificate, presented, datetime.now(UTC))
    peer = "other end" if direct else "broker"
    purpose = Purpose.TLS_CLIENT if connection.is_accepted else Purpose.TLS_SERVER
    yield _revocation_check(presented, connection.revocation, purpose, peer, is_own=broker is not BrokerChoice.EXTERNAL)


def certificate_check(name: CheckName, chain: Sequence[x509.Certificate], now: datetime) -> Check:
    """Whose certificate the first of `chain` is, who issued it, and how long it is still valid.

    It was accepted before; a warning where it expires within 30 days.
    """
    # Imported late, with `cryptography.x509`: a role without TLS has no certificate to check.
    from labconsole.security.x509.names import short_name

    leaf = chain[0]
    days = (leaf.not_valid_after_utc - now).days
    soon = days < _EXPIRES_SOON_DAYS
    issuer = "self-signed" if leaf.issuer == leaf.subject else f"by {short_name(leaf.issuer)}"
    return Check(
        name,
        CheckResult.WARNING if soon else CheckResult.PASSED,
        f"{short_name(leaf)}, {issuer}, valid until {leaf.not_valid_after_utc:%Y-%m-%d} ({days} days)"
        f"{': renew it before' if soon else ''}.",
        {
            "days": days,
            "chain": [
                {
                    "subject": one.subject.rfc4514_string(),
                    "issuer": one.issuer.rfc4514_string(),
                    "not_after": one.not_valid_after_utc.isoformat(),
                    "sha256": one.fingerprint(SHA256()).hex(),
                }
                for one in chain
            ],
        },
    )


def _revocation_check(
    presented: Sequence[x509.Certificate],
    revocation: RevocationCheck | None,
    purpose: Purpose,
    peer: str,
    *,
    is_own: bool,
) -> Check:
    """Whether CRLs say that the certificate of `peer`, which was accepted, is not revoked; `is_own`: this console's."""
    if revocation is not None and revocation.knows_all(presented, purpose):
        sentence = f"By the CRLs the {peer}'s certificate is not revoked."
        return Check(CheckName.REVOCATION, CheckResult.PASSED, sentence, {"known": True})
    if is_own:
        sentence = f"The {peer} is this console's own, and there is no CRL of each of its certificate's CAs."
        return Check(CheckName.REVOCATION, CheckResult.NOT_APPLICABLE, sentence, {"known": False})
    sentence = (
        f"Whether the {peer}'s certificate is revoked is not known: import a CRL of each of its CAs on the page "
        "Certificates, and choose an identity by name."
    )
    return Check(CheckName.REVOCATION, CheckResult.WARNING, sentence, {"known": False})


def link_check(role: str, address: str, attach_ns: int, *, direct: bool = False) -> Check:
    """The answered attach of a `sender` or `receiver`; `direct`: to the other end, without a queue."""
    verb = "send to" if role == "sender" else "receive from"
    sentence = f"May {verb} {'' if direct else 'the queue '}{address} ({attach_ns / 1e6:.1f} ms)."
    return Check(CheckName.LINK, CheckResult.PASSED, sentence, {"address": address, "attach_ns": attach_ns})


def depth_check(address: str, depth: int, most: int, drained: int = 0) -> Check:
    """The number of messages in the queue, counted up to `most`, after so many were `drained`."""
    count = f"{most:,} messages or more" if depth >= most else f"{depth:,} messages"
    sentence = f"The queue {address} is not empty: {count}." if depth else f"The queue {address} is empty."
    if drained:
        sentence = f"{drained:,} messages were in the queue {address} and were discarded."
    result = CheckResult.WARNING if depth or drained else CheckResult.PASSED
    return Check(CheckName.QUEUE_DEPTH, result, sentence, {"address": address, "depth": depth, "drained": drained})


def own_queue_check() -> Check:
    """The queue of a broker that starts with the run."""
    return Check(CheckName.QUEUE_DEPTH, CheckResult.PASSED, "The queue is new and empty.", {"depth": 0, "drained": 0})


def awaited_queue_check() -> Check:
    """The queue of a console that only receives."""
    sentence = "Not counted: messages in the queue may be those of the other console."
    return Check(CheckName.QUEUE_DEPTH, CheckResult.NOT_APPLICABLE, sentence)


def size_check(size: int, largest: int, broker: str, *, drawn: bool = False) -> Check:
    """Whether messages of `size` bytes, or `drawn` ones of at most so many, are within the broker's limit, 0 for none.

    Raises UserError: they are not.
    """
    if largest and size > largest:
        raise UserError(too_large(size, broker, largest))
    own, limit = f"{'up to ' if drawn else ''}{size:,} B", f"up to {largest:,} B are" if largest else "any size is"
    sentence = f"Messages have {own}, and {limit} accepted."
    return Check(CheckName.MESSAGE_SIZE, CheckResult.PASSED, sentence, {"size": size, "largest": largest})


def one_clock_check() -> Check:
    """The clocks of both ends on one computer."""
    return Check(
        CheckName.CLOCK_OFFSET,
        CheckResult.PASSED,
        "One clock: sender and receiver are on this computer.",
        {"offset_ns": 0, "uncertainty_ns": 0},
    )


def clocks_of_hosts_check(uncertainties_ns: Mapping[str, int] | None = None) -> Check:
    """The clocks of roles on several hosts, to the console's; before their offsets are known, without uncertainties.

    `uncertainties_ns` are those of the offsets by host.
    """
    sentence = "Several clocks: the offset of each host's to the console's is measured in the run, and times corrected."
    if uncertainties_ns is None:
        return Check(CheckName.CLOCK_OFFSET, CheckResult.PASSED, sentence)
    each = ", ".join(f"{host} ± {ns / 1e6:,.3f} ms" for host, ns in sorted(uncertainties_ns.items()))
    sentence = f"Several clocks: the offsets to the console's are measured, and times corrected: {each}."
    return Check(CheckName.CLOCK_OFFSET, CheckResult.PASSED, sentence, {"uncertainty_ns": dict(uncertainties_ns)})


def compared_clocks_check(offset: Offset) -> Check:
    """The measured offset of the clocks of two consoles."""
    wall_ms, uncertainty_ms = offset.wall_ns / 1e6, offset.uncertainty_ns / 1e6
    ahead = "ahead of" if wall_ms >= 0 else "behind"
    return Check(
        CheckName.CLOCK_OFFSET,
        CheckResult.PASSED,
        f"The receiver's wall clock is {abs(wall_ms):,.3f} ms {ahead} the sender's, ± {uncertainty_ms:,.3f} ms "
        f"({offset.exchanges} exchanges).",
        offset.to_json(),
    )


def clocks_not_compared_check(sentence: str) -> Check:
    """Clocks that could not be compared, for the reason in `sentence`, which has the remedy."""
    return Check(CheckName.CLOCK_OFFSET, CheckResult.UNKNOWN, f"Not measured. {sentence}")


def no_clock_queues_check(fault: str, queues: tuple[str, str]) -> Check:
    """Queues for comparing clocks that cannot be used, as the sentence `fault` says."""
    requests, replies = queues
    return clocks_not_compared_check(
        f"{fault} Create the queues {requests} and {replies} at the broker, name another one as "
        f"{field_label('clock_queue')}, or switch {field_label('compare_clocks')} off."
    )


def clock_queues_check(queues: tuple[str, str]) -> Check:
    """Queues for comparing clocks that can be used."""
    sentence = f"The queues {queues[0]} and {queues[1]} can be used: the offset is measured in the run."
    return Check(CheckName.CLOCK_OFFSET, CheckResult.PASSED, sentence)


def trial_id_check(own: str, theirs: str) -> Check:
    """The trial ids of two consoles that know of each other."""
    evidence = {"own": own, "other": theirs}
    if own == theirs:
        return Check(CheckName.TRIAL_ID, CheckResult.PASSED, f"Both consoles run the trial {own}.", evidence)
    sentence = (
        f"This console runs the trial {own}, and the other one {theirs}: enter the same {field_label('trial_id')} on "
        "both, or none on that of the receiver."
    )
    return Check(CheckName.TRIAL_ID, CheckResult.FAILED, sentence, evidence)
