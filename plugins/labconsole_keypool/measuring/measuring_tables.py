"""The thesis' tables of single steps and of the device: Tables 2-3 to 2-11, Appendix C, and figures in its text.

As in every comparison, scenarios are columns: the source has a row for each number of keys or threads. Every benchmark
of a device is shown in each column of its tables: which interface and how many devices the source had is not a
parameter here. Table 2-2 is how many keys a device holds, which no run measures: it is a published table without a
shape.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from labconsole.analysis.table_shape import ShapeColumn, ShapeRow, TableShape
from labconsole_keypool.measuring.device_benchmark_parameters import KeySize, RSAOperation

_STEPS, _DEVICE = ("keypool.step-times",), ("keypool.device-benchmark",)
_SOURCE = "Saboonchi, KTH 2014"
_RSA = {"key_kind": "rsa-2048"}

_TOTAL = ShapeRow("Total time", "total_time")
_PER_KEY = ShapeRow("Time per key pair", "time_per_key")


def _step_table(
    number: str, title: str, parameters: Mapping[str, Any], columns: tuple[ShapeColumn, ...], *rows: ShapeRow
) -> TableShape:
    name, _, part = number.partition(" ")
    return TableShape(
        name="-".join(filter(None, ("keypool-table", name, part))),
        title=f"Table {name}: {title}",
        kinds=_STEPS,
        reference=f"{_SOURCE}, Table {name}",
        parameters={**_RSA, **parameters},
        columns=columns,
        rows=rows,
        published="-".join(filter(None, ("keypool-table", name, part))),
    )


def _keys(what: str, *counts: int) -> tuple[ShapeColumn, ...]:
    return tuple(ShapeColumn(f"{count:,} {what}", {"keys": count}) for count in counts)


_MOVED = _keys("key pairs", 100, 500, 1000, 5000, 10_000)
_DATABASE = {"storage": "database"}
_ONE_THREAD = {"threads": 1}

STEP_TABLES = (
    _step_table(
        "2-4",
        "SafeNet key pair generation performance",
        {"step": "generate"},
        _keys("key pairs", 100, 1000, 2000),
        _TOTAL,
        ShapeRow("Time per keypair", "time_per_key"),
    ),
    _step_table(
        "2-5",
        "Time to wrap a private key using AES (256)",
        {"step": "wrap-and-save", "storage": "file"},
        _keys("keys", 100, 200, 1000),
        _TOTAL,
        ShapeRow("Key pair generation, wrap, and save to file", "time_per_key"),
        ShapeRow("Key generation per key", "generation_per_key"),
        ShapeRow("Wrap and save to file per key", "wrap_and_save_per_key"),
    ),
    _step_table(
        "2-6 load",
        "Time to move a block of RSA 2048-bit keypairs, loaded from DB",
        {"step": "load", **_DATABASE},
        _MOVED,
        _TOTAL,
        ShapeRow("Time per keypair", "time_per_key"),
    ),
    _step_table(
        "2-6 save",
        "Time to move a block of RSA 2048-bit keypairs, written to DB",
        {"step": "save", **_DATABASE},
        _MOVED,
        _TOTAL,
        ShapeRow("Time per keypair", "time_per_key"),
    ),
    _step_table(
        "2-7",
        "Time to load public key and wrapped private key. unwrap the private key",
        {"step": "load-and-unwrap", **_DATABASE},
        _keys("key pairs", 1000, 2000, 3000, 4000),
        ShapeRow("Load from DB", "load_time"),
        ShapeRow("Cipher initialization", "initialisation_time"),
        ShapeRow("Unwrap private key process", "unwrap_time"),
        _TOTAL,
        ShapeRow("Unwrap time per private key", "unwrap_per_key"),
        _PER_KEY,
    ),
    _step_table(
        "2-8",
        "Performance in Stockholm",
        {"step": "sign", **_ONE_THREAD},
        _keys("signing requests", 500, 999, 1000),
        _TOTAL,
        _PER_KEY,
    ),
    _step_table(
        "2-9",
        "Performance in Malmö",
        {"step": "sign", **_ONE_THREAD},
        _keys("signing requests", 9998, 9999),
        _TOTAL,
        _PER_KEY,
    ),
    _step_table(
        "2-10",
        "Signing time per key pair with different numbers of simultaneous threads",
        {"step": "sign"},
        tuple(
            ShapeColumn(f"{threads} {'thread' if threads == 1 else 'threads'}", {"threads": threads})
            for threads in (1, 2, 4, 10, 30, 50)
        ),
        ShapeRow("Average time per signing request", "time_per_key"),
        ShapeRow("Variance in signing times, up to", "latency_range"),
    ),
    _step_table(
        "2-11",
        "Signing request time when simultaneously performing a key unwrapping process",
        {"step": "sign-while-unwrapping", **_ONE_THREAD},
        _keys("signing requests", 9999, 10_000),
        _TOTAL,
        _PER_KEY,
    ),
    TableShape(
        name="keypool-steps-stated",
        title="Chapters 2, 4 and 5: steps in the text",
        kinds=_STEPS,
        reference=f"{_SOURCE}, sections 2.10.1, 2.10.3, 4.5.3, 4.6 and 5.1",
        parameters=_RSA,
        columns=(
            ShapeColumn("Section 2.10.1: key generation", {"step": "generate"}, "generation"),
            ShapeColumn("Section 4.5.3: key generation", {"step": "generate"}, "generation-588"),
            ShapeColumn("Section 2.10.3: import and unwrap", {"step": "load-and-unwrap"}, "unwrapping"),
            ShapeColumn("Section 4.6: signing (Si)", {"step": "sign", **_ONE_THREAD}, "signing"),
            ShapeColumn(
                "Section 5.1: 3000 requests by a single thread",
                {"step": "sign", "keys": 3000, **_ONE_THREAD},
                "signing-one-thread",
            ),
            ShapeColumn(
                "Section 5.1 with 4 threads: 3000 requests by several threads",
                {"step": "sign", "keys": 3000, "threads": 4},
                "signing-several-threads",
            ),
        ),
        rows=(_PER_KEY, ShapeRow("Unwrap time per private key", "unwrap_per_key"), _TOTAL),
        published="keypool-steps-stated",
    ),
)

_OPERATIONS = {
    RSAOperation.SIGN: "Sign",
    RSAOperation.VERIFY: "Verify",
    RSAOperation.HASH_AND_SIGN: "Hash/Sign",
    RSAOperation.KEY_GENERATION: "KeyGen",
    RSAOperation.ENCRYPT: "Encrypt",
    RSAOperation.DECRYPT: "Decrypt",
}


def _operation_rows(operation: RSAOperation) -> tuple[ShapeRow, ...]:
    return tuple(
        ShapeRow(
            f"{_OPERATIONS[operation]} {size.bits}: {title}", f"{operation.name.lower()}_{figure}{{bits={size.bits}}}"
        )
        for size in KeySize
        for figure, title in (("rate", "Ops/Sec"), ("latency", "Latency"))
    )


DEVICE_TABLES = (
    TableShape(
        name="keypool-appendix-c",
        title="Appendix C: Luna SA 1700 HSM Performance report (internal by SafeNet)",
        kinds=_DEVICE,
        reference=f"{_SOURCE}, Appendix C",
        parameters={},
        columns=(
            ShapeColumn("PKCS#11, single HSM", {}, "pkcs11-single"),
            ShapeColumn("PKCS#11, 2xHA", {}, "pkcs11-2xha"),
            ShapeColumn("Java, single HSM", {}, "java-single"),
            ShapeColumn("Java, 2xHA", {}, "java-2xha"),
        ),
        rows=tuple(row for operation in RSAOperation for row in _operation_rows(operation)),
        published="keypool-appendix-c",
    ),
    TableShape(
        name="keypool-table-2-3",
        title="Table 2-3: Key generation performance of Luna SA 1700",
        kinds=_DEVICE,
        reference=f"{_SOURCE}, Table 2-3",
        parameters={},
        columns=(ShapeColumn("Single HSM", {}, "single-hsm"), ShapeColumn("2xHSM", {}, "two-hsm")),
        rows=_operation_rows(RSAOperation.KEY_GENERATION),
        published="keypool-table-2-3",
    ),
    TableShape(
        name="keypool-device-stated",
        title="Chapters 2 and 3: the device in the text",
        kinds=_DEVICE,
        reference=f"{_SOURCE}, section 2.10.4 and chapter 3",
        parameters={},
        columns=(ShapeColumn("Luna SA 1700", {}, "luna-sa-1700"),),
        rows=(
            ShapeRow("Signing requests per second", "sign_rate{bits=2048}"),
            ShapeRow("Key pairs per second", "key_generation_rate{bits=2048}"),
        ),
        published="keypool-device-stated",
    ),
)
