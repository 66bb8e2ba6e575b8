"""The facts of a scenario that are shown before it is run: the rates of the device, its keys, its load."""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtCore import QCoreApplication

from labconsole.analysis.number_format import NO_FIGURE, format_duration, format_number
from labconsole.errors import UserError
from labconsole_keypool.choices import ArrivalPattern, KeySource
from labconsole_keypool.planning.formulas import base_rate, rate_without_keys
from labconsole_keypool.service.arrivals import arrivals_ns
from labconsole_keypool.service.keypool_parameters import KeypoolParameters
from labconsole_keypool.service.service_parameters import ServiceParameters
from labconsole_keypool.simulation.simulation_parameters import SimulationParameters
from labconsole_ui.panels.trial_panel import Fact

_MOST_COUNTED = 100_000
"""Up to this number of requests, arrivals are computed while the operator types: a few ms."""

_translate = QCoreApplication.translate


def service_facts(parameters: ServiceParameters) -> list[Fact]:
    """Keys that the run has at T0, its load, and what takes part."""
    return [*_keys(parameters), *arrival_facts(parameters), *_processes(parameters)]


def simulation_facts(parameters: SimulationParameters) -> list[Fact]:
    """The device's rates with and without keys, its keys, and the time of the last request."""
    return [*_device(parameters), *arrival_facts(parameters)]


def arrival_facts(parameters: KeypoolParameters) -> Iterator[Fact]:
    """Number of requests and their duration, where they can be computed at once."""
    pattern, requests = parameters.arrivals, parameters.requests + parameters.tail_requests
    if pattern is ArrivalPattern.CSV or requests > _MOST_COUNTED:
        return
    name = _translate("KeypoolPanel", "Arrivals")
    try:
        times = arrivals_ns(
            pattern,
            requests=parameters.requests,
            rate=parameters.rate,
            seed=1,
            time_scale=parameters.time_scale,
            tail_requests=parameters.tail_requests,
            tail_rate=parameters.tail_rate,
        )
    except UserError as error:
        yield Fact(name, NO_FIGURE, str(error))
        return
    yield Fact(
        name,
        _translate("KeypoolPanel", "{requests} in {duration}").format(
            requests=f"{len(times):,}", duration=format_duration(float(times[-1]) / 1e9)
        ),
        _translate("KeypoolPanel", "From the first request to the last, in the device's time"),
    )


def _keys(parameters: ServiceParameters) -> Iterator[Fact]:
    if parameters.keys is KeySource.POOL:
        ram = parameters.keys_at_start + parameters.store_keys
        yield Fact(
            _translate("KeypoolPanel", "Keys at the start"),
            _translate("KeypoolPanel", "{ram} + {pool}").format(ram=f"{ram:,}", pool=f"{parameters.pool_at_start:,}"),
            _translate("KeypoolPanel", "In the token + wrapped in the key store; missing ones are made before T0"),
        )


def _processes(parameters: ServiceParameters) -> Iterator[Fact]:
    generators = parameters.generators if parameters.keys is KeySource.POOL else 0
    yield Fact(
        _translate("KeypoolPanel", "Processes"),
        f"{1 + parameters.signers + generators}",
        _translate("KeypoolPanel", "The service, its signers, and the generators of keys"),
    )


def _device(parameters: SimulationParameters) -> Iterator[Fact]:
    model = parameters.service_model()
    yield Fact(
        _translate("KeypoolPanel", "Signing"),
        _rate(base_rate(model.sign_ms, parameters.threads).value),
        _translate("KeypoolPanel", "Requests that the device signs when it has keys: threads / Si, the base rate (BR)"),
    )
    yield Fact(
        _translate("KeypoolPanel", "Without keys"),
        _rate(rate_without_keys(model.sign_ms, model.key_generation_ms, parameters.threads, model.generators).value),
        _translate(
            "KeypoolPanel",
            "Requests that it signs when it generates a key pair for each: threads / (KG + Si), at most 1 / KG",
        ),
    )
    if parameters.keys is KeySource.POOL:
        yield Fact(
            _translate("KeypoolPanel", "Keys at the start"),
            format_number(model.keys_at_start + model.store_keys + model.pool_keys),
            _translate("KeypoolPanel", "In the token's RAM and store, and wrapped in the pool outside"),
        )
        yield Fact(
            _translate("KeypoolPanel", "Unwrapping a batch"),
            format_duration(parameters.batch * model.unwrap_ms / 1000),
            _translate("KeypoolPanel", "Time to load a batch of keys from the pool into the token"),
        )


def _rate(per_second: float) -> str:
    return f"{format_number(round(per_second, 2))}/s"
