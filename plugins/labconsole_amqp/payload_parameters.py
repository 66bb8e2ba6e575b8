"""The parameters of test, payload and sizes of the messages of the AMQP trial."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ValidationInfo, field_validator

from labconsole.model.parameters import STORED, parameter
from labconsole.model.trial import Parameters
from labconsole_amqp.choices import LABELS, WITH_COUNT, WITH_WARM_UP, MessageSizes
from labconsole_amqp.wire.message_sizes import QUANTILES, log_normal_sizes, uniform_sizes
from labconsole_amqp.wire.payload import BUILT_IN

_ONE_PAYLOAD = {"message_sizes": ["payload", "uniform", "log-normal"]}
_RANGE = {"message_sizes": ["uniform", "log-normal"]}
_LOG_NORMAL = {"message_sizes": "log-normal"}
_MIX = {"message_sizes": "mix"}
_DRAWN = {"message_sizes": ["uniform", "log-normal", "mix"]}
_LARGEST = 1_000_000
"""Sender and receiver have all sizes in memory."""


def is_stored(info: ValidationInfo) -> bool:
    """Whether the parameters are those of a stored run, which may be older than a check."""
    return bool((info.context or {}).get(STORED))


def _size(title: str, description: str, default: int, shown_if: dict[str, Any]) -> Any:
    """The field of a payload's size."""
    bounds: dict[str, Any] = {"ge": 1, "le": _LARGEST}
    return parameter(title, description, default=default, group="Test", unit="B", shown_if=shown_if, **bounds)


def _share(payload: str, default: float) -> Any:
    """The field of a payload's share of the messages."""
    description = f"How many of the messages have the payload {payload}, in proportion to the other shares"
    return parameter(f"Share of {payload}", description, default=default, ge=0, le=100, group="Test", shown_if=_MIX)


class PayloadParameters(Parameters):
    """What is sent, and how often."""

    test: Literal[1, 2, 3, 4] = parameter(
        "Test",
        "1 plain TCP, 2 TLS with client certificate, 3 TLS and signing, 4 TLS, signing and encryption",
        default=1,
        group="Test",
    )
    payload: str = parameter(
        "Payload",
        "small (11 B), fpl-tac (237 B), fpl-fixm (41.7 KB), or the path of any file",
        default="fpl-tac",
        min_length=1,
        group="Test",
        choices=["small", "fpl-tac", "fpl-fixm"],
        shown_if=_ONE_PAYLOAD,
    )
    message_sizes: MessageSizes = parameter(
        "Message sizes",
        "Size of each payload. Uniform and log-normal: the payload is repeated or cut to one of "
        f"{QUANTILES} sizes, which divide the distribution into equal parts. Mix: one of the source's three payloads. "
        "The order is random, and the same at both ends",
        default=MessageSizes.PAYLOAD,
        group="Test",
        labels=LABELS["message_sizes"],
    )
    smallest_size: int = _size("Smallest payload", "No payload is smaller", 100, _RANGE)
    largest_size: int = _size("Largest payload", "No payload is larger", 10_000, _RANGE)
    median_size: int = _size("Median", "Half of the payloads are smaller", 1_000, _LOG_NORMAL)
    size_spread: float = parameter(
        "Spread",
        "Two thirds of the payloads have between the median divided by this factor and the median times this factor",
        default=2.5,
        ge=1,
        le=100,
        group="Test",
        shown_if=_LOG_NORMAL,
    )
    share_small: float = _share("small", 60.0)
    share_fpl_tac: float = _share("fpl-tac", 30.0)
    share_fpl_fixm: float = _share("fpl-fixm", 10.0)
    size_seed: int = parameter(
        "Seed of sizes",
        "Another one gives another order of sizes. The same on both consoles",
        default=1,
        ge=0,
        le=2**32 - 1,
        group="Test",
        shown_if=_DRAWN,
    )
    count: int = parameter(
        "Messages",
        "Messages that each sender sends and that count for the figures",
        default=10_000,
        ge=1,
        le=100_000_000,
        group="Test",
        shown_if=WITH_COUNT,
    )
    warm_up: int = parameter(
        "Warm-up",
        "Messages that each sender sends first and that are left out of throughput and latency",
        default=0,
        ge=0,
        le=1_000_000,
        group="Test",
        unit="messages",
        shown_if=WITH_WARM_UP,
    )

    @field_validator("largest_size")
    @classmethod
    def _check_range(cls, largest: int, info: ValidationInfo) -> int:
        smallest = info.data.get("smallest_size", 0)
        if largest < smallest and info.data.get("message_sizes") in (MessageSizes.UNIFORM, MessageSizes.LOG_NORMAL):
            raise ValueError(
                f"it is below the smallest payload: set it to {smallest} or more, or `smallest_size` lower"
            )
        return largest

    @field_validator("median_size")
    @classmethod
    def _check_median(cls, median: int, info: ValidationInfo) -> int:
        smallest, largest = info.data.get("smallest_size", 0), info.data.get("largest_size", _LARGEST)
        if info.data.get("message_sizes") is MessageSizes.LOG_NORMAL and not smallest <= median <= largest:
            raise ValueError(
                f"it is not between the smallest and the largest payload: set it to {smallest} to {largest}"
            )
        return median

    @field_validator("share_fpl_fixm")
    @classmethod
    def _check_shares(cls, share: float, info: ValidationInfo) -> float:
        others = info.data.get("share_small", 1.0) + info.data.get("share_fpl_tac", 1.0)
        if info.data.get("message_sizes") is MessageSizes.MIX and not share + others:
            raise ValueError("all shares are 0: set one of them higher")
        return share

    @property
    def payload_names(self) -> tuple[str, ...]:
        """The payloads that messages are made of."""
        return tuple(self._mix) if self.message_sizes is MessageSizes.MIX else (self.payload,)

    @property
    def payload_shares(self) -> tuple[float, ...]:
        """The share of each payload of `payload_names`, and where they are resized, of each of `drawn_sizes`."""
        if self.message_sizes is MessageSizes.MIX:
            return tuple(self._mix.values())
        return tuple(self.drawn_sizes.values()) or (1.0,)

    @property
    def drawn_sizes(self) -> dict[int, float]:
        """The sizes to which the payload is repeated or cut, and their shares; empty where it is sent as it is."""
        match self.message_sizes:
            case MessageSizes.UNIFORM:
                return uniform_sizes(self.smallest_size, self.largest_size)
            case MessageSizes.LOG_NORMAL:
                return log_normal_sizes(self.median_size, self.size_spread, self.smallest_size, self.largest_size)
            case _:
                return {}

    @property
    def _mix(self) -> dict[str, float]:
        """The source's payloads that are in the mix, and their shares."""
        shares = (self.share_small, self.share_fpl_tac, self.share_fpl_fixm)
        return {name: share for name, share in zip(BUILT_IN, shares, strict=True) if share}
