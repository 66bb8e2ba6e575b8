"""The manifest of the AMQP plugin: SWIM's Tests 1-4 between brokers."""

from __future__ import annotations

from labconsole.model.plugin import OperationEntry, Plugin

plugin = Plugin(
    name="amqp",
    title="AMQP 1.0 (SWIM)",
    description="What do TLS, message signing and body encryption cost between States' brokers?",
    trials={
        "amqp.messaging": "labconsole_amqp.trial.amqp_trial:AmqpTrial",
        "amqp.rotation-drill": "labconsole_amqp.drills.drill_trials:RotationDrill",
        "amqp.revocation-drill": "labconsole_amqp.drills.drill_trials:RevocationDrill",
    },
    panels={"amqp.messaging": "labconsole_amqp.panel.messaging:make_panel"},
    operations={
        "amqp.serve-broker": OperationEntry(
            "labconsole_amqp.broker.broker_operation:ServeBroker",
            "broker",
            "serve queues over AMQP 1.0 for other tools and consoles, until Ctrl+C",
        ),
        "amqp.test-connection": OperationEntry(
            "labconsole_amqp.trial.connection_check:CheckConnection",
            "test-connection",
            "test the connection to an external broker: TCP, TLS, SASL, queue",
        ),
        "amqp.merge": OperationEntry(
            "labconsole_amqp.merging.merge_operation:MergeRuns",
            "merge",
            "merge the runs of two consoles, sender and receiver of one trial, into one",
        ),
        "amqp.fit-link": OperationEntry(
            "labconsole_amqp.shaping.fit_operation:FitLink",
            "fit-link",
            "find the delay, TCP window or loss of a shaped link that gives a message rate",
        ),
        "amqp.shape-link": OperationEntry(
            "labconsole_amqp.shaping.shape_operation:ShapeLink",
            "shape-link",
            "shape a link in the Linux kernel by tc, or show the commands for it",
        ),
    },
    doctor_checks=("labconsole_amqp.doctor:checks",),
    profiles=(
        "demo",
        "swim-within-malaysia",
        "swim-my-sg",
        "swim-my-sg-shaped",
        "swim-envelopes",
        "protection-cost",
        "hsm-in-swim",
        "rotation-drill",
        "revocation-drill",
    ),
    published=("swim-wp16",),
    table_shapes=("labconsole_amqp.source_tables:TABLES",),
)
