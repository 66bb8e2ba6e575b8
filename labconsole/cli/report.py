"""`labconsole report`: runs as a PDF, signed on request, and as CSV next to it."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path

from labconsole.cli.database import chosen_runs, open_database
from labconsole.cli.exit_codes import BAD_USAGE, CANCELLED, FINISHED
from labconsole.cli.secret_prompts import prompt
from labconsole.cli.terminal import output
from labconsole.model.plugin import Plugins
from labconsole.output.comparison_csv import write_comparison
from labconsole.output.csv_export import export_run, export_runs
from labconsole.output.report.pdf import Paper, PdfResult, Sign, write_pdf
from labconsole.output.report.report_builder import build_report
from labconsole.output.report.report_data import read_report_data
from labconsole.output.report.report_request import ReportKind, ReportRequest, kind_for, whole_campaigns
from labconsole.security.key_files import is_encrypted
from labconsole.security.secrets import SecretSource
from labconsole.store.reader import Reader


def report(arguments: argparse.Namespace) -> int:
    """Write the report, and print its path and the result."""
    if arguments.pdf is None and arguments.csv is None:
        print("labconsole: say what to write: --pdf FILE, --csv DIR or both.", file=sys.stderr)
        return BAD_USAGE
    if arguments.pdf is None and arguments.sign is not None:
        print("labconsole: only a PDF can be signed: name one with --pdf FILE.", file=sys.stderr)
        return BAD_USAGE
    if arguments.sign is None and (arguments.certificate or arguments.passphrase_file or arguments.keyring_entry):
        print("labconsole: nothing is signed without a key: name it with --sign KEY.", file=sys.stderr)
        return BAD_USAGE
    if arguments.outline and (arguments.baseline is not None or arguments.published):
        print("labconsole: an outline has its own tables: leave out --baseline and --published.", file=sys.stderr)
        return BAD_USAGE
    plugins = Plugins.discover()
    try:
        sign = None if arguments.sign is None else _sign(arguments)
    except KeyboardInterrupt:
        return CANCELLED
    with open_database(arguments.db) as reader:
        request = _request(arguments, reader)
        if arguments.pdf is not None:
            document = build_report(reader, plugins, request)
            _print_written_file(
                write_pdf(document, arguments.pdf, Paper(arguments.paper), sign), signed=sign is not None
            )
        if arguments.csv is not None:
            _write_csv(reader, plugins, request, arguments.csv)
    return FINISHED


def _request(arguments: argparse.Namespace, reader: Reader) -> ReportRequest:
    if arguments.outline:
        chosen = whole_campaigns(reader, arguments.run) if arguments.campaign else tuple(arguments.run)
        run_ids, kind = chosen, ReportKind.OUTLINE
    else:
        run_ids = chosen_runs(reader, arguments.run, campaign=arguments.campaign)
        kind = ReportKind.CAMPAIGN if arguments.campaign else kind_for(reader, run_ids)
    return ReportRequest(
        run_ids,
        kind,
        baseline=arguments.baseline,
        published=tuple(arguments.published),
        title=arguments.title,
        author=arguments.author,
        place=arguments.place,
        outline=arguments.outline,
    )


def _sign(arguments: argparse.Namespace) -> Sign:
    """The signer with the named key: its passphrase comes from keyring, file or prompt. Raises UserError."""
    from labconsole.output.report import signing

    key: Path = arguments.sign
    source = SecretSource(keyring_entry=arguments.keyring_entry, passphrase_file=arguments.passphrase_file)
    pkcs12 = signing.is_pkcs12(key)
    secret = source.resolve(f"the signing key {key}", prompt) if pkcs12 or is_encrypted(key) else None
    signer = (
        signing.signer_from_pkcs12(key, secret)
        if pkcs12
        else signing.signer_from_pem(key, arguments.certificate or key, secret)
    )
    return partial(signing.sign_pdf, signer=signer, details=signing.SignatureDetails(place=arguments.place))


def _print_written_file(result: PdfResult, *, signed: bool) -> None:
    pages = "1 page" if result.pages == 1 else f"{result.pages} pages"
    console = output()
    console.print(f"{result.path}: {pages}, {result.standard}{', signed' if signed else ''}", soft_wrap=True)
    for remark in result.remarks:
        console.print(f"Note: {remark}", soft_wrap=True)


def _write_csv(reader: Reader, plugins: Plugins, request: ReportRequest, directory: Path) -> None:
    """The runs as `labconsole export --csv` writes them, and the comparison where there are several."""
    if len(request.run_ids) == 1:
        export_run(reader, request.run_ids[0], directory, plugins)
    else:
        export_runs(reader, request.run_ids, directory, plugins)
        write_comparison(read_report_data(reader, plugins, request).with_published, directory / "comparison.csv")
    output().print(f"CSV files are in {directory}", soft_wrap=True)
