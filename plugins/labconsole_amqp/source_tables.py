"""SWIM's result tables (`swim-wp16.txt`, "Results"): within Malaysia, and Malaysia to Singapore.

Both have a table for each of three payloads, with the same rows and columns. A run belongs to a table by its payload,
sent in its own size, and to a column by its test, so that one campaign fills three tables. From Malaysia to Singapore
the source's column of Test 1 is empty.
"""

from __future__ import annotations

from labconsole.analysis.table_shape import ShapeColumn, ShapeRow, TableShape
from labconsole_amqp.choices import MessageSizes

_ROWS = (
    ShapeRow("Establishing Connection", "connect_time"),
    ShapeRow("Sender Duration", "send_duration"),
    ShapeRow("Message Sending Rate", "send_rate"),
    ShapeRow("Sender Message Size", "sent_size"),
    ShapeRow("Establishing Receiver Link", "receiver_link_time"),
    ShapeRow("Receiver Duration", "receive_duration"),
    ShapeRow("Received Message Size", "received_size"),
    ShapeRow("Message Throughput", "throughput"),
    ShapeRow("Average Latency", "queue_time_mean"),
)

_COLUMNS = (
    ShapeColumn("Test 1: No TLS Connection", {"test": 1}),
    ShapeColumn("Test 2: TLS Connection", {"test": 2}),
    ShapeColumn("Test 3: TLS/Digital Signature", {"test": 3}),
    ShapeColumn("Test 4: TLS/Digital Signature/Encryption", {"test": 4}),
)

_PARTS = (("Within Malaysia", "swim-within-malaysia"), ("MY to SG", "swim-my-sg"))
_PAYLOADS = (("Small", "small"), ("Medium", "fpl-tac"), ("Large", "fpl-fixm"))

TABLES = tuple(
    TableShape(
        name=f"{name}-{size.lower()}",
        title=f"{part}: {size} Payload",
        kinds=("amqp.messaging",),
        reference=f'ICAO APAC WP/16, table "{part}: {size} Payload"',
        parameters={"payload": payload, "message_sizes": MessageSizes.PAYLOAD.value},
        columns=_COLUMNS,
        rows=_ROWS,
        published=f"{name}-{size.lower()}",
    )
    for part, name in _PARTS
    for size, payload in _PAYLOADS
)
