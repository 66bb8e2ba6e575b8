"""The parameters of a shaped link between the clients of a run and their broker."""

from __future__ import annotations

from typing import Any, Unpack

from pydantic import ValidationInfo, field_validator

from labconsole.model.parameters import Bounds, parameter
from labconsole.model.trial import Parameters
from labconsole_amqp.choices import LABELS, BrokerChoice, Mode, ShapedEnds, Shaping
from labconsole_amqp.shaping.link_model import LinkSettings

_GROUP = "Link"
_BUILT_IN = {"shaping": "built-in"}
LEAST_RATE = 0.05
"""Mbit/s of the slowest link that is shaped: its calibration and connecting end in time."""


def _field(title: str, description: str, default: float | None, unit: str, **bounds: Unpack[Bounds]) -> Any:
    """A field of the built-in link."""
    return parameter(title, description, default=default, unit=unit, group=_GROUP, shown_if=_BUILT_IN, **bounds)


class ShapedLinkParameters(Parameters):
    """A built-in link with a rate, delay, jitter, loss and window, or one that was shaped outside the console."""

    shaping: Shaping = parameter(
        "Shaped",
        "The built-in shaper needs no rights: clients connect to it, and it relays over the link",
        default=Shaping.OUTSIDE,
        group=_GROUP,
        labels=LABELS["shaping"],
    )
    link_rate: float | None = parameter(
        "Link rate",
        "Rate to the broker, of IP packets; or the rate to which you have shaped the link outside the console; empty: "
        "not shaped, or not known",
        default=None,
        gt=0,
        le=10_000,
        group=_GROUP,
        unit="Mbit/s",
    )
    link_rate_down: float | None = _field(
        "Rate from the broker",
        "Where it differs from the link rate",
        default=None,
        gt=0,
        le=10_000,
        unit="Mbit/s",
    )
    link_delay: float = _field(
        "Delay",
        "Time on the way, each way: half of the round-trip time",
        default=0.0,
        ge=0,
        le=1_000,
        unit="ms",
    )
    link_jitter: float = _field(
        "Jitter",
        "Largest further time on the way, evenly distributed; segments stay in their order",
        default=0.0,
        ge=0,
        le=1_000,
        unit="ms",
    )
    link_loss: float = _field(
        "Loss",
        "Share of TCP segments that are lost and sent again, which holds up those behind them",
        default=0.0,
        ge=0,
        le=50,
        unit="%",
    )
    link_window: float = _field(
        "TCP window",
        "Most data of a connection that is on its way in one direction",
        default=64.0,
        ge=1.5,
        le=65_536,
        unit="KiB",
    )
    link_ends: ShapedEnds = parameter(
        "Connections of",
        "Whose connections go over the link",
        default=ShapedEnds.BOTH,
        group=_GROUP,
        shown_if=_BUILT_IN,
        labels=LABELS["link_ends"],
    )
    link_calibration: float = _field(
        "Calibration",
        "How long the shaper measures itself before the run",
        default=5.0,
        ge=0.5,
        le=600,
        unit="s",
    )

    @field_validator("link_rate")
    @classmethod
    def _check_shaper_has_rate(cls, rate: float | None, info: ValidationInfo) -> float | None:
        if info.data.get("shaping") is not Shaping.BUILT_IN:
            return rate
        if rate is None:
            raise ValueError("a link that the console shapes needs a rate: set `link_rate`, or `shaping` to outside")
        return _enough(rate)

    @field_validator("link_rate_down")
    @classmethod
    def _check_rate_down(cls, rate: float | None, info: ValidationInfo) -> float | None:
        return _enough(rate) if rate is not None and info.data.get("shaping") is Shaping.BUILT_IN else rate

    @field_validator("link_ends")
    @classmethod
    def _check_ends_are_here(cls, ends: ShapedEnds, info: ValidationInfo) -> ShapedEnds:
        mode = info.data.get("mode", Mode.BOTH)
        built_in = info.data.get("shaping") is Shaping.BUILT_IN
        if built_in and mode is not Mode.BOTH and ends not in (ShapedEnds.BOTH, mode):
            raise ValueError(f"this console plays the {mode} only: set `link_ends` to both or {mode}")
        if built_in and info.data.get("broker") is BrokerChoice.NONE and ends is ShapedEnds.RECEIVER:
            raise ValueError("without a broker it is the sender that connects: set `link_ends` to both or sender")
        return ends

    @property
    def is_shaped(self) -> bool:
        """Whether the console shapes the link."""
        return self.shaping is Shaping.BUILT_IN

    def is_shaped_for(self, end: Mode) -> bool:
        """Whether connections of senders or receivers go over the console's shaped link."""
        return self.is_shaped and self.link_ends in (ShapedEnds.BOTH, end)

    @property
    def shaped_link(self) -> LinkSettings:
        """The link that the console shapes; rates in bit/s, times in ns."""
        assert self.link_rate is not None, "validated"
        return LinkSettings(
            rate_up=self.link_rate * 1e6,
            rate_down=(self.link_rate_down or self.link_rate) * 1e6,
            delay_ns=round(self.link_delay * 1e6),
            jitter_ns=round(self.link_jitter * 1e6),
            loss=self.link_loss / 100,
            window=round(self.link_window * 1024),
        )


def _enough(rate: float) -> float:
    if rate < LEAST_RATE:
        raise ValueError(f"the console shapes links from {LEAST_RATE:g} Mbit/s on: set a higher rate")
    return rate
