"""The tables and figures of PRESERVE D3.2 as it prints them, to be filled with runs (`preserve-d3.2.txt`)."""

from __future__ import annotations

from collections.abc import Mapping

from labconsole.analysis.published_figures import NOT_PRINTED
from labconsole.analysis.table_shape import ShapeColumn, ShapeRow, TableShape

_SOURCE = "PRESERVE D3.2"
_LIVE, _SIMULATED = ("v2x.live",), ("v2x.simulation",)
_SIMULATED_WITH = {"timing": "nexcom-vtc6201-fig43-44"}
_RATES = (1.0, 10.0, 20.0, 100.0)
_SOFTWARE = {"security": "full", "verification": "openssl"}
_RATE_COLUMNS = tuple(ShapeColumn(f"{rate:g} Hz", {"rate": rate}) for rate in _RATES)
_ASIC_LOADS = (
    ShapeColumn("100 msg/s: 5 senders at 20 Hz", {"rate": 20.0}),
    ShapeColumn("500 msg/s: 5 senders at 100 Hz", {"rate": 100.0}),
)
_VERIFICATION = (ShapeRow("Signature verification time", "verify_time"),)
_LATENCY = (ShapeRow("End-to-End latency", "latency_mean"),)
_LOSS = (ShapeRow("Packet loss", "packet_loss"),)


def _loads(senders: int) -> tuple[ShapeColumn, ...]:
    """The source states the time at one load, and the average over all of them."""
    return tuple(
        ShapeColumn(
            f"{senders} sender{'s' if senders > 1 else ''}: {rate:g} Hz",
            {"senders": senders, "rate": rate, **_SOFTWARE},
            "15-20" if (senders, rate) == (15, 20.0) else NOT_PRINTED,
        )
        for rate in _RATES
    )


LIVE_TABLES = (
    TableShape(
        name="preserve-figure-4-1",
        title="Fig. 4.1: signature verification time",
        kinds=_LIVE,
        reference=f"{_SOURCE}, Fig. 4.1",
        parameters={},
        columns=(
            ShapeColumn("All loads, on average", _SOFTWARE),
            *(column for senders in (1, 5, 15) for column in _loads(senders)),
        ),
        rows=_VERIFICATION,
        published="preserve-figure-4-1",
    ),
    TableShape(
        name="preserve-figure-4-2",
        title="Fig. 4.2: verification by the ASIC, here a token",
        kinds=_LIVE,
        reference=f"{_SOURCE}, Fig. 4.2",
        parameters={"senders": 5, "security": "full", "verification": "token"},
        columns=_ASIC_LOADS,
        rows=_VERIFICATION,
        published="preserve-figure-4-2",
    ),
    TableShape(
        name="preserve-figure-4-5",
        title="Fig. 4.5: CPU of the receiver, 15 senders",
        kinds=_LIVE,
        reference=f"{_SOURCE}, Fig. 4.5",
        parameters={"senders": 15, "security": "full"},
        columns=_RATE_COLUMNS,
        rows=(ShapeRow("CPU of network stack and kit", "cpu{role=receiver}"),),
        published="preserve-figure-4-5",
    ),
    TableShape(
        name="preserve-packet-sizes",
        title="Section 4.1.3: size of a CAM",
        kinds=_LIVE,
        reference=f"{_SOURCE}, section 4.1.3",
        parameters={},
        columns=(
            ShapeColumn("No security header", {"security": "none"}),
            ShapeColumn("With security header", {"security": "full"}),
        ),
        rows=(
            ShapeRow("Without header", "packet_size{signer=none}"),
            ShapeRow("With pseudonym's digest", "packet_size{signer=digest}"),
            ShapeRow("With complete signing pseudonym", "packet_size{signer=certificate}"),
        ),
        published="preserve-packet-sizes",
    ),
)

TESTBED_TABLES = (
    TableShape(
        name="preserve-figure-4-3",
        title="Fig. 4.3: end-to-end latency, 5 senders",
        kinds=_LIVE + _SIMULATED,
        reference=f"{_SOURCE}, Fig. 4.3",
        parameters={"senders": 5, **_SIMULATED_WITH},
        columns=tuple(
            ShapeColumn(f"{title}: {rate:g} Hz", {"rate": rate, "security": security})
            for security, title in (("full", "Full security"), ("header", "Header only"))
            for rate in _RATES
        ),
        rows=_LATENCY,
        published="preserve-figure-4-3",
    ),
    TableShape(
        name="preserve-figure-4-4",
        title="Fig. 4.4: packet loss, 15 senders",
        kinds=_LIVE + _SIMULATED,
        reference=f"{_SOURCE}, Fig. 4.4",
        parameters={"senders": 15, **_SIMULATED_WITH},
        columns=tuple(
            ShapeColumn(f"{title}: {rate:g} Hz", {"rate": rate, "security": security})
            for security, title in (
                ("none", "No security"),
                ("signed", "Security header, not verified"),
                ("full", "Signed and verified"),
            )
            for rate in _RATES
        ),
        rows=_LOSS,
        published="preserve-figure-4-4",
    ),
)
"""Of live stations and of the simulated testbed."""

BENCHMARK_TABLES = (
    TableShape(
        name="preserve-table-3-2",
        title="Table 3.2: 64bit multicore performance",
        kinds=("v2x.benchmark",),
        reference=f"{_SOURCE}, Table 3.2",
        parameters={"curve": "p256"},
        columns=(
            ShapeColumn("This computer, OpenSSL", {"backend": "openssl"}, "vsskit2-64bit"),
            ShapeColumn("This computer, AWS-LC", {"backend": "aws-lc"}, "vsskit2-64bit"),
            ShapeColumn("This computer, token", {"backend": "token"}, "vsskit2-64bit"),
            ShapeColumn("This computer, next to 32 bit", {"backend": "openssl"}, "vsskit2-32bit"),
            ShapeColumn("openssl speed, next to raw 64 bit", {"backend": "openssl"}, "raw-64bit"),
            ShapeColumn("openssl speed, next to raw 32 bit", {"backend": "openssl"}, "raw-32bit"),
        ),
        rows=(
            ShapeRow("sign (ms)", "sign_fastest"),
            ShapeRow("sign/s", "sign_rate"),
            ShapeRow("verify (ms)", "verify_fastest"),
            ShapeRow("verify/s", "verify_rate"),
            ShapeRow("Raw OpenSSL: sign (ms)", "openssl_sign_fastest"),
            ShapeRow("Raw OpenSSL: sign/s, all cores", "openssl_sign_rate{cores=processes}"),
            ShapeRow("Raw OpenSSL: verify (ms)", "openssl_verify_fastest"),
            ShapeRow("Raw OpenSSL: verify/s, all cores", "openssl_verify_rate{cores=processes}"),
        ),
        published="preserve-table-3-2",
    ),
)

_ATTACKS = {
    "a-sig-01": ((2, 10), (2, 20), (2, 50), (2, 100), (4, 100)),
    "a-sig-06": ((2, 10), (2, 20), (2, 50), (2, 100), (4, 100)),
    "a-sig-03": ((2, 10), (2, 20)),
    "a-cer-03": ((2, 10), (2, 20)),
}
"""Attackers and the rate of each in Hz (Table 4.1), by attack, in the order of Table 4.2."""

ATTACK_TABLES = (
    TableShape(
        name="preserve-table-4-2",
        title="Table 4.2: under attack",
        kinds=(*_SIMULATED, "v2x.attack"),
        reference=f"{_SOURCE}, Table 4.2",
        parameters={"senders": 5, "rate": 10.0, "security": "full"},
        columns=tuple(
            ShapeColumn(
                f"{attack.upper()}, {attackers} at {rate} Hz",
                {"attack": attack, "attackers": attackers, "attack_rate": float(rate)},
            )
            for attack, loads in _ATTACKS.items()
            for attackers, rate in loads
        ),
        rows=(
            ShapeRow("Packet Delivery Ratio (benign / all received)", "benign_share"),
            *_LOSS,
            ShapeRow("End-to-End delay", "latency_mean"),
        ),
        published="preserve-table-4-2",
    ),
)

SIMULATED_TABLES = (
    TableShape(
        name="preserve-figure-4-1-simulated",
        title="Fig. 4.1: signature verification time",
        kinds=_SIMULATED,
        reference=f"{_SOURCE}, Fig. 4.1",
        parameters={"security": "full", "timing": "nexcom-vtc6201-table42"},
        columns=(ShapeColumn("15 senders: 20 Hz", {"senders": 15, "rate": 20.0}),),
        rows=_VERIFICATION,
        published="preserve-figure-4-1-simulated",
    ),
    TableShape(
        name="preserve-figure-4-2-simulated",
        title="Fig. 4.2: verification by the ASIC",
        kinds=_SIMULATED,
        reference=f"{_SOURCE}, Fig. 4.2",
        parameters={"senders": 5, "security": "full", "timing": "nexcom-vtc6201-asic"},
        columns=_ASIC_LOADS,
        rows=_VERIFICATION,
        published="preserve-figure-4-2-simulated",
    ),
    TableShape(
        name="preserve-figure-4-5-simulated",
        title="Fig. 4.5: CPU of the receiver, 15 senders",
        kinds=_SIMULATED,
        reference=f"{_SOURCE}, Fig. 4.5",
        parameters={"senders": 15, "security": "full", **_SIMULATED_WITH},
        columns=_RATE_COLUMNS,
        rows=(ShapeRow("CPU of network stack and kit", "receiver_load"),),
        published="preserve-figure-4-5-simulated",
    ),
)

_UNITS: tuple[tuple[str, Mapping[str, object]], ...] = (
    ("P-256", {"timing": "epyc-p256"}),
    ("Brainpool", {"timing": "epyc-brainpool"}),
    ("ML-DSA-44", {"timing": "epyc-ml-dsa-44"}),
    ("Hybrid", {"timing": "epyc-hybrid"}),
    *(
        (f"Box, {cores} core{'s' if cores > 1 else ''}", {"timing": "nexcom-vtc6201-table42", "receiver_cores": cores})
        for cores in (1, 2, 4, 8)
    ),
)
ONE_CORE_UNIT = {"receiver_cores": 1, "inclusion": "etsi", "generation": "fixed", "dcc": False}
"""What the units of `NEIGHBOUR_TABLES` have in common, but where a column says otherwise."""

NEIGHBOUR_TABLES = tuple(
    TableShape(
        name=f"v2x-neighbours-{vehicles}",
        title=f"How many neighbours a unit serves, among {vehicles} vehicles",
        kinds=_SIMULATED,
        reference="beyond the source",
        parameters={"senders": vehicles, "rate": 10.0, "security": "full", "attack": "none"},
        columns=(
            *(ShapeColumn(title, {**ONE_CORE_UNIT, **unit}) for title, unit in _UNITS),
            *(
                ShapeColumn(f"P-256, {title}", {**ONE_CORE_UNIT, "timing": "epyc-p256", **how})
                for title, how in (
                    ("always with certificate", {"inclusion": "always"}),
                    ("never with certificate", {"inclusion": "never"}),
                    ("certificates omitted", {"inclusion": "congestion"}),
                    ("generation rules", {"generation": "rules"}),
                    ("DCC", {"dcc": True}),
                    ("DCC, generation rules", {"dcc": True, "generation": "rules"}),
                )
            ),
            ShapeColumn("Box, DCC", {**ONE_CORE_UNIT, "timing": "nexcom-vtc6201-table42", "dcc": True}),
        ),
        rows=(
            ShapeRow("Neighbours served at most", "neighbours_served"),
            *_LOSS,
            ShapeRow("Channel busy ratio", "channel_busy_ratio"),
            ShapeRow("Accepted a second", "accept_rate"),
            ShapeRow("99 % of the latencies", "latency_p99"),
        ),
        published="",
    )
    for vehicles in (50, 150, 300)
)
"""What no source has: filled by the profile `v2x-neighbours`."""
