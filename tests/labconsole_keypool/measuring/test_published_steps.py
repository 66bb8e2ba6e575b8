"""The thesis' figures of single steps and of the device: every number as its text prints it, and no other."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from labconsole.analysis.published_figures import PublishedTable, published_tables
from labconsole.model.plugin import Plugins

SOURCE = Path(__file__).resolve().parents[4] / "shared" / "sources" / "hsm-key-pool-thesis.txt"
KINDS = {"keypool.step-times", "keypool.device-benchmark"}
OPERATIONS = {
    "Sign": "sign",
    "Verify": "verify",
    "Hash/Sign": "hash_and_sign",
    "KeyGen": "key_generation",
    "Encrypt": "encrypt",
    "Decrypt": "decrypt",
}
STEPS = {
    "2-4": ("keypool-table-2-4", "keys", ("total_time", "time_per_key")),
    "2-5": (
        "keypool-table-2-5",
        "keys",
        ("total_time", "time_per_key", "generation_per_key", "wrap_and_save_per_key"),
    ),
    "2-7": (
        "keypool-table-2-7",
        "keys",
        ("load_time", "initialisation_time", "unwrap_time", "total_time", "unwrap_per_key", "time_per_key"),
    ),
    "2-8": ("keypool-table-2-8", "requests", ("total_time", "time_per_key")),
    "2-9": ("keypool-table-2-9", "requests", ("total_time", "time_per_key")),
    "2-10": ("keypool-table-2-10", "threads", ("time_per_key", "latency_range")),
    "2-11": ("keypool-table-2-11", "requests", ("total_time", "time_per_key")),
}
"""The source's table -> its name here, how its columns are called, and the metrics of its printed columns in order."""

Figures = dict[tuple[str, str], str]


@pytest.fixture(scope="module")
def thesis() -> Mapping[str, PublishedTable]:
    tables = published_tables(Plugins.discover())
    return {table.name: table for table in tables if KINDS & set(table.kinds)}


def rows(text: str, title: str, *, width: int) -> Iterator[list[str]]:
    """The lines of numbers beneath a table's title, split at tabs."""
    _, _, below = text.rpartition(f"\n{title}")
    for line in below.splitlines()[1:]:
        cells = line.split("\t")
        if re.match(r"(Table|Figure|\d\.\d|References)", line) or (len(cells) > 1 and "pairs written" in cells[0]):
            return
        if len(cells) == width and re.match(r"\d", cells[1]):
            yield cells


def _steps(text: str) -> Figures:
    found: Figures = {}
    for number, (name, column, metrics) in STEPS.items():
        for count, *printed in rows(text, f"Table {number}: ", width=len(metrics) + 1):
            for metric, value in zip(metrics, printed, strict=True):
                # 1338,983 lacks a comma; of "0 ~ 20" the upper end is the figure.
                value = value.replace("1338,983", "1,338,983").removeprefix("0 ~ ")
                found[f"{name}/{column}-{count.replace(',', '')}", metric] = f"{value} ms"
    return found


def _moved(text: str) -> Figures:
    """Table 2-6 is two tables, one beneath the other."""
    found: Figures = {}
    for title, name in (("Number of key pairs loaded", "load"), ("Number of key pairs written", "save")):
        for count, total, per_key in rows(text, title, width=3):
            column = f"keypool-table-2-6-{name}/keys-{count.replace(',', '')}"
            found[column, "total_time"], found[column, "time_per_key"] = f"{total} ms", f"{per_key} ms"
    return found


def _capacity_and_key_generation(text: str) -> Figures:
    found: Figures = {}
    for keys, base, upgraded in rows(text, "Table 2-2: ", width=3):
        metric = f"capacity{{keys={keys.removesuffix('-bit')}}}"
        found["keypool-table-2-2/base-memory", metric] = f"{base} keys"
        found["keypool-table-2-2/memory-upgrade", metric] = f"{upgraded} keys"
    for _, bits, *printed in rows(text, "Table 2-3: ", width=6):
        for column, rate, latency in (("single-hsm", *printed[:2]), ("two-hsm", *printed[2:])):
            place = f"keypool-table-2-3/{column}"
            found[place, f"key_generation_rate{{bits={bits}}}"] = f"{rate} Ops/second"
            found[place, f"key_generation_latency{{bits={bits}}}"] = f"{latency} ms"
    return found


def _appendix_c(text: str) -> Figures:
    found: Figures = {}
    operation = ""
    for line in text.rpartition("\nAppendix C: ")[2].splitlines():
        cells = line.split("\t")
        size = re.search(r"(\d{4})$", cells[1]) if len(cells) == 11 else None
        if size is None:
            continue
        operation = OPERATIONS.get(cells[0], operation)
        printed = [cell.replace(",", ".") for cell in cells[3:]]
        columns = ("pkcs11-single", "pkcs11-2xha", "java-single", "java-2xha")
        for column, rate, latency in zip(columns, printed[::2], printed[1::2], strict=True):
            place = f"keypool-appendix-c/{column}"
            found[place, f"{operation}_rate{{bits={size[1]}}}"] = f"{rate} Ops/Sec"
            found[place, f"{operation}_latency{{bits={size[1]}}}"] = f"{latency} msec"
    return found


def _sentences(text: str) -> Figures:
    """The figures of the text, found by the words around them."""
    words = " ".join(text.split())

    def stated_in(pattern: str) -> str:
        found = set(re.findall(pattern, words))
        assert len(found) == 1, (pattern, found)
        return str(found.pop())

    stated, device = "keypool-steps-stated", "keypool-device-stated/luna-sa-1700"
    assert stated_in(r"(3,000) requests with a single thread")
    one_thread = stated_in(r"hence a total of ([\d,]+) ms")
    return {
        (f"{stated}/generation", "time_per_key"): stated_in(r"on an average ~(\d+ ?ms)").replace("ms", " ms"),
        (f"{stated}/generation-588", "time_per_key"): stated_in(r"Luna SA 1700 this will be (\d+)ms") + " ms",
        (f"{stated}/unwrapping", "unwrap_per_key"): stated_in(
            r"It takes on average (\d+ ms) to process each private key"
        ),
        (f"{stated}/signing", "time_per_key"): stated_in(r"per second and Si = (\d+ ms)"),
        (f"{stated}/signing-one-thread", "time_per_key"): stated_in(r"requests with a single thread takes (\d+ ms)"),
        (f"{stated}/signing-one-thread", "total_time"): f"{one_thread} ms",
        (f"{stated}/signing-several-threads", "total_time"): stated_in(r"it took a total of ([\d,]+ ms) to complete"),
        (device, "capacity{keys=RSA 2048 pairs in RAM}"): stated_in(r"was determined to be ([\d,]+)\.") + " keys pairs",
        (device, "sign_rate{bits=2048}"): stated_in(r"capable of processing (\d+ signing requests per seconds)"),
        (device, "key_generation_rate{bits=2048}"): stated_in(r"it can create ([\d.]+ such key pairs every second)"),
    }


@pytest.mark.skipif(not SOURCE.exists(), reason="the source's text is not next to the checkout")
def test_every_number_is_in_the_text_of_the_source(thesis: Mapping[str, PublishedTable]) -> None:
    text = SOURCE.read_text(encoding="utf-8")
    entered = {
        (column.name, metric): figure.printed
        for table in thesis.values()
        for column in table.columns
        for metric, figure in column.figures.items()
    }
    printed = _steps(text) | _moved(text) | _capacity_and_key_generation(text) | _appendix_c(text) | _sentences(text)
    assert entered == printed
    assert len(printed) == 314


@pytest.mark.parametrize(
    ("place", "metric", "value", "unit"),
    [
        ("keypool-table-2-4/keys-2000", "total_time", 1_338_983, "ms"),
        ("keypool-table-2-5/keys-1000", "wrap_and_save_per_key", 121.223, "ms"),
        ("keypool-table-2-6-load/keys-10000", "time_per_key", 0.095, "ms"),
        ("keypool-table-2-7/keys-4000", "unwrap_time", 279_751, "ms"),
        ("keypool-table-2-10/threads-50", "latency_range", 700, "ms"),
        ("keypool-appendix-c/pkcs11-single", "sign_latency{bits=1024}", 2.1, "ms"),
        ("keypool-appendix-c/java-2xha", "decrypt_rate{bits=8192}", 4.6, "ops/s"),
        ("keypool-table-2-2/memory-upgrade", "capacity{keys=AES 256}", 129_000, "keys"),
    ],
)
def test_spot_values(thesis: Mapping[str, PublishedTable], place: str, metric: str, value: float, unit: str) -> None:
    columns = {column.name: column for table in thesis.values() for column in table.columns}
    figure = columns[place].figures[metric]
    assert (figure.value, figure.unit) == (pytest.approx(value), unit)


def test_contradicted_values_are_shown_with_their_figures(thesis: Mapping[str, PublishedTable]) -> None:
    """And each contradiction is one of the entered figures."""

    def figure(place: str, metric: str) -> float:
        return next(c for t in thesis.values() for c in t.columns if c.name == place).figures[metric].value

    moved, imported = (" ".join(thesis[f"keypool-table-2-{name}"].notes) for name in ("6-load", "7"))
    assert "3.27 ms for 500 in 635 ms, which are 1.27" in moved
    assert figure("keypool-table-2-6-load/keys-500", "total_time") / 500 == 1.27
    parts = ("load_time", "initialisation_time", "unwrap_time")
    over = [
        round(figure(place, "total_time") - sum(figure(place, part) for part in parts))
        for place in (f"keypool-table-2-7/keys-{keys}" for keys in (1000, 2000, 3000, 4000))
    ]
    assert f"{min(over):,} to {max(over):,} ms longer" in imported
    two, appendix = "keypool-table-2-3/two-hsm", "keypool-appendix-c"
    for bits in (1024, 2048):
        latency = f"key_generation_latency{{bits={bits}}}"
        assert figure(two, latency) == figure(f"{appendix}/java-2xha", latency)
        assert figure(two, latency) != figure(f"{appendix}/pkcs11-2xha", latency)
    assert "PKCS#11 has 280 and 790 ms" in " ".join(thesis["keypool-table-2-3"].notes)
