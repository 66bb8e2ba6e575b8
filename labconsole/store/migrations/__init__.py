"""Steps from one version of the database to the next; step N brings a database of version N-1 to version N."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlalchemy import Connection

from labconsole.store.migrations import v2, v3, v4, v5, v6

MIGRATIONS: Mapping[int, Callable[[Connection], None]] = {
    2: v2.migrate,
    3: v3.migrate,
    4: v4.migrate,
    5: v5.migrate,
    6: v6.migrate,
}
