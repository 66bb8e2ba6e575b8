"""The trial `v2x.live`: starts the stations' processes, issues their tickets, and conducts the run."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

from labconsole.clock import now_ns
from labconsole.errors import UserError
from labconsole.model.parameters import Parameters, parameter
from labconsole.model.series import TIME_PROGRESS
from labconsole.model.trial import (
    Curve,
    DerivedTable,
    Distribution,
    Evaluation,
    Event,
    LiveChannel,
    MetricKind,
    Question,
    RoleHandle,
    RoleSpec,
    RunContext,
    Samples,
    Series,
    Trial,
)
from labconsole.model.trial_command import TrialCommand
from labconsole.processes import own_cores
from labconsole.security.secrets import SecretRequest
from labconsole.security.token.named_tokens import find_configuration, pin_requests
from labconsole_v2x.choices import Attack, Generation, InclusionChoice, Receivers
from labconsole_v2x.live import live_curves, live_evaluation
from labconsole_v2x.live.live_metrics import METRICS
from labconsole_v2x.live.live_parameters import LEAST_RATE, MOST_REMEMBERED, STANDARD_RATE, LiveParameters
from labconsole_v2x.live.packet_table import packet_tables
from labconsole_v2x.live.process_settings import (
    CHANGE_COMMAND,
    LOCK_COMMAND,
    STATION_COMMAND,
    TICKETS_COMMAND,
    ProcessSettings,
    root_key,
)
from labconsole_v2x.live.series import LIVE, PKI_EVENT, QUEUE, RECEIVED, SENT, STATIONS
from labconsole_v2x.live.spread import PACKETS_A_PROCESS
from labconsole_v2x.messages.its_time import its_us
from labconsole_v2x.security.backends import Backend
from labconsole_v2x.security.issuing import TICKET_S, LabPki
from labconsole_v2x.security.reading import READ_ERRORS, MalformedDataError, read_key_on, read_on_curve
from labconsole_v2x.security.structures import Certificate
from labconsole_v2x.stations.identity_change import LONGEST_LOCK_S
from labconsole_v2x.stations.sending import Identity, SecurityMode
from labconsole_v2x.stations.transports import TransportKind

_ROLE = "labconsole_v2x.live.station_role:StationRole"
P = TypeVar("P", bound=LiveParameters)
_LEAD_NS = 50_000_000
_READY_S = 60.0
_STALL_S = 20.0
"""Without any counter that moves; the seconds of the run are one."""
_AGE_S = 3600
"""Certificates begin so long before the run: clocks of other stations may be slow."""
_EXPIRED_AFTER_S = 1800
"""An expired ticket was valid for so long."""


class StationParameters(Parameters):
    """The station that a command is for."""

    station: int = parameter("Station", "Number of a sending station, from 1 on", default=1, ge=1, le=300)


class LockParameters(StationParameters):
    """The station that a lock is for, and how long it lasts."""

    seconds: int = parameter(
        "Duration", "A change that is due meanwhile is done afterwards", default=10, ge=1, le=LONGEST_LOCK_S, unit="s"
    )


class StationTrial(Trial[P]):
    """A trial of stations in processes of their own that send to each other."""

    series: ClassVar[tuple[Series, ...]] = (STATIONS, SENT, RECEIVED, QUEUE)
    definitions: ClassVar[int] = 2
    on_hosts: ClassVar[bool] = True
    commands: ClassVar[tuple[TrialCommand, ...]] = (
        TrialCommand("stop-station", "Stop station", "The station sends no more CAMs.", StationParameters),
        TrialCommand("start-station", "Start station", "The station sends CAMs again.", StationParameters),
        TrialCommand(
            CHANGE_COMMAND,
            "Change identity",
            "The station takes another of its tickets, with the next CAM or at the end of a lock.",
            StationParameters,
        ),
        TrialCommand(
            LOCK_COMMAND, "Lock identity", "The station does not change its identity meanwhile.", LockParameters
        ),
    )

    def secrets(self, parameters: P) -> tuple[SecretRequest, ...]:
        return pin_requests(parameters.token) if uses_token(parameters) else ()

    def specs(self, parameters: P, seed: int) -> list[RoleSpec]:
        """The roles of a run: the roadside station first, where there is one."""
        return station_specs(parameters, seed)

    def role_names(self, parameters: P) -> tuple[str, ...]:
        return tuple(spec.name for spec in self.specs(parameters, seed=0))

    def run(self, parameters: P, context: RunContext) -> None:
        specs = self.specs(parameters, context.seed)
        roles = [context.start(spec) for spec in specs]
        reports = [role.report(_READY_S) for role in roles]
        if context.stop_requested:
            return
        _issue(parameters, context, roles, specs, reports)
        for role in roles:
            role.ready(_READY_S)
        if context.stop_requested:
            return
        begin_ns = now_ns() + _LEAD_NS + context.lead_ns
        for role in roles:
            role.begin(begin_ns)
        context.expect(int(parameters.warm_up + parameters.duration), TIME_PROGRESS.name, begin_ns)
        load = (
            "by the rules of EN 302 637-2" if parameters.generation is Generation.RULES else f"{parameters.rate:g} Hz"
        )
        context.event(
            "T0", f"T0: {parameters.senders} sending stations, {load}, {len(specs)} processes.", begin_ns=begin_ns
        )
        context.wait(
            roles,
            stall_s=_STALL_S,
            reason="The stations do not come to their end: read the log.",
            on_command=_deliver(context, roles, specs),
        )

    def curves(self, parameters: P, samples: Samples, events: Sequence[Event]) -> tuple[Curve, ...]:
        return live_curves.curves(parameters, samples, events)

    def distributions(self, parameters: P, samples: Samples, events: Sequence[Event]) -> tuple[Distribution, ...]:
        return live_evaluation.distributions(parameters, samples, events)

    def derived(self, parameters: P, samples: Samples, events: Sequence[Event]) -> tuple[DerivedTable, ...]:
        return packet_tables(parameters, samples, events)

    def leaves_idle_time(self, parameters: P) -> bool:
        packets = parameters.messages_on_air * (1 + parameters.receiving_stations)
        return bool(packets < PACKETS_A_PROCESS * (len(own_cores()) or os.cpu_count() or 1))

    def warnings(self, parameters: P) -> tuple[str, ...]:
        return tuple(_warnings(parameters))

    def local_warnings(self, parameters: P) -> tuple[str, ...]:
        if parameters.transport is TransportKind.ETHERNET or not parameters.interface.startswith("127."):
            return ()
        return (
            "Loopback: senders and receiver share one computer, and no frame is on the air. Airtime is calculated.",
        )


class LiveTrial(StationTrial[LiveParameters]):
    """Sends CAMs between stations, signed and verified, and measures latency and loss."""

    kind: ClassVar[str] = "v2x.live"
    title: ClassVar[str] = "V2X stations, live"
    description: ClassVar[str] = (
        "What do signing and verifying CAMs cost in latency and loss, and up to which load? ETSI ITS stations that "
        "send, sign, receive and verify, in processes of their own."
    )
    parameters: ClassVar[type[Parameters]] = LiveParameters
    metrics: ClassVar[tuple[MetricKind, ...]] = METRICS
    key_metrics: ClassVar[tuple[str, ...]] = ("accept_rate", "latency_p50", "latency_p99", "packet_loss")
    finding_metrics: ClassVar[tuple[str, ...]] = ("latency_p50", "packet_loss")
    live: ClassVar[tuple[LiveChannel, ...]] = LIVE

    def evaluate(self, parameters: LiveParameters, samples: Samples, events: Sequence[Event]) -> Evaluation:
        return live_evaluation.evaluate(parameters, samples, events)

    def contrast(self, reference: LiveParameters, other: LiveParameters) -> str:
        return contrast_label(reference, other)

    def questions(self, reference: LiveParameters, other: LiveParameters) -> tuple[Question, ...]:
        label = contrast_label(reference, other)
        if not label:
            return ()
        return (Question("What does it cost in latency?", "latency_p50", label.partition(" against ")[0]),)


def uses_token(parameters: LiveParameters) -> bool:
    """Whether stations sign or verify in a token."""
    signs = parameters.security.signs and parameters.signing is Backend.TOKEN
    return signs or (parameters.security.verifies and parameters.verification is Backend.TOKEN)


def _warnings(parameters: LiveParameters) -> Iterator[str]:
    if parameters.generation is Generation.FIXED:
        yield from _rate_warnings(parameters.rate, parameters.instances, parameters.instance_rate)
    if parameters.security.verifies and parameters.duplicate_window == MOST_REMEMBERED:
        yield f"Receivers remember {MOST_REMEMBERED:,} packets: a repeated one that is older is accepted again."
    if parameters.security is SecurityMode.HEADER:
        yield "Packets carry placeholders for signatures: no station accepts them that verifies."
    if parameters.inclusion is InclusionChoice.NEVER and parameters.security.verifies:
        yield "No CAM carries its ticket: the receiver knows all tickets before the run."
    if parameters.verification is Backend.AWS_LC and parameters.threads > 1:
        yield "AWS-LC verifies in one thread at a time: further threads gain nothing."
    if parameters.processes > (os.cpu_count() or 1):
        yield f"More sender processes ({parameters.processes}) than cores ({os.cpu_count()}): they wait for each other."


def _rate_warnings(rate: float, instances: int, instance_rate: float) -> Iterator[str]:
    if instance_rate > STANDARD_RATE:
        yield f"Stress: {instance_rate:g} CAMs a second of one instance break EN 302 637-2, which allows 10."
    elif rate > STANDARD_RATE:
        yield (
            f"Stress: a station sends {rate:g} CAMs a second as {instances} instances, each within EN 302 637-2, as "
            "the source's boxes did."
        )
    if instance_rate < LEAST_RATE:
        yield f"{instance_rate:g} CAMs a second of one instance break EN 302 637-2, which asks for 1 at least."


_CONFIGURATIONS = {
    (SecurityMode.NONE, SecurityMode.HEADER): "A security header against none",
    (SecurityMode.NONE, SecurityMode.SIGNED): "Signing against no security",
    (SecurityMode.NONE, SecurityMode.FULL): "Full security against none",
    (SecurityMode.HEADER, SecurityMode.SIGNED): "Signing against the header alone",
    (SecurityMode.HEADER, SecurityMode.FULL): "Full security against the header alone",
    (SecurityMode.SIGNED, SecurityMode.FULL): "Verifying against signing alone",
}
_MAY_DIFFER = frozenset({"security", "capture", "duration", "port", "processes"})


def contrast_label(reference: LiveParameters, other: LiveParameters) -> str:
    """The difference of two configurations under one load; empty where more differs."""
    one, two = reference.model_dump(mode="json"), other.model_dump(mode="json")
    if any(one[name] != two[name] for name in one.keys() - _MAY_DIFFER):
        return ""
    return _CONFIGURATIONS.get((reference.security, other.security), "")


def station_specs(parameters: LiveParameters, seed: int) -> list[RoleSpec]:
    """The roles of all stations but attackers: the roadside station first, where there is one."""
    everyone = parameters.receivers is Receivers.ALL
    groups = parameters.station_groups
    processes = [process_settings(parameters, seed, group, records=everyone) for group in groups]
    specs = [_spec(parameters, role_name("stations", settings.stations), settings) for settings in processes]
    if not everyone:
        specs.insert(0, _spec(parameters, "receiver", process_settings(parameters, seed, [0], records=True)))
    return specs


def role_name(kind: str, stations: Sequence[int]) -> str:
    """The name of a process of these stations."""
    return f"{kind}-{stations[0]}-{stations[-1]}"


def process_settings(
    parameters: LiveParameters, seed: int, stations: Sequence[int], *, records: bool
) -> ProcessSettings:
    """What a process of these stations does: 0 alone is the roadside station."""
    roadside = list(stations) == [0]
    transport = parameters.transport_settings(receiver=roadside)
    configuration = find_configuration(parameters.token).model_dump(mode="json") if uses_token(parameters) else None
    return ProcessSettings(
        stations=list(stations),
        instances=1 if roadside else parameters.instances,
        rate=parameters.receiver_rate if roadside else parameters.instance_rate,
        rules=parameters.generation is Generation.RULES and not roadside,
        dcc=parameters.dcc and not roadside,
        hears_channel=parameters.hears_channel,
        records=records,
        total_s=parameters.warm_up + parameters.duration,
        seed=seed,
        security=parameters.security.value,
        curve=parameters.curve.curve.name,
        compressed_r=parameters.compressed_r,
        inclusion=parameters.inclusion.policy.name,
        signing=parameters.signing.value,
        verification=parameters.verification.value,
        token=parameters.token,
        token_configuration=configuration,
        order=parameters.order.order.name,
        windows_us=parameters.windows_us,
        duplicate_window=parameters.duplicate_window,
        radio_range=parameters.radio_range if parameters.checks_plausibility else None,
        threads=parameters.threads,
        divides_cores=parameters.divides_cores,
        queue_limit=parameters.queue_limit,
        roots=len(parameters.roots) if parameters.security.verifies else 0,
        capture=parameters.capture,
        transport={
            "kind": transport.kind.value,
            "interface": transport.interface,
            "group": transport.group,
            "port": transport.port,
        },
        unicast_receiver=roadside,
        tickets=1 if roadside or parameters.security is SecurityMode.NONE else parameters.tickets,
        change=parameters.change.value,
        change_interval_s=parameters.change_interval,
    )


def _spec(parameters: LiveParameters, name: str, settings: ProcessSettings) -> RoleSpec:
    secrets: tuple[SecretRequest, ...] = ()
    if uses_token(parameters):
        secrets = (find_configuration(parameters.token).pin_request(parameters.token),)
    files = {root_key(number): path for number, path in enumerate(parameters.roots[: settings.roots])}
    return RoleSpec(name, _ROLE, settings.to_json(), secrets, files)


def _issue(
    parameters: LiveParameters,
    context: RunContext,
    roles: Sequence[RoleHandle],
    specs: Sequence[RoleSpec],
    reports: Sequence[Mapping[str, Any]],
) -> None:
    """Issue a ticket for each key that the roles report, and send each role its own and what all must know."""
    if parameters.security is SecurityMode.NONE:
        pki, tickets = None, [list[Certificate]() for _ in roles]
        names = [[bytes.fromhex(name) for name in report["names"]] for report in reports]
    else:
        start_s = its_us(time.time_ns()) // 1_000_000 - _AGE_S
        pki = LabPki.create(
            start_s, root_curve=parameters.root_curve.curve, authority_curve=parameters.authority_curve.curve
        )
        tickets = [
            [_ticket(pki, key, start_s, _duration_s(spec)) for key in report["keys"]]
            for spec, report in zip(specs, reports, strict=True)
        ]
        names = [[ticket.hashed_id8 for ticket in issued] for issued in tickets]
    sources = {
        Identity.of(name).mac.hex(): station
        for spec, named in zip(specs, names, strict=True)
        if spec.settings["attack"] == Attack.NONE
        for station, name in zip(_stations_of_slots(spec), named, strict=True)
    }
    addresses = {spec.name: report["address"] for spec, report in zip(specs, reports, strict=True)}
    every_ticket = [ticket.octets.hex() for issued in tickets for ticket in issued]
    for role, spec, issued, named in zip(roles, specs, tickets, names, strict=True):
        known = []
        if pki is not None and (spec.name != "receiver" or parameters.inclusion is InclusionChoice.NEVER):
            known = [pki.aa.octets.hex()]
        if parameters.inclusion is InclusionChoice.NEVER:
            known += every_ticket
        role.command(
            {
                "name": TICKETS_COMMAND,
                "tickets": [ticket.octets.hex() for ticket in issued],
                "names": [name.hex() for name in named] if pki is None else [],
                "roots": [] if pki is None else [pki.root.octets.hex()],
                "known": known,
                "sources": sources,
                "receiver": addresses.get("receiver", ""),
            }
        )
    if pki is not None:
        context.artefact("root.oer", "application/octet-stream", pki.root.octets)
        context.artefact("aa.oer", "application/octet-stream", pki.aa.octets)
        context.event(
            PKI_EVENT,
            f"Root CA {pki.root.hashed_id8.hex()}, AA {pki.aa.hashed_id8.hex()}, {len(every_ticket)} tickets.",
            root=pki.root.hashed_id8.hex(),
            aa=pki.aa.hashed_id8.hex(),
            tickets=len(every_ticket),
        )


def _duration_s(spec: RoleSpec) -> int:
    """For how long the tickets of a role are valid."""
    return _EXPIRED_AFTER_S if spec.settings["attack"] == Attack.EXPIRED_CERTIFICATE else TICKET_S


def _ticket(pki: LabPki, encoded_key: str, start_s: int, duration_s: int) -> Certificate:
    try:
        public_key, _ = read_on_curve(bytes.fromhex(encoded_key), 0, "Key", read_key_on)
    except (MalformedDataError, *READ_ERRORS) as error:
        raise UserError("A role reported a key that cannot be read: read the log.") from error
    return pki.ticket(public_key, start_s, duration_s=duration_s)


def _stations_of_slots(spec: RoleSpec) -> Iterator[int]:
    """The station of each key that a role reports, in their order."""
    for station in spec.settings["stations"]:
        yield from [station] * spec.settings["instances"] * spec.settings["tickets"]


def _station_command(command: Mapping[str, Any]) -> dict[str, Any]:
    """What a role is sent for a command of the operator."""
    match command["name"]:
        case "start-station" | "stop-station" as name:
            return {"name": STATION_COMMAND, "on": name == "start-station"}
        case name:
            return {"name": name, "seconds": command["parameters"].get("seconds")}


def _deliver(
    context: RunContext, roles: Sequence[RoleHandle], specs: Sequence[RoleSpec]
) -> Callable[[dict[str, Any]], None]:
    """What sends a command of the operator to the role of its station."""

    def deliver(command: dict[str, Any]) -> None:
        number = command["parameters"]["station"]
        for role, spec in zip(roles, specs, strict=True):
            if number in spec.settings["stations"]:
                role.command({**_station_command(command), "number": number})
                return
        context.event("no such station", f"There is no sending station {number} in this run.")

    return deliver
