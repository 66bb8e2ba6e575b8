"""The manifest of the AMQP plugin: SWIM's Tests 1-4 between brokers."""

from __future__ import annotations

from labconsole.model.plugin import Plugin

plugin = Plugin(
    name="amqp",
    title="AMQP 1.0 (SWIM)",
    description="What do TLS, message signing and body encryption cost between States' brokers?",
    trials={"amqp.messaging": "labconsole_amqp.trial.amqp_trial:AmqpTrial"},
    panels={"amqp.messaging": "labconsole_amqp.panel.messaging:make_panel"},
    commands={
        "broker": "labconsole_amqp.broker.arguments:BROKER",
        "test-connection": "labconsole_amqp.trial.connection_arguments:TEST_CONNECTION",
    },
    doctor_checks=("labconsole_amqp.doctor:checks",),
    profiles=("demo", "swim-within-malaysia", "swim-my-sg"),
    published=("swim-wp16",),
    table_shapes=("labconsole_amqp.source_tables:TABLES",),
)
