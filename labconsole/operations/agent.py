"""`labconsole agent`: this computer works without a person, for a console's cluster or for its owner's agreements."""

from __future__ import annotations

from typing import ClassVar, Self

from pydantic import model_validator

from labconsole.cli.database import RunDatabase
from labconsole.hosts.installed import require_dask
from labconsole.model.operation import HomePath, Operation, OperationContext
from labconsole.model.parameters import Parameters, parameter
from labconsole.operations.hosts import OwnAddress, SchedulerAddress, scheduler_field
from labconsole.paths import database_path
from labconsole.security.secrets import SecretRequest, SecretSource

_PASSPHRASE = "enrolment"
_HOST = "Host of a cluster"
_AGREEMENTS = "Agreements with other owners"


class AgentParameters(Parameters):
    """Which host this is and whom it joins, or the folder over which it serves agreements."""

    enrolment: HomePath | None = parameter(
        "Enrolment",
        "File of `labconsole hosts enrol`",
        default=None,
        positional=True,
        metavar="FILE",
        kind="file",
        group=_HOST,
    )
    scheduler: SchedulerAddress = scheduler_field(_HOST)
    host: OwnAddress = parameter(
        "Address",
        "Address that the scheduler and other hosts reach this one by; not given: that of the way to the scheduler",
        default="",
        empty="Found by itself",
        group=_HOST,
    )
    tag: tuple[str, ...] = parameter(
        "Tags", "What this host is for, as in obu", default=(), metavar="TAG", empty="None", group=_HOST
    )
    passphrase_file: HomePath | None = parameter(
        "Passphrase in a file",
        "File with the enrolment's passphrase (0600)",
        default=None,
        metavar="FILE",
        kind="secret-file",
        group=_HOST,
    )
    keyring_entry: str | None = parameter(
        "Passphrase in the keyring",
        "Entry of the OS keyring with the enrolment's passphrase",
        default=None,
        metavar="NAME",
        group=_HOST,
    )
    serve: HomePath | None = parameter(
        "Exchange folder",
        "Serve agreements, with no cluster: the folder for the files that go to the other owner and come from it",
        default=None,
        metavar="FOLDER",
        kind="folder",
        group=_AGREEMENTS,
    )
    identity: str = parameter(
        "Identity",
        "Name of the identity on the page Certificates whose key signs the bundles of results",
        default="",
        max_length=64,
        metavar="NAME",
        group=_AGREEMENTS,
    )
    db: RunDatabase = parameter(
        "Run database",
        "Where the runs are; not given: that of your data directory",
        default=None,
        empty="That of your data directory",
        group=_AGREEMENTS,
    )

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.enrolment is None) == (self.serve is None):
            raise ValueError("name the file of `labconsole hosts enrol`, or the folder of agreements by --serve")
        if self.serve is not None and not self.identity:
            raise ValueError("--serve needs the identity that signs the bundles: --identity NAME")
        return self


class RunAgent(Operation[AgentParameters]):
    """The agent of this computer."""

    name: ClassVar[str] = "hosts.agent"
    title: ClassVar[str] = "Agent"
    description: ClassVar[str] = (
        "Works until it is stopped, in one of two ways. With an enrolment it joins the cluster of a console under the "
        "name that the host was enrolled with, and runs what that console asks for. With --serve it is a console of "
        "its own: it runs each agreement that a person has accepted or concluded here, once and at its time, exports "
        "the signed bundle into the folder, imports that of the other owner from there, and merges the two runs."
    )
    parameters: ClassVar[type[Parameters]] = AgentParameters
    runs_until_cancelled: ClassVar[bool] = True
    writes: ClassVar[tuple[str, ...]] = ("runs",)

    def secrets(self, parameters: AgentParameters) -> tuple[SecretRequest, ...]:
        if parameters.serve is not None:
            from labconsole.agreements.agreement_service import agreed_secrets
            from labconsole.security.pki.signing_identities import signing_identity

            return (signing_identity(parameters.identity).secret, *agreed_secrets())
        source = SecretSource(keyring_entry=parameters.keyring_entry, passphrase_file=parameters.passphrase_file)
        return (SecretRequest(_PASSPHRASE, f"the enrolment {parameters.enrolment}", source),)

    def run(self, parameters: AgentParameters, context: OperationContext) -> str:
        if parameters.serve is not None:
            from labconsole.agreements.agreement_service import AgreementService

            database = parameters.db or database_path()
            AgreementService(parameters.serve.absolute(), parameters.identity, database, context).serve()
            return "The agent was stopped; agreements wait until it is started again."
        require_dask()
        from labconsole.hosts.cluster_tls import Member
        from labconsole.hosts.serving import serve_agent

        assert parameters.enrolment is not None  # one of the two is given
        (request,) = self.secrets(parameters)
        secret = context.secret(_PASSPHRASE) or request.resolve()
        member = Member.of_enrolment(parameters.enrolment, secret)
        serve_agent(member, parameters.scheduler, parameters.host or None, parameters.tag, context)
        return f"{member.name} has left the cluster."
