"""The thesis' own results as tables: Table 4-2, and the figures in its text on Figs 4-1 to 4-5 and 4-9 to 4-11.

One campaign of the profile `keypool-published` fills all of them. Table 4-2 has a row for each request rate in the
source; here the rates are columns, as scenarios are in every comparison.
"""

from __future__ import annotations

from labconsole.analysis.table_shape import ShapeColumn, ShapeRow, TableShape

_KINDS = ("keypool.simulation", "keypool.signing-service")
_SOURCE = "Saboonchi, KTH 2014"
_PLAIN = {"time_scale": 1.0, "tail_requests": 0}
_FROM_POOL = {"keys": "pool", "arrivals": "constant", **_PLAIN}
_UNBOUNDED = {**_FROM_POOL, "queue_limit": 0}

_TESTS = (
    ShapeColumn("Test 1: 40 requests per second", {"rate": 40.0, "requests": 3000}),
    ShapeColumn("Test 2: 50 requests per second", {"rate": 50.0, "requests": 3000}),
    ShapeColumn("Test 3: 100 requests per second", {"rate": 100.0, "requests": 3000}),
)

_TABLE_4_2 = TableShape(
    name="keypool-table-4-2",
    title="Table 4-2: Latency calculation vs actual test results",
    kinds=_KINDS,
    reference=f"{_SOURCE}, Table 4-2, actual",
    parameters=_UNBOUNDED,
    columns=_TESTS,
    rows=(ShapeRow("Actual Q", "queue_length"), ShapeRow("Actual Latency", "latency_peak")),
    published="keypool-table-4-2",
)

_CALCULATED = TableShape(
    name="keypool-table-4-2-calculated",
    title="Table 4-2: the source's calculation",
    kinds=_KINDS,
    reference=f"{_SOURCE}, Table 4-2, calculated, and section 4.5.2",
    parameters=_UNBOUNDED,
    columns=(
        *_TESTS,
        ShapeColumn("Section 4.5.2: 40 requests per second for 100 seconds", {"rate": 40.0, "requests": 4000}),
    ),
    rows=(ShapeRow("Calculated Q", "queue_length"), ShapeRow("Latency Calculation", "latency_peak")),
    published="keypool-table-4-2-calculated",
)

# Without the pool the source's peak needs a key generation that chapter 2 does not have: the figures by
# that chapter are shown next to it.
_WITHOUT_POOL = {"keys": "generated", "queue_limit": 0}
_CHAPTER_2 = {**_WITHOUT_POOL, "timing": "luna-sa-1700"}
_FITTED = {"timing": "luna-sa-1700-fig4-1"}

_FIGURES = TableShape(
    name="keypool-figures-4-1-to-4-5",
    title="Figures 4-1 to 4-5: 3000 requests as in Table 4-1",
    kinds=_KINDS,
    reference=f"{_SOURCE}, sections 4.2 and 4.3",
    parameters={"arrivals": "table-4-1", **_PLAIN},
    columns=(
        ShapeColumn("Figure 4-1: without key pool", {**_WITHOUT_POOL, **_FITTED}),
        ShapeColumn("Figure 4-1 with 588 ms: keys as by chapter 2", {**_CHAPTER_2, "key_generation": "shortest"}),
        ShapeColumn("Figure 4-1 with 673 ms: keys as by chapter 2", {**_CHAPTER_2, "key_generation": "longest"}),
        ShapeColumn("Figure 4-3: with key pool", {"keys": "pool", "queue_limit": 0}),
        ShapeColumn("Figure 4-4: without key pool, queue of 50", {"keys": "generated", "queue_limit": 50, **_FITTED}),
        ShapeColumn("Figure 4-5: with key pool, queue of 50", {"keys": "pool", "queue_limit": 50}),
    ),
    rows=(
        ShapeRow("Peak latency", "latency_peak"),
        ShapeRow("Requests dropped", "dropped"),
        ShapeRow("First request dropped", "first_dropped"),
    ),
    published="keypool-figures-4-1-to-4-5",
)

_BASE_RATE = TableShape(
    name="keypool-base-rate",
    title="Figures 4-9 to 4-11: Base Rate (BR)",
    kinds=_KINDS,
    reference=f"{_SOURCE}, section 4.5.1",
    parameters=_UNBOUNDED,
    columns=(
        ShapeColumn("Figure 4-9: 25 requests per second", {"rate": 25.0, "requests": 3000}),
        ShapeColumn("Figure 4-10: 26.3 requests per second", {"rate": 26.3, "requests": 3000}),
        ShapeColumn("Figure 4-11: 27 requests per second", {"rate": 27.0, "requests": 3000}),
    ),
    rows=(
        ShapeRow("Requests processed", "processed"),
        ShapeRow("Requests processed per second", "throughput"),
        ShapeRow("Queue size", "queue_length"),
        ShapeRow("Peak latency", "latency_peak"),
    ),
    published="keypool-base-rate",
)

_QUEUE_LIMIT = TableShape(
    name="keypool-queue-limit",
    title="Section 2.9.9: Maximum FIFO queue length for signing requests",
    kinds=_KINDS,
    reference=f"{_SOURCE}, section 2.9.9",
    parameters=_FROM_POOL,
    columns=(ShapeColumn("Section 2.9.9: queue of 150", {"queue_limit": 150}),),
    rows=(
        ShapeRow("Longest queue", "queue_length_peak"),
        ShapeRow("Peak latency", "latency_peak"),
        ShapeRow("Requests processed per second", "throughput"),
    ),
    published="keypool-queue-limit",
)

TABLES = (_TABLE_4_2, _CALCULATED, _FIGURES, _BASE_RATE, _QUEUE_LIMIT)
