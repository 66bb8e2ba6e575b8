"""The manifest of the key pool plugin: the thesis' signing service, live and simulated."""

from __future__ import annotations

from labconsole.model.plugin import OperationEntry, Plugin

plugin = Plugin(
    name="keypool",
    title="HSM key pool",
    description="Can a slow HSM carry a peak load if keys are made ahead of time?",
    trials={
        "keypool.signing-service": "labconsole_keypool.trials.service_trial:ServiceTrial",
        "keypool.simulation": "labconsole_keypool.trials.simulation_trial:SimulationTrial",
        "keypool.step-times": "labconsole_keypool.trials.step_times_trial:StepTimesTrial",
        "keypool.device-benchmark": "labconsole_keypool.trials.device_benchmark_trial:DeviceBenchmarkTrial",
    },
    panels={
        "keypool.signing-service": "labconsole_keypool.panel.service_panel:make_panel",
        "keypool.simulation": "labconsole_keypool.panel.trial_panels:make_simulation_panel",
        "keypool.step-times": "labconsole_keypool.panel.trial_panels:make_measuring_panel",
        "keypool.device-benchmark": "labconsole_keypool.panel.trial_panels:make_measuring_panel",
    },
    operations={
        "keypool.fill": OperationEntry(
            "labconsole_keypool.device.pool_operations:FillPool", "hsm fill", "fill a key pool up to a number of keys"
        ),
        "keypool.purge": OperationEntry(
            "labconsole_keypool.device.pool_operations:PurgePool",
            "hsm purge",
            "make every key that waits in a key pool invalid",
        ),
        "keypool.export-shares": OperationEntry(
            "labconsole_keypool.shares.share_operations:ExportShares",
            "hsm export-shares",
            "export wrapper keys of a token, and split what loads them into shares",
        ),
        "keypool.load-shares": OperationEntry(
            "labconsole_keypool.shares.share_operations:LoadShares",
            "hsm load-shares",
            "load wrapper keys into a token with enough shares",
        ),
        "keypool.verify-store": OperationEntry(
            "labconsole_keypool.store.checking:VerifyStore",
            "hsm verify-store",
            "check that a key store is as it was written",
        ),
        "keypool.plan": OperationEntry(
            "labconsole_keypool.planning.plan_operation:PlanPeak",
            "hsm plan",
            "plan a key pool: base rate, queue, latency, pool size, number of HSMs, and a forecast",
        ),
        "keypool.timing": OperationEntry(
            "labconsole_keypool.measuring.timing_from_runs:CreateTimingProfile",
            "hsm timing",
            "create a timing profile of your own device from its runs of keypool.step-times",
        ),
    },
    profiles=(
        "keypool-live-demo",
        "keypool-published",
        "keypool-step-times",
        "keypool-device-benchmark",
        "keypool-recovery",
        "keypool-base-rate",
        "keypool-queue-limit",
        "keypool-key-source",
        "keypool-threads",
        "keypool-two-tokens",
        "keypool-table-4-1",
    ),
    published=("keypool-thesis", "keypool-thesis-steps", "keypool-thesis-devices"),
    table_shapes=(
        "labconsole_keypool.results.service_tables:TABLES",
        "labconsole_keypool.measuring.measuring_tables:STEP_TABLES",
        "labconsole_keypool.measuring.measuring_tables:DEVICE_TABLES",
    ),
)
