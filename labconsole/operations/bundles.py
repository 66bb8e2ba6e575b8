"""Bundles: runs written to one file for another database, signed if asked for."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from labconsole.cli.database import RunDatabase, open_database
from labconsole.errors import UserError
from labconsole.model.operation import HomePath, Operation, OperationContext, Result
from labconsole.model.parameters import Parameters, parameter
from labconsole.security.secrets import SecretRequest

_STEPS = 1000


class BundleParameters(Parameters):
    """The runs, the file, and who signs it."""

    run: tuple[Annotated[int, Field(ge=1)], ...] = parameter(
        "Runs", "Numbers of the runs", min_length=1, positional=True, metavar="RUN"
    )
    file: HomePath = parameter("File", "Bundle to be written (.lcz)", positional=True, metavar="FILE", kind="new-file")
    sign: str = parameter(
        "Signed by",
        "Also sign the bundle with this identity: FILE.p7s next to it",
        default="",
        metavar="IDENTITY",
        empty="No identity",
    )
    db: RunDatabase = None


class ExportBundle(Operation[BundleParameters]):
    """Writes runs to a bundle."""

    name: ClassVar[str] = "runs.bundle"
    title: ClassVar[str] = "Export a bundle"
    description: ClassVar[str] = (
        "Writes runs with their samples and evidence to one file, for another database. An identity for message "
        "signing also signs it, so that the console that imports it knows whose the runs are: send both files."
    )
    parameters: ClassVar[type[Parameters]] = BundleParameters

    def secrets(self, parameters: BundleParameters) -> tuple[SecretRequest, ...]:
        if not parameters.sign:
            return ()
        from labconsole.security.pki.signing_identities import signing_identity

        return (signing_identity(parameters.sign).secret,)

    def run(self, parameters: BundleParameters, context: OperationContext) -> Result:
        from labconsole.output.bundle_writer import write_bundle

        def report(share: float) -> None:
            if context.stop_requested:
                raise UserError(f"Cancelled: {parameters.file} was not written.")
            context.progress(int(share * _STEPS), _STEPS)

        files = [str(parameters.file)]
        with open_database(parameters.db) as reader:
            if parameters.sign:
                from labconsole.agreements.signed_bundles import write_signed_bundle  # it needs the certificate layer
                from labconsole.security.pki.signing_identities import signing_identity

                identity = signing_identity(parameters.sign)
                signature = write_signed_bundle(
                    reader,
                    parameters.run,
                    parameters.file,
                    identity,
                    lambda _purpose: context.secret(identity.secret.key),
                    report,
                )
                files.append(str(signature))
            else:
                write_bundle(reader, parameters.run, parameters.file, report)
        return Result(tuple(files), {"files": files})
