"""The role that opens the token and does the step."""

from __future__ import annotations

from contextlib import ExitStack
from threading import Event
from typing import Any

import numpy as np

from labconsole.model.role import Role, RoleContext
from labconsole.security.token.configuration import TokenConfiguration
from labconsole.security.token.cryptoki.opening import open_token
from labconsole_keypool.device.emulation import Device
from labconsole_keypool.measuring.step_times_keys import StepKeys
from labconsole_keypool.measuring.step_times_parameters import Step, StepTimesParameters
from labconsole_keypool.measuring.step_times_samples import DONE_CHANNEL, MAIN, OPERATIONS, TIME_CHANNEL
from labconsole_keypool.measuring.step_times_work import StepWork
from labconsole_keypool.measuring.storage_media import open_medium, scratch_directory
from labconsole_keypool.measuring.timed_threads import Observations, run_threads

_KEEPING = (Step.WRAP_AND_SAVE, Step.SAVE, Step.LOAD, Step.LOAD_AND_UNWRAP)


class StepTimesRole(Role):
    """Settings: `parameters` and the token's `configuration` as JSON; the PIN under its request's key."""

    def __init__(self, context: RoleContext) -> None:
        super().__init__(context)
        self._parameters = StepTimesParameters.model_validate(context.settings["parameters"])
        self._observations = Observations()
        self._failed = Event()
        self._closing = ExitStack()

    def prepare(self) -> dict[str, Any]:
        """Open the token and make the keys that the step needs. Raises UserError: token or storage cannot."""
        parameters = self._parameters
        configuration = TokenConfiguration.model_validate(self.context.settings["configuration"])
        request = configuration.pin_request(parameters.token)
        secret = self.context.secret(request.key)
        token = self._closing.enter_context(open_token(parameters.token, configuration, secret))
        wrapping = parameters.step is not Step.GENERATE
        keys = StepKeys.of(token, parameters.key_kind, Device(), Observations(), wrapping=wrapping)
        medium = None
        if parameters.step in _KEEPING:
            medium = open_medium(
                parameters.storage,
                self._closing.enter_context(scratch_directory()),
                token.identity.serial,
                parameters.key_kind,
                keys.wrapper.mechanism,
            )
            self._closing.callback(medium.close)
        device = Device(parameters.device_times)
        device.threads = parameters.threads
        work = StepWork(parameters, token, keys, medium, device, self._observations, self._stopped)
        self._works = work.works()
        identity = f"{token.identity.manufacturer} {token.identity.model}"
        return {"identity": identity, "mechanism": keys.wrapper.mechanism.name if wrapping else ""}

    def run(self) -> dict[str, Any]:
        """Do the step, recording what its threads note."""
        self._writer = self.context.series(OPERATIONS)
        run_threads(self._works, self._record, self._failed)
        return {}

    def close(self) -> None:
        """Remove the storage, and close the token with all keys that were made."""
        self._closing.close()

    def _stopped(self) -> bool:
        return self.context.stop_requested or self._failed.is_set()

    def _record(self) -> None:
        rows = np.array(self._observations.take(), np.int64).reshape(-1, len(OPERATIONS.columns))
        self._writer.extend(**{column.name: rows[:, place] for place, column in enumerate(OPERATIONS.columns)})
        main = rows[rows[:, 0] == MAIN[self._parameters.step]]
        if len(main):
            self.context.count(DONE_CHANNEL.name, int(main[:, 2].sum()), (int(main[0, 3]), int(main[-1, 4])))
            self.context.observe(TIME_CHANNEL.name, main[:, 4] - main[:, 3])
        self.context.tick()
