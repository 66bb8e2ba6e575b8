"""The shaper role: a shaped link between clients and broker, calibrated before the run."""

from __future__ import annotations

import time
from typing import Any

from labconsole.errors import UserError
from labconsole.model.role import Role, RoleContext
from labconsole.model.trial import Level
from labconsole_amqp.link.connection import Endpoint, open_tcp
from labconsole_amqp.preflight.checks import full_sentence
from labconsole_amqp.roles.link_role import await_connect_command
from labconsole_amqp.roles.role_settings import RoleSettings
from labconsole_amqp.series import LINK_CALIBRATED, LINK_FAULT, WORK_DONE
from labconsole_amqp.shaping.calibration import calibrate
from labconsole_amqp.shaping.shaper import Shaper


class ShaperRole(Role):
    """Relays until it is stopped."""

    def __init__(self, context: RoleContext) -> None:
        super().__init__(context)
        self._settings = RoleSettings.model_validate(context.settings)
        self._shaper: Shaper | None = None
        self._broker = ""

    def prepare(self) -> dict[str, Any]:
        """Calibrate, wait for the broker's address, and report the port on which clients reach it. Raises UserError."""
        parameters = self._settings.parameters
        link = parameters.shaped_link
        measured = calibrate(link, parameters.link_calibration, lambda: self.context.stop_requested)
        host, port, _ = await_connect_command(self.context)
        self._broker = f"{host}:{port}"
        self._check_reached(Endpoint(host, port))
        self._shaper = Shaper(link)
        own_port = self._shaper.listen()
        self._shaper.connect_to(host, port)
        self.context.event(
            LINK_CALIBRATED,
            f"Shaped link: {measured.rate_up / 1e6:.4g} Mbit/s to the broker, {measured.rate_down / 1e6:.4g} Mbit/s "
            f"from it, round trip {measured.rtt_ns / 1e6:.3g} ms, measured for {parameters.link_calibration:g} s.",
            rate_up=measured.rate_up,
            rate_down=measured.rate_down,
            rtt_ns=measured.rtt_ns,
        )
        return {"port": own_port}

    def run(self) -> dict[str, Any]:
        """Relay what clients and broker send."""
        assert self._shaper is not None
        before_ns = time.process_time_ns()
        self._shaper.serve(lambda: self.context.stop_requested, self._tick)
        octets = self._shaper.up.octets + self._shaper.down.octets
        self.context.event(
            WORK_DONE,
            f"{octets / 1e6:.3g} MB relayed, headers included.",
            cpu_ns=time.process_time_ns() - before_ns,
            messages=0,
        )
        return {}

    def _check_reached(self, broker: Endpoint) -> None:
        """Connect once, as each client would without a shaper. Raises UserError."""
        try:
            open_tcp(broker).close()
        except UserError as error:
            raise UserError(full_sentence(str(error), broker.name)) from error

    def _tick(self) -> None:
        assert self._shaper is not None
        while self._shaper.faults:
            reason = self._shaper.faults.pop()
            self.context.event(LINK_FAULT, f"{self._broker} was not reached: {reason}.", Level.WARNING)
        self.context.tick()

    def close(self) -> None:
        """Close all connections."""
        if self._shaper is not None:
            self._shaper.close()
