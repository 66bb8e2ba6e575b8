"""The planner's formulas (section 4.5 of the source): each gives a figure, and in readable lines how it came about."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labconsole.analysis.number_format import format_duration, format_number
from labconsole_keypool.service.arrivals import BUSINESS_DAY

HOUR_S = 3600


@dataclass(frozen=True)
class Derivation:
    """A figure in `unit`, and the lines that lead to it, the last one with the figure itself.

    `value` is infinite where something never happens.
    """

    value: float
    unit: str
    steps: tuple[str, ...]


def shown(value: float) -> str:
    """A number as derivations write it: four digits, whole numbers and large ones in full, ∞ for never."""
    return f"{round(value):,}" if 10_000 <= abs(value) < math.inf else format_number(round(value, 6))


def base_rate(sign_ms: float, threads: int = 1) -> Derivation:
    """BR: requests that are signed in a second where keys are there (section 4.5.1)."""
    value = threads * 1000 / sign_ms
    return Derivation(
        value,
        "requests/s",
        (
            "BR = threads / Si",
            f"BR = {threads} / {shown(sign_ms)} ms = {shown(value)} requests/s",
        ),
    )


def rate_without_keys(sign_ms: float, generation_ms: float, threads: int = 1, at_a_time: int = 1) -> Derivation:
    """Requests that are signed in a second where each generates its key pair; the device generates `at_a_time`."""
    each = threads * 1000 / (generation_ms + sign_ms)
    device = at_a_time * 1000 / generation_ms
    value = min(each, device)
    steps = [
        "BR without keys = threads / (KG + Si), at most what the device generates",
        f"{threads} / ({shown(generation_ms)} ms + {shown(sign_ms)} ms) = {shown(each)} requests/s",
    ]
    if device < each:
        steps.append(
            f"it generates {at_a_time} at a time: {at_a_time} / {shown(generation_ms)} ms = {shown(device)} keys/s"
        )
    return Derivation(value, "requests/s", (*steps, f"BR without keys = {shown(value)} requests/s"))


def queue_length(rate: float, base: float, duration_s: float, queue_limit: int = 0) -> Derivation:
    """Q: requests that wait after `duration_s` at a constant `rate` (section 4.5.2), at most `queue_limit`; 0: no
    limit."""
    steps = ["Q = (HR - BR) * T"]
    if rate <= base:
        line = f"HR {shown(rate)} is not above BR {shown(base)}: no request waits, Q = 0"
        return Derivation(0.0, "requests", (*steps, line))
    value = (rate - base) * duration_s
    steps.append(f"Q = ({shown(rate)} - {shown(base)}) * {shown(duration_s)} s = {shown(value)} requests")
    if queue_limit and value > queue_limit:
        value = float(queue_limit)
        steps.append(f"the queue holds no more than its limit: Q = {queue_limit:,} requests, the others are dropped")
    return Derivation(value, "requests", tuple(steps))


def dropped(rate: float, base: float, duration_s: float, queue_limit: int) -> Derivation:
    """Requests of a constant `rate` over `duration_s` that find the queue full (section 4.5.2)."""
    formula = "dropped = (HR - BR) * T - queue limit"
    if not queue_limit:
        return Derivation(0.0, "requests", (formula, "the queue has no limit: none is dropped"))
    if rate <= base:
        line = f"HR {shown(rate)} is not above BR {shown(base)}: none is dropped"
        return Derivation(0.0, "requests", (formula, line))
    value = max(0.0, (rate - base) * duration_s - queue_limit)
    line = f"({shown(rate)} - {shown(base)}) * {shown(duration_s)} s - {queue_limit:,} = {shown(value)} requests"
    return Derivation(
        value, "requests", (formula, line if value else "all of them fit into the queue: none is dropped")
    )


def latency(preparation_ms: float, sign_ms: float, queue: float, threads: int = 1) -> Derivation:
    """L: latency of a request that finds `queue` requests waiting (section 4.5.4); `preparation_ms` (KP) is nothing
    where its key is there. Threads share the queue. It is one service time where no request waits."""
    service_ms = preparation_ms + sign_ms
    value = max(service_ms * queue / threads, service_ms)
    formula = "L = (KP + Si) * Q" if threads == 1 else "L = (KP + Si) * Q / threads"
    shared = "" if threads == 1 else f" / {threads}"
    line = f"L = ({shown(preparation_ms)} ms + {shown(sign_ms)} ms) * {shown(queue)}{shared} = {shown(value)} ms"
    if queue * service_ms / threads < service_ms:
        line = f"no request waits: L = KP + Si = {shown(value)} ms"
    return Derivation(value, "ms", (formula, line))


def time_to_first_drop(rate: float, base: float, queue_limit: int) -> Derivation:
    """Time at a constant `rate` until the first request finds `queue_limit` of them waiting."""
    formula = "time to first drop = queue limit / (HR - BR)"
    if not queue_limit:
        return Derivation(math.inf, "s", (formula, "the queue has no limit: none is dropped"))
    if rate <= base:
        return Derivation(math.inf, "s", (formula, f"HR {shown(rate)} is not above BR {shown(base)}: none is dropped"))
    value = queue_limit / (rate - base)
    return Derivation(value, "s", (formula, f"{queue_limit:,} / ({shown(rate)} - {shown(base)}) = {shown(value)} s"))


def time_to_empty(keys: int, rate: float, base: float, unwrap_ms: float) -> Derivation:
    """How long the keys in a token last at a constant `rate` while further keys are unwrapped."""
    loaded, taken = 1000 / unwrap_ms, min(rate, base)
    steps = (
        "keys last for = keys in the token / (min(HR, BR) - 1 / KP)",
        f"unwrapping gives 1 / {shown(unwrap_ms)} ms = {shown(loaded)} keys/s; signing takes {shown(taken)} keys/s",
    )
    if taken <= loaded:
        return Derivation(math.inf, "s", (*steps, "that is not more: they do not run out"))
    value = keys / (taken - loaded)
    line = f"{keys:,} / ({shown(taken)} - {shown(loaded)}) = {shown(value)} s ({format_duration(value)})"
    return Derivation(value, "s", (*steps, line))


def business_day(peak_rate: float) -> NDArray[np.float64]:
    """Requests in each hour of the source's business day (section 1.3), from midnight on; shape (24,)."""
    hours, shares = np.array(BUSINESS_DAY).T
    return np.repeat(shares, hours.astype(int)) * peak_rate * HOUR_S


def made_when_idle(requests: NDArray[np.float64], base: float, pooled_ms: float) -> NDArray[np.float64]:
    """Key pairs that a device can put into the pool in each hour while it does not sign; shape as `requests`."""
    idle = np.maximum(0.0, 1 - requests / (base * HOUR_S))
    return np.asarray(idle * HOUR_S * 1000 / pooled_ms)


def keys_needed(requests: NDArray[np.float64], made: NDArray[np.float64], at_end: float = 0.0) -> NDArray[np.float64]:
    """Keys that the pool must hold at the beginning of each hour, so that none is missing until the last one, and
    `at_end` are left after it."""
    needed = np.zeros(len(requests))
    ahead = at_end
    for hour in range(len(requests) - 1, -1, -1):
        ahead = max(0.0, ahead + float(requests[hour]) - float(made[hour]))
        needed[hour] = ahead
    return needed


def pool_for_day(requests: NDArray[np.float64], base: float, pooled_ms: float) -> Derivation:
    """Wrapped keys that the pool must hold so that no request of a day waits for its key, with generation in idle
    time: the most that any stretch of hours takes above what is made meanwhile.

    Args:
        requests: Requests in each hour of the day, shape (hours,).
        base: Requests that the device signs in a second (BR).
        pooled_ms: Time to generate a key pair (KG), to wrap and to save it (Table 2-5).
    """
    made = made_when_idle(requests, base, pooled_ms)
    needed = keys_needed(requests, made)
    begin = int(needed.argmax())
    value = math.ceil(float(needed[begin]) - 1e-9)
    steps = [
        "pool = most that any stretch of hours takes above what is generated in its idle time",
        f"idle part of an hour = 1 - requests / (BR * 3,600 s), BR = {shown(base)}/s; a key is generated, wrapped and "
        f"saved in {shown(pooled_ms)} ms",
    ]
    if value:
        end = begin + int(np.flatnonzero(np.append(needed[begin + 1 :], 0.0) == 0)[0]) + 1
        taken, got = float(requests[begin:end].sum()), float(made[begin:end].sum())
        steps.append(
            f"{begin:02d}:00 to {end:02d}:00: {round(taken):,} requests - {round(got):,} generated = {value:,} keys"
        )
    else:
        steps.append("in every hour more is generated than is taken: 0 keys")
    day, all_made = float(requests.sum()), float(made.sum())
    if all_made < day:
        steps.append(
            f"generation does not keep up: the day takes {round(day):,} keys, its idle time makes {round(all_made):,}"
        )
    return Derivation(float(value), "keys", tuple(steps))


def hsms_with_pool(rate: float, base: float) -> Derivation:
    """HSMs that sign the peak `rate` where every key is in the token: the source's count."""
    value = math.ceil(rate / base - 1e-9)
    steps = ("HSMs = HR / BR, rounded up", f"{shown(rate)} / {shown(base)} = {shown(rate / base)}, rounded up {value}")
    return Derivation(float(value), "HSMs", steps)


def hsms_with_loading(rate: float, base: float, duration_s: float, keys_in_token: int, unwrap_ms: float) -> Derivation:
    """HSMs for a peak of `duration_s` where the keys that do not fit into the tokens are unwrapped meanwhile."""
    wanted, loaded = rate * duration_s, duration_s * 1000 / unwrap_ms
    each = min(keys_in_token + loaded, base * duration_s)
    value = math.ceil(wanted / each - 1e-9)
    return Derivation(
        float(value),
        "HSMs",
        (
            "HSMs = HR * T / min(keys in a token + T / KP, BR * T), rounded up",
            f"keys of each, unwrapped ones too: {keys_in_token:,} + {shown(duration_s)} s / {shown(unwrap_ms)} ms = "
            f"{round(keys_in_token + loaded):,}",
            f"each signs at most {shown(base)} * {shown(duration_s)} s = {round(base * duration_s):,}",
            f"{shown(wanted)} / {round(each):,} = {shown(wanted / each)}, rounded up {value}",
        ),
    )


def hsms_without_pool(
    rate: float, base: float, duration_s: float, keys_in_token: int, generation_ms: float
) -> Derivation:
    """HSMs for a peak of `duration_s` that have only the keys in their own RAM and store, and those they generate:
    the source's calculation (section 1.9), as far as its numbers show it."""
    made = 1000 / generation_ms
    wanted, keys, signed = rate * duration_s, keys_in_token + made * duration_s, base * duration_s
    each = min(keys, signed)
    value = math.ceil(wanted / each - 1e-9)
    steps = [
        "HSMs = HR * T / min(keys in RAM and store + T / KG, BR * T), rounded up",
        f"{shown(rate)} * {shown(duration_s)} s = {shown(wanted)} requests",
        f"keys of each: {keys_in_token:,} + {shown(made)}/s * {shown(duration_s)} s = {round(keys):,}",
    ]
    if signed < keys:
        steps.append(f"each signs fewer: {shown(base)} * {shown(duration_s)} s = {round(signed):,}")
    steps.append(f"{shown(wanted)} / {round(each):,} = {shown(wanted / each)}, rounded up {value}")
    return Derivation(float(value), "HSMs", tuple(steps))


def hsms_without_storage(rate: float, generation_ms: float) -> Derivation:
    """HSMs that generate every key when it is asked for, and keep none."""
    made = 1000 / generation_ms
    value = math.ceil(rate / made - 1e-9)
    return Derivation(
        float(value),
        "HSMs",
        (
            "HSMs = HR / (1 / KG), rounded up",
            f"{shown(rate)} / {shown(made)} = {shown(rate / made)}, rounded up {value} ({value - 1} carry "
            f"{shown((value - 1) * made)} requests/s)",
        ),
    )


def cost_ratio(without: Derivation, with_pool: Derivation) -> Derivation:
    """How many times as much HSMs cost without a pool as with one: the devices alone are counted."""
    value = without.value / with_pool.value
    return Derivation(
        value,
        "",
        (
            "cost ratio = HSMs without pool / HSMs with pool (devices alone)",
            f"{shown(without.value)} / {shown(with_pool.value)} = {shown(value)}",
        ),
    )
