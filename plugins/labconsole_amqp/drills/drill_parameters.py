"""The parameters of drills, and the messaging run that each is made of."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Literal

from pydantic import ValidationInfo, field_validator

from labconsole.model.parameters import parameter
from labconsole.model.trial import Parameters
from labconsole_amqp.choices import TEST_TITLES, Loop
from labconsole_amqp.drills.drill_pki import BROKER, RECEIVER, SENDER, SIGNER
from labconsole_amqp.parameters import AmqpParameters

_RECONNECT_S = 10.0
_TIMEOUT_S = 3.0


class Rotated(StrEnum):
    """What a rotation drill replaces."""

    CLIENT = "client"
    SERVER = "server"
    ROOT = "root"


class Revoked(StrEnum):
    """What a revocation drill revokes."""

    BOTH = "both"
    CONNECTION = "connection"
    MESSAGES = "messages"


class DrillParameters(Parameters):
    """What both drills have: the messages that flow, and for how long."""

    test: Literal[2, 3, 4] = parameter(
        "Test",
        "2 TLS with client certificate, 3 TLS and signing, 4 TLS, signing and encryption",
        default=3,
        group="Messages",
        labels={test: title for test, title in TEST_TITLES.items() if test > 1},
    )
    payload: str = parameter(
        "Payload",
        "small (11 B), fpl-tac (237 B), fpl-fixm (41.7 KB), or the path of any file",
        default="fpl-tac",
        min_length=1,
        group="Messages",
        choices=["small", "fpl-tac", "fpl-fixm"],
    )
    rate: float = parameter(
        "Rate", "Messages per second", default=200.0, ge=5, le=10_000, group="Messages", unit="msg/s"
    )
    before: float = parameter(
        "Before",
        "Time from the first message until the first step",
        default=2.0,
        ge=0.5,
        le=3600,
        group="Drill",
        unit="s",
    )
    after: float = parameter(
        "After", "Time that messages flow after the last step", default=3.0, ge=2, le=3600, group="Drill", unit="s"
    )

    @property
    def steps_s(self) -> float:
        """Seconds from the first step to the last."""
        return 0.0

    @property
    def until_s(self) -> float:
        """Seconds from the first message to the last."""
        return self.before + self.steps_s + self.after

    def messaging(self) -> AmqpParameters:
        """The run of which the drill consists: one sender at a rate, at least once, over the embedded broker."""
        return AmqpParameters(
            test=self.test,
            payload=self.payload,
            loop=Loop.OPEN,
            rate=self.rate,
            count=math.ceil(self.until_s * self.rate),
            numbered=True,
            reconnect=_RECONNECT_S,
            patience=_TIMEOUT_S,
            sender_identity=SENDER,
            receiver_identity=RECEIVER,
            broker_identity=BROKER,
        )


class RotationParameters(DrillParameters):
    """One rotation drill."""

    rotate: Rotated = parameter(
        "Rotate",
        "Which certificate is replaced while messages flow",
        default=Rotated.CLIENT,
        group="Drill",
        labels={
            "client": "The sender's certificate",
            "server": "The broker's certificate",
            "root": "The root CA of the sender's State",
        },
    )
    overlap: float = parameter(
        "Overlap",
        "Time during which both the old and the new one are accepted; each step takes so long",
        default=1.0,
        ge=0.5,
        le=3600,
        group="Drill",
        unit="s",
    )

    @property
    def steps_s(self) -> float:
        return self.overlap * (2 if self.rotate is Rotated.ROOT else 1)


class RevocationParameters(DrillParameters):
    """One revocation drill."""

    revoke: Revoked = parameter(
        "Revoke",
        "Which certificate of the sender is revoked while messages flow",
        default=Revoked.BOTH,
        group="Drill",
        labels={
            "both": "One certificate, of TLS and messages",
            "connection": "That of TLS; messages have another",
            "messages": "That of messages; TLS has another",
        },
    )

    @field_validator("revoke")
    @classmethod
    def _check_messages_are_signed(cls, revoke: Revoked, info: ValidationInfo) -> Revoked:
        if revoke is Revoked.MESSAGES and info.data.get("test") == 2:
            raise ValueError("messages of Test 2 are not signed: set `test` to 3 or 4, or `revoke` to connection")
        return revoke

    @property
    def of_connection(self) -> bool:
        """Whether the certificate of TLS is revoked."""
        return self.revoke is not Revoked.MESSAGES

    def messaging(self) -> AmqpParameters:
        signer = "" if self.revoke is Revoked.BOTH or self.test == 2 else SIGNER
        return super().messaging().model_copy(update={"sender_message_identity": signer, "reconnect": 1.0})
