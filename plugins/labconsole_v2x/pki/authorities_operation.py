"""`labconsole v2x authorities`: root CA, EA, AA and distribution centre of a lab, served over HTTP: an operation."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from enum import StrEnum
from functools import partial
from queue import Empty, Queue
from typing import TYPE_CHECKING, Any, ClassVar

from labconsole.model.operation import HomePath, Operation, OperationContext, Result
from labconsole.model.parameters import Parameters, parameter

if TYPE_CHECKING:
    from labconsole_v2x.pki.authority import Decision


_PAUSE_S = 0.1
_AGE_S = 3600
"""A new lab's certificates begin so long before: clocks of stations may be slow."""
_MOST_WAITING = 1000
"""Decisions that wait to be shown; an authority then waits, too."""


class Served(StrEnum):
    """Which authorities a process serves."""

    ALL = "all"
    BOTH = "both"
    RCA = "rca"
    EA = "ea"
    AA = "aa"
    DC = "dc"


def _port(title: str, authority: str, default: int) -> Any:
    """The field of the port of an authority."""
    description = f"Port of the {authority}; 0: any free port"
    return parameter(title, description, default=default, ge=0, le=65_535, kind="port")


class AuthoritiesParameters(Parameters):
    """Where the authorities are stored, and where they are served."""

    lab: HomePath = parameter(
        "Folder of the lab",
        "Folder of the TLM, root CA, EA and AA; they are created there if it is empty or missing",
        kind="folder",
        positional=True,
        metavar="FOLDER",
    )
    host: str = parameter("Host", "Address to listen on", default="127.0.0.1", min_length=1)
    rca_port: int = _port("RCA port", "root CA", 8940)
    ea_port: int = _port("EA port", "EA", 8941)
    aa_port: int = _port("AA port", "AA", 8942)
    dc_port: int = _port("DC port", "distribution centre", 8943)
    serve: Served = parameter(
        "Serve",
        "Which authorities this process serves",
        default=Served.ALL,
        labels={
            Served.ALL.value: "Root CA, EA, AA and distribution centre",
            Served.BOTH.value: "EA and AA",
            Served.RCA.value: "Root CA only",
            Served.EA.value: "EA only",
            Served.AA.value: "AA only",
            Served.DC.value: "Distribution centre only",
        },
    )
    ea_url: str | None = parameter(
        "URL of the EA",
        "Where an AA that is served alone reaches the EA; not given: on this host, at the EA port",
        default=None,
        shown_if={"serve": "aa"},
        metavar="URL",
    )


class ServeAuthorities(Operation[AuthoritiesParameters]):
    """Serves the authorities of a lab until it is cancelled."""

    name: ClassVar[str] = "v2x.serve-authorities"
    title: ClassVar[str] = "Serve authorities"
    description: ClassVar[str] = (
        "Serves the root CA, EA, AA and distribution centre of a lab (ETSI TS 102 941), until it is cancelled. The "
        "first time, it creates them and the TLM."
    )
    parameters: ClassVar[type[Parameters]] = AuthoritiesParameters
    runs_until_cancelled: ClassVar[bool] = True

    def run(self, parameters: AuthoritiesParameters, context: OperationContext) -> Result:
        # imported late: the window, which imports this module, does without cryptography
        from labconsole_v2x.pki.authorization_authority import AuthorizationAuthority, RemoteAuthority
        from labconsole_v2x.pki.enrolment_authority import EnrolmentAuthority
        from labconsole_v2x.pki.http_transport import (
            TIMEOUT_S,
            AnswerGet,
            AnswerPost,
            AuthorityServer,
            checked_url,
            post,
        )
        from labconsole_v2x.pki.key_folders import (
            AA,
            EA,
            LISTS,
            ROOT,
            StationFolder,
            create_lab,
            load_authority,
            load_list_signer,
            partner_certificate,
        )
        from labconsole_v2x.pki.lists.distribution_centre import DistributionCentre
        from labconsole_v2x.pki.lists.published_lists import Kind, PublishedLists
        from labconsole_v2x.pki.root.authority_folder import AuthorityFolder
        from labconsole_v2x.pki.root.root_authority import RootAuthority
        from labconsole_v2x.security.verification import its_now

        lab, serve = parameters.lab, parameters.serve
        if create_lab(lab, its_now() // 1_000_000 - _AGE_S):
            context.say(f"Created: TLM, root CA, EA and AA in {lab}")
        decisions: Queue[Decision] = Queue(_MOST_WAITING)
        counts = {"granted": 0, "refused": 0}
        lists = PublishedLists(lab / LISTS)

        with ExitStack() as servers:

            def ready(name: str, port: int, answer: AnswerPost | None = None, get: AnswerGet | None = None) -> str:
                """Serve an authority; its URL."""
                url = servers.enter_context(AuthorityServer(parameters.host, port, answer, get)).url
                context.say(f"Ready: {name} {url}")
                return url

            if serve in (Served.ALL, Served.RCA):
                root, register = load_list_signer(lab, ROOT), AuthorityFolder(lab)
                register.adopt_of_lab()
                rca = RootAuthority(root, register, partial(lists.revoked, root), notify=decisions.put)
                ready("RCA", parameters.rca_port, rca.answer)
            ea_url = parameters.ea_url or f"http://{parameters.host}:{parameters.ea_port}/"
            if serve in (Served.ALL, Served.BOTH, Served.EA):
                identity, aa_certificate = load_authority(lab, EA), partner_certificate(lab, AA)
                ea = EnrolmentAuthority(identity, StationFolder(lab), [aa_certificate], notify=decisions.put)
                ea_url = ready("EA", parameters.ea_port, ea.answer)
            if serve in (Served.ALL, Served.BOTH, Served.AA):
                identity, ea_certificate = load_authority(lab, AA), partner_certificate(lab, EA)
                known = RemoteAuthority(checked_url(ea_url), ea_certificate)
                aa = AuthorizationAuthority(identity, [known], partial(post, timeout_s=TIMEOUT_S), notify=decisions.put)
                ready("AA", parameters.aa_port, aa.answer)
            if serve in (Served.ALL, Served.DC):
                ready("DC", parameters.dc_port, get=DistributionCentre(lists).answer_get)
                if not lists.signers(Kind.ECTL):
                    context.say(f"No lists are published yet: issue them with labconsole v2x issue-lists {lab}.")
            while not context.stop_requested:
                with suppress(Empty):
                    decision = decisions.get(timeout=_PAUSE_S)
                    counts["granted" if decision.code == "ok" else "refused"] += 1
                    context.say(str(decision))
        return Result((f"Stopped: {counts['granted']} granted, {counts['refused']} refused.",), counts)
