"""`labconsole v2x inspect`: the verdicts on the packets of a capture or on evidence of use cases, as an operation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from labconsole.errors import UserError
from labconsole.model.operation import HomePath, Operation, OperationContext, Result
from labconsole.model.parameters import Parameters, parameter
from labconsole.output.export_file import must_be_new_files
from labconsole.safe_text import shown
from labconsole_v2x.inspection.inspection_report import number_of, report, report_data, write_packets_csv
from labconsole_v2x.inspection.verdicts import Inspection

if TYPE_CHECKING:
    from labconsole.output.report.pdf import PdfResult
    from labconsole_v2x.security.structures import Certificate


WRITTEN = "Written:"
"""The beginning of the sentences about files that were written."""


class InspectParameters(Parameters):
    """The capture, and the certificates that it is judged with."""

    capture: HomePath = parameter(
        "Capture",
        "Capture of Ethernet (EtherType 0x8947), IEEE 802.11 or radiotap, as pcap or pcapng; or the evidence of a run "
        "of use cases, which is judged again",
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
    pdf: HomePath | None = parameter(
        "PDF report", "Write a report on the result to this new file (PDF/A)", default=None, kind="new-file"
    )
    npz: HomePath | None = parameter(
        "NumPy file",
        "Write the rows of the packets as NumPy arrays to this new file, which the window's list of packets reads",
        default=None,
        kind="new-file",
        terminal_only=True,
    )

    @property
    def new_files(self) -> tuple[Path, ...]:
        """The files to write."""
        return tuple(path for path in (self.csv, self.pdf, self.npz) if path is not None)


class InspectCapture(Operation[InspectParameters]):
    """Judges each GeoNetworking packet of a capture."""

    name: ClassVar[str] = "v2x.inspect"
    title: ClassVar[str] = "Inspect a capture"
    description: ClassVar[str] = (
        "Judges each GeoNetworking packet of a capture: signature, certificate chain, security profile and time, each "
        "apart. Certificates are learnt from the capture first. The evidence of use cases is judged again."
    )
    parameters: ClassVar[type[Parameters]] = InspectParameters
    isolated: ClassVar[bool] = True

    def run(self, parameters: InspectParameters, context: OperationContext) -> Result:
        # imported late: the window, which imports this module, does without ASN.1 and cryptography
        from labconsole_v2x.inspection.capture_certificates import CaptureCertificates, read_certificate
        from labconsole_v2x.inspection.inspector import inspect_capture

        must_be_new_files(*parameters.new_files)
        if (judged := _judged_evidence(parameters)) is not None:
            return judged
        roots = tuple(map(read_certificate, parameters.root))
        certificates = CaptureCertificates(roots)
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
            parts += (f"{WRITTEN} {write_packets_csv(inspection, parameters.csv)}",)
        if parameters.pdf is not None:
            context.say("Writing the report ...")
            written = _write_pdf(inspection, parameters, roots, warnings)
            parts += (f"{WRITTEN} {written.path} ({number_of(written.pages, 'page')}, {written.standard})",)
            warnings += written.remarks
        if parameters.npz is not None:
            from labconsole_v2x.inspection.packet_rows import MOST_PACKETS, PacketTable

            PacketTable.of(inspection.rows[:MOST_PACKETS]).write(parameters.npz)
        return Result(parts, report_data(inspection), tuple(warnings), passed=not inspection.fault)


def _judged_evidence(parameters: InspectParameters) -> Result | None:
    """The verdicts on evidence of use cases; None for another file. Raises UserError."""
    from labconsole_v2x.use_cases.evidence_inspection import has_evidence, inspect_evidence

    if not has_evidence(parameters.capture):
        return None
    if parameters.new_files:
        raise UserError(
            f"{shown(parameters.capture.name)} has evidence of use cases, not packets of a capture: judge it with "
            "labconsole v2x inspect, without files to write."
        )
    return inspect_evidence(parameters.capture)


def _write_pdf(
    inspection: Inspection, parameters: InspectParameters, roots: Sequence[Certificate], warnings: Sequence[str]
) -> PdfResult:
    """Write the report. Raises UserError."""
    from labconsole.output.report.pdf import write_pdf
    from labconsole_v2x.inspection.capture_certificates import identified
    from labconsole_v2x.inspection.inspection_pdf import Source, inspection_document

    assert parameters.pdf is not None
    try:
        source = Source.of(parameters.capture, tuple(map(identified, roots)), parameters.clock_tolerance_s)
    except OSError as error:
        name, why = shown(parameters.capture.name), error.strerror or error
        raise UserError(f"{name} cannot be read again for its hash ({why}): no report was written.") from error
    return write_pdf(inspection_document(inspection, source, warnings), parameters.pdf)
