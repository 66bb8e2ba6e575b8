"""`labconsole v2x inspect`: the verdicts on the packets of a capture, as an operation."""

from __future__ import annotations

from typing import ClassVar

from labconsole.errors import UserError
from labconsole.model.operation import HomePath, Operation, OperationContext, Result
from labconsole.model.parameters import Parameters, parameter
from labconsole.safe_text import shown
from labconsole_v2x.inspection.capture_certificates import CaptureCertificates, read_certificate
from labconsole_v2x.inspection.inspection_report import report, report_data, write_packets_csv


class InspectParameters(Parameters):
    """The capture, and the certificates that it is judged with."""

    capture: HomePath = parameter(
        "Capture",
        "Capture of Ethernet (EtherType 0x8947), IEEE 802.11 or radiotap, as pcap or pcapng",
        kind="file",
        positional=True,
        metavar="FILE",
    )
    root: tuple[HomePath, ...] = parameter(
        "Trusted roots",
        "Certificate of a trusted root CA (COER); without any, every chain is incomplete",
        default=(),
        kind="file",
    )
    issuer: tuple[HomePath, ...] = parameter(
        "Authorization authorities",
        "Certificate of an authorization authority (COER) that the capture may not contain",
        default=(),
        kind="file",
    )
    clock_tolerance_s: float = parameter(
        "Clock tolerance",
        "How far the capture's clock may be wrong, besides what receivers accept",
        default=1.0,
        ge=0,
        le=86_400,
        unit="s",
        option="--clock-tolerance",
        metavar="SECONDS",
    )
    csv: HomePath | None = parameter(
        "CSV file", "Write a row for each packet to this new file", default=None, kind="new-file"
    )


class InspectCapture(Operation[InspectParameters]):
    """Judges each GeoNetworking packet of a capture."""

    name: ClassVar[str] = "v2x.inspect"
    title: ClassVar[str] = "Inspect a capture"
    description: ClassVar[str] = (
        "Judges each GeoNetworking packet of a capture: signature, certificate chain, security profile and time, each "
        "apart. Certificates are learnt from the capture first."
    )
    parameters: ClassVar[type[Parameters]] = InspectParameters
    isolated: ClassVar[bool] = True

    def run(self, parameters: InspectParameters, context: OperationContext) -> Result:
        from labconsole_v2x.inspection.inspector import inspect_capture  # imported late: the window does without ASN.1

        if parameters.csv is not None and parameters.csv.exists():
            raise UserError(
                f"{shown(parameters.csv.name)} exists already: name a new file for the rows of the packets."
            )
        certificates = CaptureCertificates(map(read_certificate, parameters.root))
        for path in parameters.issuer:
            certificates.add(read_certificate(path))
        inspection = inspect_capture(
            parameters.capture,
            certificates,
            clock_tolerance_us=round(parameters.clock_tolerance_s * 1_000_000),
            stopped=lambda: context.stop_requested,
            progress=context.progress,
        )
        warnings = [inspection.fault] if inspection.fault else []
        if inspection.rows and not inspection.roots:
            warnings.append(
                "No trusted root was given, so every chain is incomplete: add the certificate of one (--root)."
            )
        parts = report(inspection)
        if parameters.csv is not None:
            write_packets_csv(inspection, parameters.csv)
            parts = (*parts, f"Written: {parameters.csv}")
        return Result(parts, report_data(inspection), tuple(warnings), passed=not inspection.fault)
