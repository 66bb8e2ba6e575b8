"""The clock role of a console that plays one end: compares its clock with the other console's over the broker."""

from __future__ import annotations

from typing import Any

from labconsole.clock_comparison import AFTER, BEFORE
from labconsole.errors import UserError
from labconsole.model.role import Role, RoleContext
from labconsole.model.trial import Level
from labconsole_amqp.choices import Mode
from labconsole_amqp.clocks.clock_ends import AnsweringEnd, AskingEnd, WrongTrialError
from labconsole_amqp.clocks.clock_link import ClockLink
from labconsole_amqp.link.connection import Connection, connect
from labconsole_amqp.parameters import field_label
from labconsole_amqp.preflight.checks import Check, clocks_not_compared_check, full_sentence, no_clock_queues_check
from labconsole_amqp.roles.link_role import await_connect_command
from labconsole_amqp.roles.role_keys import load_own_identity
from labconsole_amqp.roles.role_settings import RoleSettings, endpoint, tls_settings

NOT_COMPARED = "clocks not compared"


class ClockRole(Role):
    """Where clocks cannot be compared, it says why, and the run continues without."""

    def __init__(self, context: RoleContext) -> None:
        super().__init__(context)
        self._settings = RoleSettings.model_validate(context.settings)
        self._parameters = self._settings.parameters
        self._asks = self._parameters.mode is Mode.SENDER
        self._connection: Connection | None = None
        self._link: ClockLink | None = None
        self._end: AskingEnd | AnsweringEnd | None = None
        self._queues = ("", "")
        self._fault = ""

    def prepare(self) -> dict[str, Any]:
        """Connect, and attach to both queues, as far as that is possible. Raises UserError: the run was stopped."""
        identity = load_own_identity(self._settings, self.context)
        host, port, shaper = await_connect_command(self.context)
        parameters = self._parameters
        self._queues = requests, replies = parameters.clock_queues(parameters.addresses[0])
        tls = tls_settings(identity, parameters, self._settings.server_name)
        try:
            self._connection = connect(endpoint(parameters, host, port, tls, self.context.secret, shaper))
            outgoing, incoming = (requests, replies) if self._asks else (replies, requests)
            self._link = ClockLink(self._connection, outgoing, incoming)
        except UserError as error:
            self._fault = full_sentence(str(error), f"{host}:{port}")
        return {}

    def run(self) -> dict[str, Any]:
        """Compare before and after the run; the sender's reports its checks before. Raises WrongTrialError."""
        try:
            if self._link is None:
                self._record(no_clock_queues_check(self._fault, self._queues))
            elif self._asks:
                self._end = end = AskingEnd(self.context, self._link, self._parameters)
                self._ask(end)
            else:
                self._end = answering = AnsweringEnd(self.context, self._link, self._parameters)
                self._answer(answering)
        except WrongTrialError:
            raise
        except UserError as error:
            self._not_compared(full_sentence(str(error), ""))
        return {}

    def _ask(self, end: AskingEnd) -> None:
        checks = end.before()
        if checks is None:
            self._not_compared(
                f"The receiver's console did not answer within {self._parameters.wait_for_peer:g} s: start it with the "
                f"same queue, or switch {field_label('compare_clocks')} off where the other end is not a console."
            )
            return
        self._report(checks)
        if not end.after() and not self.context.stop_requested:
            self._not_compared("The receiver's console did not answer any more.")

    def _answer(self, end: AnsweringEnd) -> None:
        end.answer()
        if AFTER not in end.known and not self.context.stop_requested:
            self._not_compared("The sender's console did not ask: it compares no clocks, or has left.")

    def _not_compared(self, sentence: str) -> None:
        """Record why there is no offset before the run, or none after it."""
        if self._end is not None and BEFORE in self._end.known:
            self.context.event(NOT_COMPARED, f"Clocks not compared after the run: {sentence}", Level.WARNING)
            return
        self._record(clocks_not_compared_check(sentence))

    def _record(self, check: Check) -> None:
        self.context.event(NOT_COMPARED, check.sentence, Level.WARNING, checks=[check.to_json()])
        self._report([check])

    def _report(self, checks: list[Check]) -> None:
        if self._asks:
            self.context.report(checks=[check.to_json() for check in checks])

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
