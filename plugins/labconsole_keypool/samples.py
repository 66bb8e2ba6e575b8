"""The series that a simulated run records, and its live channels.

All times are ns of virtual time since T0: no real time passes, and equal scenarios with equal seeds give equal samples.
"""

from __future__ import annotations

from labconsole.trial import Column, LiveChannel, Origin, Series

REQUESTS = Series(
    "requests",
    "Requests that were signed, in the order of arrival",
    (
        Column("request", "u4", "", "Number of the request, from 1"),
        Column("received", "i8", "ns", "Arrived, virtual time since T0"),
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
        Column("received", "i8", "ns", "Arrived, virtual time since T0"),
    ),
    Origin.SIMULATED,
)

QUEUE = Series(
    "queue",
    "Requests that wait, a row for each change",
    (
        Column("t", "i8", "ns", "Virtual time of the change, since T0"),
        Column("length", "u4", "requests", "Requests that wait from then on"),
    ),
    Origin.SIMULATED,
)

REFILLS = Series(
    "refills",
    "Batches of keys unwrapped into the token",
    (
        Column("started", "i8", "ns", "Began to unwrap, virtual time since T0"),
        Column("finished", "i8", "ns", "Its last key was there"),
        Column("keys", "u4", "keys", "Keys in the batch"),
    ),
    Origin.SIMULATED,
)

SIMULATED_CHANNEL = LiveChannel("simulated", "Simulated", "requests")
"""Signed and dropped ones; its rate is the speed of the simulator, in real time."""
DROPPED_CHANNEL = LiveChannel("dropped", "Dropped", "requests")
LATENCY_CHANNEL = LiveChannel("latency", "Latency", "ns")
