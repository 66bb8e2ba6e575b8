"""A run of senders, receivers and a broker: starts its roles, begins at T0, conducts the phases, and stops it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from labconsole.clock import now_ns
from labconsole.model.trial import RoleHandle, RoleSpec, RunContext
from labconsole_amqp.choices import BrokerChoice, Leftover, Loop, Mode
from labconsole_amqp.clocks.clock_ends import RUN_OVER, longest_after_s
from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.preflight.checks import Check, clocks_of_hosts_check, one_clock_check
from labconsole_amqp.preflight.preflight_verdicts import summary
from labconsole_amqp.roles.role_commands import (
    COUNT_COMMAND,
    FINISH,
    LATENCY_COMMAND,
    MEASURE_COMMAND,
    connect_command,
    key_lists_command,
    senders_done,
)
from labconsole_amqp.roles.role_settings import RoleIdentities, RoleSettings
from labconsole_amqp.roles.schedule import open_loop_command
from labconsole_amqp.run_payloads import load_payloads
from labconsole_amqp.series import OPEN_LOOP, PREFLIGHT, RECEIVED_CHANNEL, SENT_CHANNEL, SWEEP_DONE, SWEEP_STEP
from labconsole_amqp.trial.followed_identities import RolesByName, following_identities
from labconsole_amqp.trial.identities import EndName, RoleName, RunIdentities, keep_artefacts
from labconsole_amqp.trial.rate_search import RateSearch

_LEAD_NS = 20_000_000
"""T0 is this far in the future, so that all roles know it before."""
_READY_S = 30.0
_READY_AFTER_DRAINING_S = 600.0
"""How long a role may take to connect; the second one where the queue is drained first."""
_LONGEST_MAKING_S = 86_400.0
"""How long a sender may make keys ahead: 100,000 of RSA take hours; its token is watched key by key."""
_GRACE_S = 2.0
"""How long roles may take to finish after they are asked to stop."""
_PAUSE_NS = 100_000_000
"""Between the last message of the first phase and the first of the second."""
_LONGEST_DRAIN_S = 3600.0
"""Longest wait for a sender in the first phase; it fails by itself where messages are no longer acknowledged."""
_POLL_S = 0.02

SENDER_ROLE = "labconsole_amqp.roles.sender_role:SenderRole"
_RECEIVER = "labconsole_amqp.roles.receiver_role:ReceiverRole"
_LISTENING_RECEIVER = "labconsole_amqp.roles.listening_receiver:ListeningReceiverRole"
_BROKER = "labconsole_amqp.roles.broker_role:BrokerRole"
_CLOCK = "labconsole_amqp.clocks.clock_role:ClockRole"
_SHAPER = "labconsole_amqp.roles.shaper_role:ShaperRole"


class MessagingRun:
    """One run with these parameters; `database`: the directory of its identities, the user's own where not named."""

    def __init__(self, parameters: AmqpParameters, context: RunContext, database: Path | None = None) -> None:
        self._parameters, self._context, self._database = parameters, context, database
        self._roles: dict[str, list[RoleHandle]] = {}
        self._given: Mapping[RoleName, RoleIdentities] = {}
        self._begin_ns = 0
        """T0."""

    def begin(self, besides: Sequence[RoleSpec] = (), sender: str = SENDER_ROLE) -> bool:
        """Start all roles up to T0; False: the run was cancelled before. Raises UserError.

        `besides` are roles that connect by themselves, and `sender` the class of the senders.
        """
        parameters, context = self._parameters, self._context
        payloads = load_payloads(parameters)
        identities = RunIdentities(parameters, directory=self._database)
        specs = role_specs(parameters, identities, sender)
        self._given = identities.by_role
        for note in identities.notes:
            context.event("identities", note)
        names = ("broker", "shaper", "receiver", "sender", "clock", "other")
        self._roles = {name: [] for name in names}
        for name, group in zip(names, (*specs, besides), strict=True):
            for spec in group:
                self._roles[name].append(role := context.start(spec))
                if name == "sender" and RoleSettings.model_validate(spec.settings).logs_in_first:
                    role.report(_READY_S)
        brokers, shapers, receivers, senders, clocks, others = self._roles.values()
        if parameters.pool_size:
            key_lists = key_lists_command([sender.report(_LONGEST_MAKING_S) for sender in senders])
            for receiver in receivers:
                receiver.command(key_lists)
        host, port = parameters.host, parameters.port
        for broker in brokers:
            info = broker.ready()
            host, port = info["host"], info["port"]
            broker.begin(now_ns())
        listening = receivers if parameters.is_direct else []
        for receiver in listening:
            info = receiver.report(_READY_S)  # it has loaded, and accepts
            host, port = info["host"], info["port"]
        direct = connect_command(host, port)
        shaped = [_shaped_command(shaper, direct, parameters) for shaper in shapers]
        sender_info: Mapping[str, Any] = {}
        several = context.lead_ns > 0
        checks = [clocks_of_hosts_check() if several else one_clock_check()] if parameters.mode is Mode.BOTH else []
        own = [*checks]
        for clock in clocks:
            clock.command(shaped[0] if parameters.is_shaped_for(parameters.mode) else direct)
            clock.ready(_READY_S)
            if parameters.mode is Mode.SENDER:  # before its senders connect: they could not keep a connection open
                clock.begin(now_ns())
                report = clock.report(parameters.wait_for_peer + _READY_S)
                checks += map(Check.from_json, report["checks"])
        # One after the other, so that none disturbs the other's connect time; the first checks the queue.
        # A receiver that listens is ready once its sender is.
        for role in (*(receivers if not listening else ()), *senders, *listening, *others):
            if context.stop_requested:
                return False
            if role not in listening:
                end = Mode.SENDER if role in senders else Mode.RECEIVER
                role.command(shaped[0] if parameters.is_shaped_for(end) and role not in others else direct)
            info = role.ready(_READY_AFTER_DRAINING_S if parameters.leftover is Leftover.DRAIN else _READY_S)
            sender_info = info if role in senders else sender_info
            checks += map(Check.from_json, info.get("checks", ()))
        context.event(PREFLIGHT, summary(checks), checks=[check.to_json() for check in own])
        keep_artefacts(parameters, identities, payloads.sources, sender_info, context)
        for broker in brokers:
            broker.command(MEASURE_COMMAND)
        self._begin_ns = begin_ns = now_ns() + _LEAD_NS + context.lead_ns
        # The other console begins to send once a receiver's clock answers.
        for role in (*receivers, *senders, *others, *(clocks if parameters.mode is Mode.RECEIVER else ())):
            role.begin(begin_ns)
        channel = SENT_CHANNEL if parameters.mode is Mode.SENDER else RECEIVED_CHANNEL
        total = parameters.per_sender * parameters.senders if parameters.is_counted else 0
        context.expect(total, channel.name, begin_ns)
        context.event("T0", f"T0: begin. Senders: {len(senders)}, receivers: {len(receivers)}.", begin_ns=begin_ns)
        return True

    def conduct(self) -> None:
        """Wait for all roles, and stop those that serve. Raises UserError."""
        followers: RolesByName = {name: self._roles[name] for name in ("broker", "receiver", "sender")}
        with following_identities(self._parameters, followers, self._given, self._context, self._database):
            self._conduct(self._roles["receiver"], self._roles["sender"])
            self._wait(self._roles["other"], "A role does not finish: read the log.", _GRACE_S)
        if self._context.stop_requested:
            _stop_roles(self._roles["sender"])
            if self._parameters.loop is Loop.SOAK:  # what was sent arrives yet: it is a soak of less time
                self._report_all_sent()
                _await_end(self._roles["receiver"])
            for name in ("clock", "receiver", "other"):
                _stop_roles(self._roles[name])
            return
        for clock in self._roles["clock"]:
            clock.command(RUN_OVER)
            clock.finish(longest_after_s(self._parameters) + _READY_S)
        for role in (*self._roles["shaper"], *self._roles["broker"]):
            role.stop()
            role.finish()

    def stop(self) -> None:
        """Let all roles finish that still run, for a moment: the engine ends those that are late."""
        _stop_roles([role for roles in self._roles.values() for role in roles if role.running])

    def _conduct(self, receivers: Sequence[RoleHandle], senders: Sequence[RoleHandle]) -> None:
        """Wait for the senders, then for the receivers."""
        parameters, context = self._parameters, self._context
        if parameters.loop is Loop.BOTH:
            _conduct_phases(parameters, context, self._begin_ns, receivers, senders)
        elif parameters.loop is Loop.SWEEP:
            _conduct_sweep(parameters, context, self._begin_ns, receivers, senders)
        reason = (
            "the broker gives no credit, since its queue is full and no receiver empties it, or a limit holds it back"
        )
        remedy = "check the queue there"
        if parameters.is_direct:
            reason, remedy = "the receiver gives no credit", "read its log"
        self._wait(senders, f"No message moved for {parameters.longest_wait:g} s: {reason}; {remedy}.")
        if context.stop_requested:
            return
        self._report_all_sent()
        self._wait(receivers, "The receiver does not finish: read the log.", _GRACE_S)

    def _report_all_sent(self) -> None:
        """Tell the receivers how many messages this console's senders have sent. Raises UserError."""
        if senders := self._roles["sender"]:
            results = [sender.finish() for sender in senders]
            reconnects = sum(result["reconnects"] for result in results)
            sent: Counter[str] = Counter()
            for index, result in enumerate(results):
                sent[self._parameters.address_of(index)] += result["sent"]
            for index, receiver in enumerate(self._roles["receiver"]):
                receiver.command(senders_done(sent[self._parameters.address_of(index)], reconnects))

    def _wait(self, roles: Sequence[RoleHandle], reason: str, grace_s: float = 0.0) -> None:
        self._context.wait(roles, stall_s=self._parameters.longest_wait + grace_s, reason=reason)


def _shaped_command(shaper: RoleHandle, direct: Mapping[str, Any], parameters: AmqpParameters) -> dict[str, Any]:
    """Start a shaper in front of the broker; the command to connect over it."""
    shaper.command(direct)
    port = shaper.ready(_READY_S + parameters.link_calibration + parameters.shaped_link.settling_s)["port"]
    shaper.begin(now_ns())
    return connect_command(direct["host"], direct["port"], port)


def _stop_roles(roles: Sequence[RoleHandle]) -> None:
    """Let roles finish, so that they record their state; the engine ends those that are late."""
    for role in roles:
        role.stop()
    _await_end(roles)


def _await_end(roles: Sequence[RoleHandle]) -> None:
    """Wait a moment until roles have finished."""
    deadline = time.monotonic() + _GRACE_S
    while any(role.running for role in roles) and time.monotonic() < deadline:
        time.sleep(_POLL_S)


def role_names(parameters: AmqpParameters) -> tuple[tuple[str, ...], ...]:
    """The names of brokers, shapers, receivers, senders and clocks of a run, in the order in which they are started."""
    mode = parameters.mode
    receivers = parameters.receivers if mode in (Mode.RECEIVER, Mode.BOTH) else 0
    senders = parameters.senders if mode in (Mode.SENDER, Mode.BOTH) else 0
    return (
        ("broker",) if parameters.broker is BrokerChoice.EMBEDDED else (),
        ("shaper",) if parameters.is_shaped else (),
        tuple(f"receiver-{index}" for index in range(receivers)),
        tuple(f"sender-{index}" for index in range(senders)),
        ("clock",) if mode is not Mode.BOTH and parameters.compare_clocks else (),
    )


def role_specs(
    parameters: AmqpParameters, identities: RunIdentities, sender: str = SENDER_ROLE
) -> tuple[tuple[RoleSpec, ...], ...]:
    """The roles of `role_names`; `sender` is the class of the senders."""
    brokers, shapers, receivers, senders, clocks = role_names(parameters)
    shaper = RoleSettings(parameters=parameters, role="shaper")
    receiver = _LISTENING_RECEIVER if parameters.is_direct else _RECEIVER
    return (
        tuple(_broker(parameters, identities, name) for name in brokers),
        tuple(shaper.spec(name, _SHAPER) for name in shapers),
        _ends(parameters, identities, Mode.RECEIVER, receivers, receiver),
        _ends(parameters, identities, Mode.SENDER, senders, sender),
        tuple(_clock(parameters, identities, name) for name in clocks),
    )


def _broker(parameters: AmqpParameters, identities: RunIdentities, name: str) -> RoleSpec:
    settings = RoleSettings(parameters=parameters, role="broker", **dict(identities.by_role["broker"]))
    return settings.spec(name, _BROKER)


def _ends(
    parameters: AmqpParameters, identities: RunIdentities, end: Mode, names: Sequence[str], target: str
) -> tuple[RoleSpec, ...]:
    """The senders or receivers of this console; the first to connect to a queue checks it."""
    if not names:
        return ()
    role: EndName = "sender" if end is Mode.SENDER else "receiver"
    is_first = parameters.mode is Mode.SENDER or (end is Mode.RECEIVER and parameters.mode is Mode.BOTH)
    checks_queue = is_first and parameters.broker is BrokerChoice.EXTERNAL
    own, queues = dict(identities.by_role[role]), len(parameters.addresses)
    if parameters.is_direct and end is Mode.RECEIVER:
        own["port_identity"] = identities.by_role["broker"].identity
    return tuple(
        RoleSettings(
            parameters=parameters, role=role, index=index, **own, check_queue=checks_queue and index < queues
        ).spec(name, target)
        for index, name in enumerate(names)
    )


def _clock(parameters: AmqpParameters, identities: RunIdentities, name: str) -> RoleSpec:
    end: EndName = "sender" if parameters.mode is Mode.SENDER else "receiver"
    own = identities.by_role[end]
    settings = RoleSettings(parameters=parameters, role=end, identity=own.identity, server_name=own.server_name)
    return settings.spec(name, _CLOCK)


def _conduct_phases(
    parameters: AmqpParameters,
    context: RunContext,
    start_ns: int,
    receivers: Sequence[RoleHandle],
    senders: Sequence[RoleHandle],
) -> None:
    """Wait for the first phase, and command the start of the open loop; T0 is `start_ns`. Raises UserError."""
    longest_s = parameters.full_speed + _LONGEST_DRAIN_S
    sent = [sender.report(longest_s)["sent"] for sender in senders]
    left = sum(sent) - _received(parameters, receivers, sum(sent))
    begin_ns = now_ns() + _PAUSE_NS + context.lead_ns
    context.event(
        OPEN_LOOP,
        f"All queues are empty; the open loop begins: {parameters.rate:g} messages per second of each sender."
        if left <= 0
        else f"{left} messages of the first phase did not arrive; the open loop begins nevertheless.",
        begin_ns=begin_ns,
        first=sent,
    )
    for role in (*receivers, *senders):
        role.command(open_loop_command(begin_ns - start_ns, sent, parameters.rate, parameters.open_loop))
    for sender in senders:
        sender.report(parameters.open_loop + _LONGEST_DRAIN_S)
        sender.command(FINISH)


def _conduct_sweep(
    parameters: AmqpParameters,
    context: RunContext,
    start_ns: int,
    receivers: Sequence[RoleHandle],
    senders: Sequence[RoleHandle],
) -> None:
    """Try one rate after the other, until the highest that keeps the limit is found; T0 is `start_ns`.

    Raises UserError.
    """
    longest_s = parameters.step + _LONGEST_DRAIN_S
    search = RateSearch(parameters.rate)
    sent = [sender.report(longest_s)["sent"] for sender in senders]
    while (rate := search.next) is not None:
        begin_ns = now_ns() + _PAUSE_NS + context.lead_ns
        total = rate * len(senders)
        context.event(
            SWEEP_STEP,
            f"Step {search.steps + 1}: {total:,.0f} messages a second.",
            begin_ns=begin_ns,
            first=sent,
            rate=rate,
            seconds=parameters.step,
        )
        for role in (*receivers, *senders):
            role.command(open_loop_command(begin_ns - start_ns, sent, rate, parameters.step))
        sent = [sender.report(longest_s)["sent"] for sender in senders]
        limit_ns = parameters.p99_limit * 1e6 - context.clock_uncertainty_ns
        search.record(_keeps_limit(parameters, receivers, sum(sent), limit_ns))
    if search.over:
        context.event(SWEEP_DONE, f"The search is over after {search.steps} steps.", found=search.found)
    for sender in senders:
        sender.command(FINISH)


def _keeps_limit(parameters: AmqpParameters, receivers: Sequence[RoleHandle], sent: int, limit_ns: float) -> bool:
    """Whether all messages came, and p99 of the step's at each receiver is within the limit."""
    if _received(parameters, receivers, sent) < sent:
        return False
    for receiver in receivers:
        receiver.command(LATENCY_COMMAND)
    p99s = [receiver.report(parameters.patience)["p99_ns"] for receiver in receivers]
    measured = [p99 for p99 in p99s if p99 is not None]
    return bool(measured) and max(measured) <= limit_ns


def _received(parameters: AmqpParameters, receivers: Sequence[RoleHandle], sent: int) -> int:
    """Wait until all `sent` messages are received, or none for `patience`; returns the number received."""
    last, since = -1, time.monotonic()
    while True:
        for receiver in receivers:
            receiver.command(COUNT_COMMAND)
        received = sum(int(receiver.report(parameters.patience)["received"]) for receiver in receivers)
        if received >= sent or time.monotonic() - since > parameters.patience:
            return received
        if received != last:
            last, since = received, time.monotonic()
        time.sleep(_POLL_S)
