"""The parameters of keys, requests and service that the live signing service and its simulation share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import ValidationInfo, field_validator

from labconsole.model.parameters import parameter
from labconsole.model.trial import Origin, Parameters
from labconsole.profiles.timing_profile import RangeEnd, TimingProfile, load_timing, timing_names
from labconsole_keypool.choices import LABELS, ArrivalPattern, KeySource, Refill, SignTime
from labconsole_keypool.form_fields import is_stored, known_sign_time, known_timing, sign_time
from labconsole_keypool.service.arrivals import ARRIVALS_FILE, MOST_REQUESTS

MOST_KEYS = 100_000_000

KEYS, REQUESTS, SERVICE = "Keys", "Requests", "Signing service"
"""Groups of the form."""

POOL = {"keys": "pool"}
"""Condition of fields that only a scenario with a pool shows."""

_RATED = {"arrivals": ["constant", "poisson", "business-day"]}


def key_count(title: str, description: str, least: int = 0, **shown_if: str) -> Any:
    """The field of a number of key pairs, which only a scenario with a pool has."""
    shown = {**POOL, **shown_if}
    return parameter(title, description, ge=least, le=MOST_KEYS, group=KEYS, unit="keys", shown_if=shown)


# Those whose usual value differs between the two trials; each trial names its own.

Arrivals = Annotated[
    ArrivalPattern,
    parameter("Arrivals", "When signing requests arrive", group=REQUESTS, labels=LABELS["arrivals"]),
]
Requests = Annotated[
    int,
    parameter(
        "Requests",
        "Requests that arrive; a business day is shortened or stretched to hold so many",
        ge=1,
        le=MOST_REQUESTS,
        group=REQUESTS,
        shown_if=_RATED,
    ),
]
Rate = Annotated[
    float,
    parameter(
        "Rate",
        "Requests per second; of a business day, at its peak",
        gt=0,
        le=100_000,
        group=REQUESTS,
        unit="1/s",
        shown_if=_RATED,
    ),
]
KeysAtStart = Annotated[int, key_count("In the token's RAM", "Key pairs in the token's RAM at the start")]
LowWater = Annotated[
    int, key_count("Low-water mark", "With fewer keys in the token than this, a refill begins", refill="parallel")
]
Batch = Annotated[int, key_count("Batch", "Key pairs that a refill loads", least=1)]


class KeypoolParameters(Parameters):
    """One scenario of the signing service (`hsm-key-pool-thesis.txt`, chapters 2.10 and 4), live or simulated."""

    keys: KeySource = parameter(
        "Keys",
        (
            "Every request is signed with a key pair of its own. From the pool: made in idle time, "
            "wrapped, kept outside, loaded back. It pays for RSA, slow to generate; for P-256 a pool gains nothing"
        ),
        default=KeySource.POOL,
        group=KEYS,
        labels=LABELS["keys"],
    )

    arrivals: Arrivals = ArrivalPattern.TABLE_4_1
    requests: Requests = 3000
    rate: Rate = 50.0
    csv: str = parameter(
        "CSV file",
        "A line for each step: how many requests, and the delay after each of them in ms",
        default="",
        group=REQUESTS,
        kind="file",
        shown_if={"arrivals": "csv"},
    )
    time_scale: float = parameter(
        "Time scale",
        "How many times faster requests arrive than the pattern says",
        default=1.0,
        gt=0,
        le=1000,
        group=REQUESTS,
    )
    tail_requests: int = parameter(
        "Further requests",
        "Requests after those of the pattern: do latencies return to normal? (Fig. 4-2 has 2,000)",
        default=0,
        ge=0,
        le=MOST_REQUESTS,
        group=REQUESTS,
    )
    tail_rate: float = parameter(
        "Their rate", "Further requests per second", default=1.0, gt=0, le=100_000, group=REQUESTS, unit="1/s"
    )

    timing: str = parameter(
        "Timing profile",
        "How long each operation of the device takes, with RSA-2048",
        default="",
        group=SERVICE,
        choices=timing_names,
    )
    sign: Annotated[str, sign_time(SERVICE)] = SignTime.MALMO.value
    key_generation: RangeEnd = parameter(
        "Key generation (KG)",
        "Which of the profile's times to generate a key pair; it matters where no key is left",
        default=RangeEnd.SHORTEST,
        group=SERVICE,
        labels=LABELS["key_generation"],
        shown_if={"timing": timing_names},
    )
    threads: int = parameter(
        "Signing threads",
        "Requests signed at a time; how long each takes then, the profile's table of threads says",
        default=1,
        ge=1,
        le=50,
        group=SERVICE,
    )
    queue_limit: int = parameter(
        "Queue limit",
        "Requests that may wait; one that finds so many is dropped. 0: no limit (the source: 50, 150)",
        default=0,
        ge=0,
        le=MOST_REQUESTS,
        group=SERVICE,
    )
    base_rate: float = parameter(
        "Normal hours up to",
        (
            "Rate up to which a request must be signed within 300 ms; above it is peak, with a limit of 3,000 ms. "
            "26.3 is the source's base rate"
        ),
        default=26.3,
        gt=0,
        le=100_000,
        group=SERVICE,
        unit="1/s",
    )

    keys_at_start: KeysAtStart = 0
    store_keys: Annotated[int, key_count("In the token's store", "Key pairs in the token's store at the start")] = 0
    refill: Refill = parameter(
        "Refill",
        "When a batch is loaded from the pool; when the token is empty, all wait for the whole batch",
        default=Refill.PARALLEL,
        group=KEYS,
        labels=LABELS["refill"],
        shown_if=POOL,
    )
    low_water: LowWater = 0
    batch: Batch = 175

    @property
    def origin(self) -> Origin:
        """The origin of the figures of a run with these parameters."""
        raise NotImplementedError

    @property
    def arrival_files(self) -> dict[str, Path]:
        """The CSV file of arrivals under the key by which a role asks for it, if this scenario reads one."""
        if self.arrivals is not ArrivalPattern.CSV:
            return {}
        return {ARRIVALS_FILE: Path(self.csv).expanduser()}

    @property
    def speed(self) -> float:
        """The device's time over the time of the samples: 1 but for an emulated device."""
        return 1.0

    # Values that exclude each other are a fault of the last of their fields, where a form shows it. A field that
    # is wrong by itself is not in `info.data`.

    @field_validator("csv")
    @classmethod
    def _file_for_csv(cls, csv: str, info: ValidationInfo) -> str:
        if not csv and info.data.get("arrivals") is ArrivalPattern.CSV:
            raise ValueError("arrivals from a CSV file need its path: set `csv`, or choose other `arrivals`")
        return csv

    _timing_is_there = field_validator("timing")(known_timing)
    _sign_is_there = field_validator("sign")(known_sign_time)

    @field_validator("keys_at_start", "store_keys")
    @classmethod
    def _fit_at_the_start(cls, keys: int, info: ValidationInfo) -> int:
        profile = _profile_of_pool(info)
        if profile is not None:
            place, capacity = ("RAM", profile.ram) if info.field_name == "keys_at_start" else ("store", profile.store)
            if keys > capacity.key_pairs:
                raise ValueError(f"the {place} of this device holds {capacity.key_pairs:,} key pairs: enter fewer")
        return keys

    @field_validator("batch")
    @classmethod
    def _fits_when_refilled(cls, batch: int, info: ValidationInfo) -> int:
        profile = _profile_of_pool(info)
        if profile is not None and left_at_refill(info) + batch > profile.ram.key_pairs:
            raise ValueError(
                f"`low_water` and `batch` together are more than the {profile.ram.key_pairs:,} key pairs that the "
                "RAM of this device holds: lower one of them"
            )
        return batch


def _profile_of_pool(info: ValidationInfo) -> TimingProfile | None:
    """The timing profile of a scenario with a pool; None without a pool or profile, or where it is wrong by itself."""
    timing = None if is_stored(info) else info.data.get("timing")
    return load_timing(timing) if timing and info.data.get("keys") is KeySource.POOL else None


def left_at_refill(info: ValidationInfo) -> int:
    """Keys that are in the token when a batch is loaded, at most."""
    return int(info.data.get("low_water", 0)) if info.data.get("refill") is Refill.PARALLEL else 0
