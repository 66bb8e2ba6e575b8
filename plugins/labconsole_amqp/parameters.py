"""The parameters of the AMQP trial: what the form shows and a profile sets."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, ValidationInfo, field_validator

from labconsole.model.trial import Parameters
from labconsole_amqp.choices import LABELS, BrokerChoice, Leftover, Loop, Mode, Settlement, TlsVersion
from labconsole_amqp.wire.envelope import FieldsIn, Protection

TEST_TITLES = {
    1: "Test 1: plain TCP",
    2: "Test 2: TLS with client certificate",
    3: "Test 3: TLS and message signing",
    4: "Test 4: TLS, signing and body encryption",
}

TEST_DESCRIPTIONS = {
    1: "No TLS, no signature: the benchmark of the other three.",
    2: "TLS on the connection; the client proves itself by its certificate (SASL EXTERNAL).",
    3: "As Test 2, and every message carries the sender's signature (RSA, SHA-256): non-repudiation.",
    4: "As Test 3, and every body is encrypted for the receiver (AES-256-CBC, key wrapped by RSA-OAEP).",
}


def _extra(group: str, **extra: Any) -> dict[str, Any]:
    return {"group": group, **extra}


_EXTERNAL = {"broker": "external"}
_EMBEDDED = {"broker": "embedded"}
_TLS = {"test": [2, 3, 4]}
_SEALED = {"test": [3, 4]}
_COUNTED = {"loop": ["closed", "open"]}
_PHASES = {"loop": "both"}


def _identity_file(title: str, description: str, kind: str = "file") -> Any:
    """The field of a file in the group of identities, which only tests with TLS have."""
    extra = _extra("Identities", kind=kind, shown_if=_TLS)
    return Field(title=title, description=description, json_schema_extra=extra)


def _identity_name(title: str, description: str, **shown_if: Any) -> Any:
    """The field of an identity of the certificate database, by its name."""
    extra = _extra("Identities", shown_if={**_TLS, **shown_if})
    return Field(title=title, description=description, max_length=64, json_schema_extra=extra)


class AmqpParameters(Parameters):
    """One scenario of the AMQP trial (`swim-wp16.txt`, "Testing Scenarios")."""

    test: Annotated[
        Literal[1, 2, 3, 4],
        Field(
            title="Test",
            description="1 plain TCP, 2 TLS with client certificate, 3 TLS and signing, 4 TLS, signing and encryption",
            json_schema_extra=_extra("Test"),
        ),
    ] = 1
    payload: Annotated[
        str,
        Field(
            title="Payload",
            description="small (11 B), fpl-tac (237 B), fpl-fixm (41.7 KB), or the path of any file",
            min_length=1,
            json_schema_extra=_extra("Test", choices=["small", "fpl-tac", "fpl-fixm"]),
        ),
    ] = "fpl-tac"
    count: Annotated[
        int,
        Field(
            title="Messages",
            description="Messages that each sender sends and that count for the figures",
            ge=1,
            le=100_000_000,
            json_schema_extra=_extra("Test", shown_if=_COUNTED),
        ),
    ] = 10_000
    warm_up: Annotated[
        int,
        Field(
            title="Warm-up",
            description="Messages that each sender sends first and that are left out of throughput and latency",
            ge=0,
            le=1_000_000,
            json_schema_extra=_extra("Test", unit="messages", shown_if=_COUNTED),
        ),
    ] = 0

    mode: Annotated[
        Mode,
        Field(
            title="This console plays",
            description="Both ends, or one of them while a second operator plays the other",
            json_schema_extra=_extra("Broker", labels=LABELS["mode"]),
        ),
    ] = Mode.BOTH
    broker: Annotated[
        BrokerChoice,
        Field(
            title="Broker",
            description="The broker that comes with the console, or any AMQP 1.0 broker",
            json_schema_extra=_extra("Broker", labels=LABELS["broker"]),
        ),
    ] = BrokerChoice.EMBEDDED
    host: Annotated[
        str,
        Field(
            title="Host",
            description="Host name or address of the broker",
            min_length=1,
            json_schema_extra=_extra("Broker", kind="host", shown_if=_EXTERNAL),
        ),
    ] = "127.0.0.1"
    port: Annotated[
        int,
        Field(
            title="Port",
            description="TCP port of the broker: usually 5672 for Test 1 and 5671 with TLS",
            ge=1,
            le=65535,
            json_schema_extra=_extra("Broker", kind="port", shown_if=_EXTERNAL),
        ),
    ] = 5672
    address: Annotated[
        str,
        Field(
            title="Queue",
            description="Address of the queue, as the broker spells it (RabbitMQ: /amq/queue/NAME)",
            min_length=1,
            json_schema_extra=_extra("Broker"),
        ),
    ] = "labconsole"
    username: Annotated[
        str,
        Field(
            title="User name",
            description="For SASL PLAIN; empty: the client certificate (EXTERNAL) or no identity (ANONYMOUS)",
            json_schema_extra=_extra("Broker", shown_if=_EXTERNAL),
        ),
    ] = ""
    password_file: Annotated[
        str,
        Field(
            title="Password file",
            description="File with the password, readable by you alone (0600); empty: the keyring, else you are asked",
            json_schema_extra=_extra("Broker", kind="secret-file", shown_if=_EXTERNAL),
        ),
    ] = ""
    leftover: Annotated[
        Leftover,
        Field(
            title="Queue not empty",
            description="Refuse to start, or discard what is in the queue",
            json_schema_extra=_extra("Broker", labels=LABELS["leftover"], shown_if=_EXTERNAL),
        ),
    ] = Leftover.REFUSE
    queue_depth: Annotated[
        int,
        Field(
            title="Queue depth",
            description="Messages that the embedded broker holds before it stops giving credit",
            ge=1,
            le=10_000_000,
            json_schema_extra=_extra("Broker", unit="messages", shown_if=_EMBEDDED),
        ),
    ] = 20_000
    max_message_size: Annotated[
        int,
        Field(
            title="Largest message",
            description="Largest message that the embedded broker accepts and a receiver waits for; 0: no limit",
            ge=0,
            json_schema_extra=_extra("Broker", unit="B"),
        ),
    ] = 128 * 1024 * 1024

    loop: Annotated[
        Loop,
        Field(
            title="Loop",
            description="Closed: as fast as credit allows, as in the source. Open: at a rate, whatever comes of it. "
            "Both phases: throughput at full speed, then latency at the rate, in one run that goes by time",
            json_schema_extra=_extra("Load", labels=LABELS["loop"]),
        ),
    ] = Loop.CLOSED
    rate: Annotated[
        float,
        Field(
            title="Rate",
            description="Messages per second of each sender",
            gt=0,
            le=1_000_000,
            json_schema_extra=_extra("Load", unit="msg/s", shown_if={"loop": ["open", "both"]}),
        ),
    ] = 1000.0
    full_speed: Annotated[
        float,
        Field(
            title="Full speed for",
            description="Length of the phase that gives throughput, after 0.3 s of warm-up",
            ge=0.1,
            le=86_400,
            json_schema_extra=_extra("Load", unit="s", shown_if=_PHASES),
        ),
    ] = 5.0
    open_loop: Annotated[
        float,
        Field(
            title="Open loop for",
            description="Length of the phase that gives latency, after 0.2 s of warm-up: messages leave at the rate",
            ge=0.1,
            le=86_400,
            json_schema_extra=_extra("Load", unit="s", shown_if=_PHASES),
        ),
    ] = 20.0
    senders: Annotated[
        int,
        Field(title="Senders", description="Sender processes", ge=1, le=16, json_schema_extra=_extra("Load")),
    ] = 1
    receivers: Annotated[
        int,
        Field(title="Receivers", description="Receiver processes", ge=1, le=16, json_schema_extra=_extra("Load")),
    ] = 1
    credit: Annotated[
        int,
        Field(
            title="Credit window",
            description="Messages that a receiver lets the broker send ahead",
            ge=1,
            le=100_000,
            json_schema_extra=_extra("Load", unit="messages"),
        ),
    ] = 1000
    settlement: Annotated[
        Settlement,
        Field(
            title="Settlement",
            description="Acknowledged (at least once) or pre-settled (at most once)",
            json_schema_extra=_extra("Load", labels=LABELS["settlement"]),
        ),
    ] = Settlement.ACKNOWLEDGED
    crypto_threads: Annotated[
        int,
        Field(
            title="Crypto threads",
            description="Threads that sign and encrypt in a sender, and verify and decrypt in a receiver",
            ge=1,
            le=64,
            json_schema_extra=_extra("Load", shown_if=_SEALED),
        ),
    ] = 2
    patience: Annotated[
        float,
        Field(
            title="Patience",
            description="How long nothing may move: then a stuck sender fails, and what a receiver misses is lost",
            ge=1,
            le=3600,
            json_schema_extra=_extra("Load", unit="s"),
        ),
    ] = 30.0
    wait_for_peer: Annotated[
        float,
        Field(
            title="Wait for the other console",
            description="How long a console that plays one end waits for the other to begin",
            ge=1,
            le=86_400,
            json_schema_extra=_extra("Load", unit="s", shown_if={"mode": ["sender", "receiver"]}),
        ),
    ] = 300.0
    link_rate: Annotated[
        float | None,
        Field(
            title="Link rate",
            description="Rate to which you have shaped the link outside the console; empty: not shaped, or not known",
            gt=0,
            le=10_000,
            json_schema_extra=_extra("Load", unit="Mbit/s"),
        ),
    ] = None

    durable: Annotated[
        bool,
        Field(
            title="Durable",
            description="Ask the broker to keep messages over a restart (3 bytes more in the header)",
            json_schema_extra=_extra("Envelope"),
        ),
    ] = False
    fields_in: Annotated[
        FieldsIn,
        Field(
            title="Signature fields in",
            description="Application properties (as MY to SG in the source) or message annotations (Within Malaysia)",
            json_schema_extra=_extra("Envelope", labels=LABELS["fields_in"], shown_if=_SEALED),
        ),
    ] = FieldsIn.APPLICATION_PROPERTIES
    numbered: Annotated[
        bool,
        Field(
            title="Number messages",
            description="Add a message id: tells messages of several senders apart; the source's tool has none",
            json_schema_extra=_extra("Envelope"),
        ),
    ] = False

    tls_minimum: Annotated[
        TlsVersion,
        Field(
            title="TLS from",
            description="Lowest TLS version",
            json_schema_extra=_extra("Identities", labels=LABELS["tls_minimum"], shown_if=_TLS),
        ),
    ] = TlsVersion.V1_2
    server_name: Annotated[
        str,
        Field(
            title="Server name",
            description="Name that the broker's certificate must carry; empty: the host",
            json_schema_extra=_extra("Identities", shown_if={**_TLS, **_EXTERNAL}),
        ),
    ] = ""
    sender_identity: Annotated[
        str,
        _identity_name(
            "Sender's identity",
            "Name of an identity on the page Certificates; empty: the files below, else the lab's State A",
        ),
    ] = ""
    receiver_identity: Annotated[
        str,
        _identity_name(
            "Receiver's identity",
            "Name of an identity on the page Certificates; empty: the files below, else the lab's State B",
        ),
    ] = ""
    broker_identity: Annotated[
        str,
        _identity_name(
            "Broker's identity",
            "Name of an identity on the page Certificates; empty: the lab's broker",
            **_EMBEDDED,
        ),
    ] = ""
    trust: Annotated[
        str,
        _identity_file(
            "Trusted authority",
            "PEM file of the authority that the peers' certificates come from; empty: for an identity by name what its "
            "State trusts, else the console's lab CA",
        ),
    ] = ""
    sender_certificate: Annotated[
        str, _identity_file("Sender's certificate", "PEM file, with chain; empty: the lab identity of State A")
    ] = ""
    sender_key: Annotated[
        str, _identity_file("Sender's key", "Encrypted PKCS#8 file (0600); not needed by a console that only receives")
    ] = ""
    sender_passphrase_file: Annotated[
        str,
        _identity_file(
            "Sender's passphrase file",
            "File with the passphrase of the key (0600); empty: the keyring, else you are asked",
            kind="secret-file",
        ),
    ] = ""
    receiver_certificate: Annotated[
        str, _identity_file("Receiver's certificate", "PEM file, with chain; empty: the lab identity of State B")
    ] = ""
    receiver_key: Annotated[
        str, _identity_file("Receiver's key", "Encrypted PKCS#8 file (0600); not needed by a console that only sends")
    ] = ""
    receiver_passphrase_file: Annotated[
        str,
        _identity_file(
            "Receiver's passphrase file",
            "File with the passphrase of the key (0600); empty: the keyring, else you are asked",
            kind="secret-file",
        ),
    ] = ""

    # What does not go together is a fault of the field that comes last, so that a form can say it there. A field that
    # is wrong by itself is not in `info.data`.

    @field_validator("broker")
    @classmethod
    def _check_broker_fits_mode(cls, broker: BrokerChoice, info: ValidationInfo) -> BrokerChoice:
        if broker is BrokerChoice.EMBEDDED and info.data.get("mode", Mode.BOTH) is not Mode.BOTH:
            raise ValueError("a console that plays one end needs an external broker: set `broker` to external")
        return broker

    @field_validator("loop")
    @classmethod
    def _check_loop_fits_mode(cls, loop: Loop, info: ValidationInfo) -> Loop:
        """Only a console that plays both ends can wait until the queue is empty between the phases."""
        if loop is Loop.BOTH and info.data.get("mode", Mode.BOTH) is not Mode.BOTH:
            raise ValueError("both phases need both ends in this console: set `mode` to both, or `loop` to open")
        return loop

    @field_validator("numbered")
    @classmethod
    def _check_messages_numbered(cls, numbered: bool, info: ValidationInfo) -> bool:
        if not numbered and (info.data.get("senders", 1) > 1 or info.data.get("receivers", 1) > 1):
            raise ValueError(
                "with several senders or receivers messages need numbers to be distinguished: set `numbered` to true"
            )
        return numbered

    @field_validator("sender_certificate", "receiver_certificate")
    @classmethod
    def _check_identity_not_twice(cls, certificate: str, info: ValidationInfo) -> str:
        by_name = str(info.field_name).replace("certificate", "identity")
        if certificate and info.data.get(by_name):
            raise ValueError(f"`{by_name}` names that identity already: leave one of the two out")
        return certificate

    @field_validator("sender_key", "receiver_key")
    @classmethod
    def _check_key_has_certificate(cls, key: str, info: ValidationInfo) -> str:
        """An identity of the operator's is certificate and key; of the other end, its certificate is enough."""
        if info.data.get("test", 1) < 2:
            return key
        role = str(info.field_name).removesuffix("_key")
        certificate = info.data.get(f"{role}_certificate", "")
        if key and not certificate:
            raise ValueError(
                f"a key needs its certificate: set `{role}_certificate` too, or leave `{role}_key` out for the lab "
                "identity"
            )
        if certificate and not key and info.data.get("mode") in (Mode.BOTH, Mode(role)):
            raise ValueError(f"a {role} proves itself with a key: set `{role}_key` to that of `{role}_certificate`")
        return key

    @property
    def tls(self) -> bool:
        """Whether the connections use TLS (Tests 2-4)."""
        return self.test >= 2

    @property
    def protection(self) -> Protection:
        """What is done to each payload."""
        return {3: Protection.SIGNED, 4: Protection.SIGNED_ENCRYPTED}.get(self.test, Protection.NONE)

    @property
    def per_sender(self) -> int:
        """Messages that each sender sends, warm-up included, where their number is set (not with both phases)."""
        return self.warm_up + self.count

    @property
    def longest_wait(self) -> float:
        """Seconds that a console waits at most without a message: for the other console, or within a run."""
        return self.longest_gap if self.mode is Mode.BOTH else max(self.longest_gap, self.wait_for_peer)

    @property
    def longest_gap(self) -> float:
        """Seconds that may pass between two messages: the operator's patience, after the time that a rate asks for."""
        return self.patience + (0.0 if self.loop is Loop.CLOSED else 1 / self.rate)


def field_label(field: str) -> str:
    """A parameter as a sentence names it: by the form's title, and by its key for profiles and command line."""
    return f'"{AmqpParameters.model_fields[field].title}" ({field})'
