"""The role of stations: one process that creates their keys, sends their CAMs as they are due, and receives.

Keys never leave it: it reports the public ones, and gets tickets for them.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, ClassVar

from labconsole.clock import now_ns
from labconsole.errors import UserError
from labconsole.model.role import Role, RoleContext
from labconsole.model.series import Level, LiveChannel
from labconsole.processes import own_cores, wait_exactly
from labconsole_v2x.choices import CHANGE_JITTER, CHANGING, ChangeChoice, Unchanged
from labconsole_v2x.live.process_settings import (
    CHANGE_COMMAND,
    LOCK_COMMAND,
    STATION_COMMAND,
    TICKETS_COMMAND,
    ProcessSettings,
    root_key,
)
from labconsole_v2x.live.series import (
    END_EVENT,
    IMPLAUSIBLE_EVENT,
    NO_CHANGE_EVENT,
    QUIET_NS,
    SENT_CHANNEL,
    STATIONS_CHANNEL,
    TOO_LATE_EVENT,
)
from labconsole_v2x.live.spread import divided_cores
from labconsole_v2x.live.station_records import StationRecords
from labconsole_v2x.live.station_report import StationReport
from labconsole_v2x.messages.asn1_modules import compiled
from labconsole_v2x.security.backends import Backend, generate_key, key_loader, open_backend_token
from labconsole_v2x.security.distribution import CertificateInclusion, Distribution
from labconsole_v2x.security.encoding import encode_verification_key
from labconsole_v2x.security.keys import SigningKey
from labconsole_v2x.security.reading import MalformedDataError
from labconsole_v2x.security.scanning import scan_certificate
from labconsole_v2x.security.structures import Certificate, Curve
from labconsole_v2x.security.trust import StoreLimits, TrustStore
from labconsole_v2x.security.verification import Verifier, its_now
from labconsole_v2x.stations.cam_timing import CamTiming, RuleTiming
from labconsole_v2x.stations.capture import ETHERNET_HEADER
from labconsole_v2x.stations.channel import ChannelLoad
from labconsole_v2x.stations.identity_change import ChangeSchedule, IdentityChanger
from labconsole_v2x.stations.plausibility import Plausibility
from labconsole_v2x.stations.pseudonyms import Pseudonym, PseudonymPolicy, PseudonymPool
from labconsole_v2x.stations.receiving import (
    PacketCheck,
    ReceivedFrame,
    ReceivingStation,
    Reception,
    UnverifiedCheck,
    VerifiedCheck,
    full_queue_row,
)
from labconsole_v2x.stations.routes import Route, vehicle_route
from labconsole_v2x.stations.sending import (
    PASSENGER_CAR,
    ROADSIDE_UNIT,
    CamSender,
    Identity,
    PacketSender,
    PlaceholderKey,
    SecurityMode,
)
from labconsole_v2x.stations.transmission import Instance, Transmission
from labconsole_v2x.stations.transports import open_transport

_UPKEEP_S = 0.05
"""Interval at which what was recorded is written."""
_SWITCH_S = 0.000_02
"""After so long, a thread that computes lets another one: a packet waits for upkeep no longer."""
_LONGEST_DRAIN_NS = 10_000_000_000
"""After the end, a receiver waits at most so long for packets."""


class StationRole(Role):
    """Sends the CAMs of its stations and receives. Settings: those of `ProcessSettings`."""

    _sent_channel: ClassVar[LiveChannel] = SENT_CHANNEL

    def __init__(self, context: RoleContext) -> None:
        super().__init__(context)
        self._settings = ProcessSettings.from_json(context.settings)
        self._mode = SecurityMode(self._settings.security)
        self._resources = ExitStack()
        self._records = StationRecords(context, self._settings, self._sent_channel)
        self._plausibilities: dict[int, Plausibility] = {}
        self._last_frame_ns = 0
        self._load = ChannelLoad() if self._settings.hears_channel else None

    # Preparation

    def prepare(self) -> dict[str, Any]:
        """Create keys, wait for their tickets, and open the transport. Raises UserError."""
        settings = self._settings
        configuration = settings.token_configuration
        self._token = open_backend_token(settings.token, configuration, self.context, self._resources)
        slots = [(station, number) for station in settings.stations for number in range(settings.instances)]
        keys = [self._new_key() for _ in slots for _ in range(settings.tickets)]
        random = Random(f"{settings.seed}/{settings.stations[0]}")
        self.context.report(
            keys=[encode_verification_key(key.public_key).hex() for key in keys if key is not None],
            names=[random.randbytes(8).hex() for key in keys if key is None],
            address=self.context.address,
        )
        given = self._given()
        if given is None:
            return {}
        tickets = [scan_certificate(bytes.fromhex(one)) for one in given["tickets"]]
        self._sources = {bytes.fromhex(mac): int(number) for mac, number in given["sources"].items()}
        self._records.senders = frozenset(int.from_bytes(mac, "big") for mac, number in self._sources.items() if number)
        self._trust(given)
        self._routes = {
            station: vehicle_route(Random(f"{settings.seed}/{station}")) if station else Route()
            for station in settings.stations
        }
        signing = [key for key in keys if key is not None]
        pseudonyms = [Pseudonym(ticket, key) for ticket, key in zip(tickets, signing, strict=True)]
        names = given["names"] or [""] * len(slots)
        self._instances = [
            self._instance(slot, pseudonyms[settings.tickets * number :][: settings.tickets], name, random)
            for number, (slot, name) in enumerate(zip(slots, names, strict=True))
        ]
        if settings.records or self._mode.verifies:
            compiled(1)  # 0.3 s, which the first CAM of another kind would wait
        transport = settings.transport_settings(self.context.address, given["receiver"])
        self._transport = open_transport(transport, receiver=settings.unicast_receiver)
        self._resources.callback(self._transport.close)
        self._prepare_reception()
        self._records.begin(self._instances)
        return {}

    def _new_key(self) -> SigningKey | None:
        settings = self._settings
        if self._mode is SecurityMode.NONE:
            return None
        curve = Curve[settings.curve]
        signing = Backend(settings.signing)
        if self._mode is SecurityMode.HEADER:
            return PlaceholderKey(generate_key(Backend.OPENSSL, curve).public_key)
        return generate_key(signing, curve, self._token, compressed_r=settings.compressed_r)

    def _given(self) -> Mapping[str, Any] | None:
        """The tickets and what belongs to them; None if the run was stopped before."""
        while not self.context.stop_requested:
            command = self.context.take_command()
            if command is not None and command["name"] == TICKETS_COMMAND:
                return command
            time.sleep(0.005)
        return None

    def _trust(self, given: Mapping[str, Any]) -> None:
        """Keep the certificates from which each receiving station's trust store begins."""
        self._roots = [scan_certificate(bytes.fromhex(octets)) for octets in given["roots"]]
        for number in range(self._settings.roots):
            path = self.context.file(root_key(number))
            if path is not None:
                self._roots.append(_read_root(path))
        self._known = [scan_certificate(bytes.fromhex(octets)) for octets in given["known"]]

    def _new_trust(self) -> TrustStore:
        limits = StoreLimits()
        limits = replace(limits, tickets=max(limits.tickets, 2 * len(self._known)))
        trust = TrustStore(limits, key_loader(Backend(self._settings.verification), self._token))
        for root in self._roots:
            trust.add_root(root)
        for certificate in self._known:
            trust.add(certificate)
        return trust

    def _instance(self, slot: tuple[int, int], pseudonyms: Sequence[Pseudonym], name: str, random: Random) -> Instance:
        settings, (station, number) = self._settings, slot
        pool = self._pool(slot, pseudonyms) if len(pseudonyms) > 1 else None
        station_type = PASSENGER_CAR if station else ROADSIDE_UNIT
        if pseudonyms:
            first = pseudonyms[0] if pool is None else pool.change(its_now() // 1_000_000)
            sender = self._sender(Identity.of(first.ticket.hashed_id8), first.ticket, first.key, station_type)
        else:
            sender = self._sender(Identity.of(bytes.fromhex(name)), None, None, station_type)
        # Services are not in step with each other: each begins somewhere in its first interval.
        offset_ns = round(random.random() * 1e9 / (10 if settings.rules else settings.rate))
        timing = RuleTiming(offset_ns) if settings.rules else CamTiming(offset_ns, settings.rate)
        instance = Instance(station, number, self._routes[station], sender, timing)
        if isinstance(sender, CamSender) and pool is not None:
            notify = partial(self._records.identity_changed, instance)
            layers = Unchanged(self._settings.unchanged).changed_layers
            instance.changer = IdentityChanger(sender, self._schedule(slot), pool, layers=layers, notify=notify)
        return instance

    def _pool(self, slot: tuple[int, int], pseudonyms: Sequence[Pseudonym]) -> PseudonymPool:
        """The pool of an instance; the trial's curves may be others than those of the EU's policy."""
        pool = PseudonymPool(
            PseudonymPolicy(curves=frozenset(Curve)), Random(f"{self._settings.seed}/pseudonyms/{slot}")
        )
        for pseudonym in pseudonyms:
            pool.add(pseudonym, its_now() // 1_000_000)
        return pool

    def _schedule(self, slot: tuple[int, int]) -> ChangeSchedule:
        change = ChangeChoice(self._settings.change)
        return ChangeSchedule(
            at_start=change is ChangeChoice.START,
            interval_s=self._settings.change_interval_s if change in CHANGING else None,
            jitter=CHANGE_JITTER if change is ChangeChoice.PERIODIC else 0.0,
            random=Random(f"{self._settings.seed}/changes/{slot}"),
        )

    def _sender(
        self, identity: Identity, ticket: Certificate | None, key: SigningKey | None, station_type: int
    ) -> PacketSender:
        return CamSender(identity, ticket=ticket, key=key, station_type=station_type)

    def _prepare_reception(self) -> None:
        """Decide who processes which frames: receivers those of others, senders at most requests to them."""
        settings, stations = self._settings, []
        verified = self._mode.verifies
        self._receivers: dict[int, ReceivingStation] = {}
        if settings.records:
            for station in settings.stations:
                own = [one for one in self._instances if one.station == station]
                ignored = {mac for mac, number in self._sources.items() if number == station}
                check: PacketCheck = self._verified_check(own) if verified else UnverifiedCheck()
                stations.append(ReceivingStation(station, check, ignored, self._records.received.append))
            self._receivers = {station.number: station for station in stations}
        elif verified:
            senders = {mac for mac, number in self._sources.items() if number}
            stations.append(ReceivingStation(0, self._verified_check(self._instances), senders, None))
        if not verified and self._mode is not SecurityMode.NONE:
            self._add_distributions(self._instances, self._new_trust())
        receivers_cores, senders_cores = divided_cores(own_cores()) if settings.divides_cores else ((), ())
        self._reception = Reception(
            self._transport,
            stations,
            threads=settings.threads if settings.records else 1,
            queue_limit=settings.queue_limit,
            cores=receivers_cores if settings.records else senders_cores,
            on_frame=self._frame_read,
            on_full=self._queue_full,
        )
        self._listens = bool(stations) or settings.hears_channel
        if not (settings.records or settings.hears_channel):
            receiver = next((mac for mac, number in self._sources.items() if not number), None)
            if receiver is not None:
                self._transport.only_from(receiver)
        self._transmission = Transmission(
            self._transport,
            self._instances,
            self._records.sent.append,
            dcc=settings.dcc,
            load=self._load,
            cores=senders_cores,
        )

    def _verified_check(self, instances: Sequence[Instance]) -> VerifiedCheck:
        trust = self._new_trust()
        distributions = self._add_distributions(instances, trust)
        verifier = Verifier(trust, self._settings.check_settings())
        return VerifiedCheck(verifier, distributions, self._new_plausibility(instances[0].station))

    def _new_plausibility(self, station: int) -> Plausibility | None:
        settings = self._settings
        if not settings.records or settings.radio_range is None:
            return None
        self._plausibilities[station] = Plausibility(self._place(station, 0.0), settings.radio_range)
        return self._plausibilities[station]

    def _place(self, station: int, seconds: float) -> tuple[int, int]:
        movement = self._routes[station].at(seconds)
        return movement.latitude, movement.longitude

    def _add_distributions(self, instances: Sequence[Instance], trust: TrustStore) -> list[Distribution]:
        policy = CertificateInclusion[self._settings.inclusion]
        made = []
        for instance in instances:
            assert instance.sender.ticket is not None
            instance.sender.distribution = Distribution(instance.sender.ticket, trust, policy)
            made.append(instance.sender.distribution)
        return made

    # The run

    def run(self) -> dict[str, Any]:
        """Send what is due until the end, and receive until nothing more comes."""
        if not hasattr(self, "_transmission"):  # stopped before it had its tickets
            return {"sent": 0}
        settings, start_ns = self._settings, self.context.start_ns
        sys.setswitchinterval(_SWITCH_S)
        wait_exactly()
        end_ns = start_ns + round(settings.total_s * 1e9)
        self._records.begin_run()
        self._last_frame_ns = now_ns()
        if self._listens:
            self._reception.start()
        report = StationReport(self._routes, self._transmission, self._receivers, self._sources, start_ns)
        self.context.state(STATIONS_CHANNEL.name, report.next)
        self._transmission.start(start_ns, end_ns)
        while self._works(end_ns) and not self.context.stop_requested:
            self._upkeep(now_ns())
            time.sleep(_UPKEEP_S)
        self._transmission.stop()
        self._reception.stop()
        self._upkeep(now_ns())
        self._records.close()
        self._report_end()
        return {"sent": self._transmission.sent}

    def _report_end(self) -> None:
        """Report what was sent, what was not, and what receivers found implausible."""
        if self._plausibilities:
            found = sum((one.found for one in self._plausibilities.values()), Counter[str]())
            kinds = ", ".join(f"{kind}: {count:,}" for kind, count in found.most_common())
            self.context.event(IMPLAUSIBLE_EVENT, f"Implausible content: {kinds or 'none'}.", found=dict(found))
        sent, skipped = self._transmission.sent, self._transmission.skipped
        held_back = f", {skipped} held back by DCC" if self._settings.dcc else ""
        self.context.event(END_EVENT, f"{sent} CAMs sent{held_back}.", sent=sent, skipped=skipped)
        if failures := sum(one.changer.failures for one in self._instances if one.changer is not None):
            sentence = f"{failures} changes of identity were due without a further valid ticket: the names stayed."
            self.context.event(NO_CHANGE_EVENT, sentence, Level.WARNING, failures=failures)
        if too_late := self._transmission.too_late:
            sentence = f"{too_late} CAMs were due and not sent: this computer is too slow for its senders."
            self.context.event(TOO_LATE_EVENT, sentence, Level.WARNING, number=too_late)

    def _works(self, end_ns: int) -> bool:
        """Whether CAMs are still due, or on their way to a receiver here."""
        now = now_ns()
        if self._transmission.running or now < end_ns:
            return True
        if not self._settings.records or now > end_ns + _LONGEST_DRAIN_NS:
            return False
        return self._reception.waiting > 0 or now - max(self._last_frame_ns, end_ns) < QUIET_NS

    # In the thread that reads

    def _frame_read(self, frame: bytes, received_ns: int) -> None:
        if self._load is not None:
            self._load.add(len(frame) - ETHERNET_HEADER)
        if self._settings.records:
            if frame[6:12] in self._sources:
                self._last_frame_ns = received_ns
            self._records.capture(frame, received_ns)

    def _queue_full(self, frame: ReceivedFrame) -> None:
        for number in self._receivers.keys() - {self._sources.get(frame.source)}:
            self._records.received.append(full_queue_row(number, frame))

    # Upkeep

    def _upkeep(self, now: int) -> None:
        """Take commands, write what was recorded, and report live values."""
        self._reception.check()
        for station, plausibility in self._plausibilities.items():
            plausibility.move(self._place(station, max(0, now - self.context.start_ns) / 1e9))
        while (command := self.context.take_command()) is not None:
            self._execute(command, now)
        self._records.write(now, self._reception.waiting)

    def _execute(self, command: Mapping[str, Any], now: int) -> None:
        """Do what the operator wants of a station."""
        number = int(command["number"])
        changers = [one.changer for one in self._instances if one.station == number and one.changer is not None]
        match command["name"]:
            case str(name) if name == STATION_COMMAND:
                starts = bool(command["on"]) and not self._transmission.is_on(number)
                if starts and self._settings.change == ChangeChoice.START:
                    for changer in changers:
                        changer.schedule.request(now)
                self._transmission.switch(number, on=bool(command["on"]))
            case str(name) if name in (CHANGE_COMMAND, LOCK_COMMAND) and not changers:
                sentence = f"Station {number} has one ticket: its identity stays. Set Tickets to 2 or more."
                self.context.event(NO_CHANGE_EVENT, sentence, Level.WARNING, station=number)
            case str(name) if name == CHANGE_COMMAND:
                for changer in changers:
                    changer.schedule.request(now)
            case str(name) if name == LOCK_COMMAND:
                for changer in changers:
                    changer.schedule.lock(int(command["seconds"]), now)

    def close(self) -> None:
        """Close transport and token."""
        if hasattr(self, "_transmission"):
            self._transmission.stop()
            self._reception.stop()
        self._resources.close()


def _read_root(path: Path) -> Certificate:
    try:
        return scan_certificate(path.read_bytes())
    except MalformedDataError as error:
        raise UserError(f"{path} is not a certificate: choose a file with the COER octets of a root CA's.") from error
