"""The series that live and simulated runs record, and their live channels.

Times are ns: of `clock.now_ns` in a live run; of virtual time since T0 in a simulated one, where no real time passes
and equal scenarios with equal seeds give equal samples. A live run's requests have some columns more.
"""

from __future__ import annotations

from dataclasses import replace

from labconsole.model.trial import Column, LiveChannel, Origin, Series

REQUESTS = Series(
    "requests",
    "Requests that were signed, in the order of arrival",
    (
        Column("request", "u4", "", "Number of the request, from 1"),
        Column("received", "i8", "ns", "Arrived"),
        Column("started", "i8", "ns", "Taken out of the queue by a signing thread"),
        Column("got_key", "i8", "ns", "Had its key pair in the token"),
        Column("finished", "i8", "ns", "Signed"),
        Column("key_source", "u1", "", "1 token RAM, 2 token store, 3 pool, 4 generated (Appendix B's A to D)"),
    ),
    Origin.SIMULATED,
)

DROPS = Series(
    "drops",
    "Requests that found the queue full",
    (
        Column("request", "u4", "", "Number of the request, from 1"),
        Column("received", "i8", "ns", "Arrived"),
    ),
    Origin.SIMULATED,
)

QUEUE = Series(
    "queue",
    "Requests that wait, a row for each change",
    (
        Column("t", "i8", "ns", "Time of the change"),
        Column("length", "u4", "requests", "Requests that wait from then on"),
    ),
    Origin.SIMULATED,
)

REFILLS = Series(
    "refills",
    "Batches of keys unwrapped into the token",
    (
        Column("started", "i8", "ns", "Began to unwrap"),
        Column("finished", "i8", "ns", "Its last key was there"),
        Column("keys", "u4", "keys", "Keys in the batch"),
    ),
    Origin.SIMULATED,
)

LIVE_REQUESTS = replace(
    REQUESTS,
    title="Requests that were signed, in the order of their answers",
    columns=(
        *REQUESTS.columns,
        Column("signed", "i8", "ns", "The token had signed it; certificate, destruction of the key and answer follow"),
        Column("key", "u4", "", "Row of the key in the key store, 0 for a generated one"),
    ),
)

FAILURES = Series(
    "failures",
    "Requests that were answered with a fault",
    (
        Column("request", "u4", "", "Number of the request, from 1"),
        Column("received", "i8", "ns", "Arrived"),
        Column("finished", "i8", "ns", "Answered"),
    ),
)

GENERATED = Series(
    "generated",
    "Key pairs generated for the pool",
    (
        Column("started", "i8", "ns", "Began to generate"),
        Column("generated", "i8", "ns", "The key pair was there"),
        Column("wrapped", "i8", "ns", "Its private key was wrapped"),
        Column("stored", "i8", "ns", "It was durably in the key store"),
    ),
)


END_EVENT = "end of requests"
"""Event of the service: the numbers of requests received, answered, failed, dropped and unfinished."""

STORE_VERIFIED = "key store verified"
"""Event: the links of the key store were checked; data `findings`, sentences."""


def of_origin(series: Series, origin: Origin) -> Series:
    """The series as a run of that origin records it, such as one on an emulated device."""
    return replace(series, origin=origin)


SIMULATED_CHANNEL = LiveChannel("simulated", "Simulated", "requests")
"""Signed and dropped ones; its rate is the speed of the simulator, in real time."""
DROPPED_CHANNEL = LiveChannel("dropped", "Dropped", "requests")
LATENCY_CHANNEL = LiveChannel("latency", "Latency", "ns")

RECEIVED_CHANNEL = LiveChannel("received", "Received", "requests")
PROCESSED_CHANNEL = LiveChannel("processed", "Signed", "requests")
SETTLED_CHANNEL = LiveChannel("settled", "Answered or dropped", "requests", shown=False)
"""The progress of a live run."""
TAKEN_CHANNEL = LiveChannel("taken", "Taken out of the queue", "requests", shown=False)
"""Queue = received - dropped - taken; requests that come back from a signer that was lost count as not taken."""
FROM_RAM_CHANNEL = LiveChannel("from_ram", "Key from the token's RAM", "requests", shown=False)
FROM_STORE_CHANNEL = LiveChannel("from_store", "Key from the token's store", "requests", shown=False)
FROM_POOL_CHANNEL = LiveChannel("from_pool", "Key from the pool", "requests", shown=False)
GENERATED_CHANNEL = LiveChannel("generated", "Key generated", "requests", shown=False)

KEYS_GENERATED_CHANNEL = LiveChannel("keys_generated", "Keys generated", "keys", shown=False)
KEYS_STORED_CHANNEL = LiveChannel("keys_stored", "Keys stored", "keys", shown=False)
KEYS_CLAIMED_CHANNEL = LiveChannel("keys_claimed", "Keys claimed", "keys", shown=False)
KEYS_LOADED_CHANNEL = LiveChannel("keys_loaded", "Keys loaded", "keys", shown=False)
KEYS_USED_CHANNEL = LiveChannel("keys_used", "Keys used", "keys", shown=False)
"""Keys in the token = loaded - used; being wrapped = generated - stored; in the store = what the event `pool` says was
new at the start + stored - claimed."""

SERVICE_CHANNELS = (
    RECEIVED_CHANNEL,
    PROCESSED_CHANNEL,
    DROPPED_CHANNEL,
    LATENCY_CHANNEL,
    SETTLED_CHANNEL,
    TAKEN_CHANNEL,
    FROM_RAM_CHANNEL,
    FROM_STORE_CHANNEL,
    FROM_POOL_CHANNEL,
    GENERATED_CHANNEL,
    KEYS_GENERATED_CHANNEL,
    KEYS_STORED_CHANNEL,
    KEYS_CLAIMED_CHANNEL,
    KEYS_LOADED_CHANNEL,
    KEYS_USED_CHANNEL,
)
