"""The thesis' tables of the device itself: Appendix C and Table 2-3, and what its text says of it in numbers.

Every run stands in each of their columns: which interface and how many devices the source had is no parameter here.
Table 2-2 is how many keys a device holds, which no run measures: it is a published table without a shape.
"""

from __future__ import annotations

from labconsole.analysis.table_shape import ShapeColumn, ShapeRow, TableShape
from labconsole_keypool.measuring.device_benchmark_parameters import KeySize, RSAOperation

_KINDS = ("keypool.device-benchmark",)
_SOURCE = "Saboonchi, KTH 2014"
_TITLES = {
    RSAOperation.SIGN: "Sign",
    RSAOperation.VERIFY: "Verify",
    RSAOperation.HASH_AND_SIGN: "Hash/Sign",
    RSAOperation.KEY_GENERATION: "KeyGen",
    RSAOperation.ENCRYPT: "Encrypt",
    RSAOperation.DECRYPT: "Decrypt",
}


def _rows(operation: RSAOperation) -> tuple[ShapeRow, ...]:
    return tuple(
        ShapeRow(f"{_TITLES[operation]} {size.bits}: {title}", f"{operation.name.lower()}_{figure}{{bits={size.bits}}}")
        for size in KeySize
        for figure, title in (("rate", "Ops/Sec"), ("latency", "Latency"))
    )


TABLES = (
    TableShape(
        name="keypool-appendix-c",
        title="Appendix C: Luna SA 1700 HSM Performance report (internal by SafeNet)",
        kinds=_KINDS,
        reference=f"{_SOURCE}, Appendix C",
        parameters={},
        columns=(
            ShapeColumn("PKCS#11, single HSM", {}, "pkcs11-single"),
            ShapeColumn("PKCS#11, 2xHA", {}, "pkcs11-2xha"),
            ShapeColumn("Java, single HSM", {}, "java-single"),
            ShapeColumn("Java, 2xHA", {}, "java-2xha"),
        ),
        rows=tuple(row for operation in RSAOperation for row in _rows(operation)),
        published="keypool-appendix-c",
    ),
    TableShape(
        name="keypool-table-2-3",
        title="Table 2-3: Key generation performance of Luna SA 1700",
        kinds=_KINDS,
        reference=f"{_SOURCE}, Table 2-3",
        parameters={},
        columns=(ShapeColumn("Single HSM", {}, "single-hsm"), ShapeColumn("2xHSM", {}, "two-hsm")),
        rows=_rows(RSAOperation.KEY_GENERATION),
        published="keypool-table-2-3",
    ),
    TableShape(
        name="keypool-device-stated",
        title="Chapters 2 and 3: the device in the text",
        kinds=_KINDS,
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
