"""The parameters of receivers in the live trial: their checks, threads, queue and acceptance windows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from labconsole.model.operation import HomePath
from labconsole.model.parameters import Parameters, parameter
from labconsole_v2x.choices import Order
from labconsole_v2x.live.security_fields import VERIFIED
from labconsole_v2x.security.verification import CheckSettings
from labconsole_v2x.stations.plausibility import RADIO_RANGE_M

_DEFAULTS = CheckSettings()


def _window(title: str, description: str, default_us: int, longest_ms: int) -> Any:
    return parameter(
        title,
        description,
        default=default_us / 1000,
        ge=0,
        le=longest_ms,
        unit="ms",
        group="Acceptance",
        shown_if=VERIFIED,
    )


def plausibility(*, default: bool, shown_if: Mapping[str, Any]) -> Any:
    """The field of the plausibility checks."""
    return parameter(
        "Plausibility checks",
        "Reject rightly signed CAMs whose content is implausible: position jumps, false speeds, station IDs of others",
        default=default,
        group="Receiver",
        shown_if=shown_if,
    )


def radio_range(*, shown_if: Mapping[str, Any]) -> Any:
    """The field of the radio range."""
    return parameter(
        "Radio range",
        "A CAM from a position further away than this is implausible",
        default=RADIO_RANGE_M,
        ge=100,
        le=100_000,
        unit="m",
        group="Receiver",
        shown_if=shown_if,
    )


class ReceiverFields(Parameters):
    """What receivers check, and how much they can take; a model that has these fields has `security`, too."""

    order: Order = parameter(
        "Order of checks",
        "Time, duplicate, ITS-AID, region and validity before the signature, or after it as in the source's kit",
        default=Order.CHEAP_FIRST,
        group="Receiver",
        labels={"cheap-first": "Cheap checks first", "signature-first": "Signature first"},
        shown_if=VERIFIED,
    )
    threads: int = parameter(
        "Verifying threads",
        "Threads of each process that check packets and decode CAMs",
        default=1,
        ge=1,
        le=16,
        group="Receiver",
    )
    queue_limit: int = parameter(
        "Receiver queue",
        "Packets that wait in a receiver at most; further ones are lost there",
        default=10_000,
        ge=1,
        le=1_000_000,
        unit="packets",
        group="Receiver",
    )
    roots: tuple[HomePath, ...] = parameter(
        "Further trusted roots",
        "Certificates (COER) of root CAs of other stations on this transport that the receiver trusts, too",
        default=(),
        kind="file",
        group="Receiver",
        shown_if=VERIFIED,
    )
    plausibility: bool = plausibility(default=False, shown_if=VERIFIED)
    radio_range: float = radio_range(shown_if={**VERIFIED, "plausibility": True})
    capture: bool = parameter(
        "Keep a capture",
        "Keep each packet that a receiver hears, its own too, as a pcapng file with the run: Wireshark opens it",
        default=True,
        group="Receiver",
    )

    cam_past: float = _window(
        "CAM: late by", "A CAM older than this is rejected", _DEFAULTS.cam_window.past_us, 600_000
    )
    cam_future: float = _window(
        "CAM: early by", "A CAM further in the future is rejected", _DEFAULTS.cam_window.future_us, 600_000
    )
    denm_past: float = _window(
        "DENM: late by", "A DENM older than this is rejected", _DEFAULTS.denm_window.past_us, 86_400_000
    )
    denm_future: float = _window(
        "DENM: early by", "A DENM further in the future is rejected", _DEFAULTS.denm_window.future_us, 600_000
    )
    other_past: float = _window(
        "Others: late by", "Another message older than this is rejected", _DEFAULTS.other_window.past_us, 86_400_000
    )
    other_future: float = _window(
        "Others: early by",
        "Another message further in the future is rejected",
        _DEFAULTS.other_window.future_us,
        600_000,
    )

    @property
    def windows_us(self) -> list[list[int]]:
        """Acceptance windows, past and future in us, of CAM, DENM and others."""
        pairs = (
            (self.cam_past, self.cam_future),
            (self.denm_past, self.denm_future),
            (self.other_past, self.other_future),
        )
        return [[round(past * 1000), round(future * 1000)] for past, future in pairs]
