"""Simulated runs in a real store, computed without processes, as commands and window read them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from labconsole.model.series import RESOURCES, Event, Level
from labconsole.processes import this_process
from labconsole.store.records import NewCampaign, NewScenario, RunStatus
from labconsole.store.run_store import EventRecord, SampleChunk, Store
from labconsole_v2x.simulation.packet_series import PACKETS
from labconsole_v2x.simulation.simulation_evaluation import evaluate
from labconsole_v2x.simulation.simulation_parameters import SimulationParameters
from labconsole_v2x.simulation.simulator_role import columns_of
from labconsole_v2x.simulation.testbed import simulate
from tests.labconsole_v2x.simulation.simulated_testbed import recorded

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def store_simulations(path: Path, repeats: int, scenarios: Mapping[str, Mapping[str, Any]]) -> list[int]:
    """A campaign of finished runs of `v2x.simulation`, repeats interleaved, of 10 s each."""
    wanted = [SimulationParameters.model_validate({"duration": 10.0, **values}) for values in scenarios.values()]
    order = tuple((index, repeat) for repeat in range(1, repeats + 1) for index in range(len(wanted)))
    named = zip(scenarios, wanted, strict=True)
    new = tuple(NewScenario(name, "v2x.simulation", one.model_dump(mode="json")) for name, one in named)
    with Store.open(path) as store:
        run_ids = store.add_campaign(NewCampaign("attacks", "Attacks", "", 1, new, order), this_process(), NOW)
        for run_id, (index, repeat) in zip(run_ids, order, strict=True):
            parameters = wanted[index]
            packets = simulate(parameters, parameters.stack_timing(), np.random.default_rng(repeat))
            store.run_started(run_id, this_process(), {"console": "0.1.0"}, [], NOW)
            columns = columns_of(packets)
            readings = {"t_ns": np.array([0, 250_000_000]), "cpu": np.array([50.0, 90.0]), "rss": np.full(2, 10**7)}
            chunks = [
                SampleChunk("simulator", PACKETS, 0, len(packets.size), columns),
                SampleChunk("simulator", RESOURCES, 0, 2, readings),
            ]
            t0 = Event(0, "worker", Level.INFO, "T0", "T0, of a virtual clock.", {"begin_ns": 0})
            store.append(run_id, chunks, [EventRecord("worker", 0, t0)])
            store.replace_evaluation(run_id, evaluate(parameters, recorded(columns)))
            store.run_ended(run_id, RunStatus.FINISHED, "", NOW)
    return run_ids
