"""What a test costs beyond another: which two scenarios make a fair pair, and how a sentence names it."""

from __future__ import annotations

from labconsole.analysis.parameter_texts import in_effect
from labconsole.model.trial import Question
from labconsole_amqp.choices import Loop
from labconsole_amqp.parameters import AmqpParameters

_ADDED = {2: "TLS", 3: "signing", 4: "encryption"}
_LABELS = {
    (1, 2): "TLS against plain",
    (1, 3): "TLS and signing against plain",
    (1, 4): "TLS, signing and encryption against plain",
    (2, 3): "Signing against TLS",
    (2, 4): "Signing and encryption against TLS",
    (3, 4): "Encryption against signing",
}

_MAY_DIFFER = frozenset({"test", "count", "port"})


def contrast_label(reference: AmqpParameters, other: AmqpParameters) -> str:
    """ "TLS against plain" and the like where `other` does more to each message than `reference` and all else is equal;
    nothing where the two are no fair pair.

    The number of messages may differ: slow tests are given fewer, throughput is per second and latency per message.
    (In a closed loop latency grows until the queue or the credit window is full: a run of fewer messages may show less
    of it.) So may the port, since a broker has another one for TLS, and what has an effect in one of the tests only.
    """
    said = _LABELS.get((reference.test, other.test), "")
    one, two = reference.model_dump(mode="json"), other.model_dump(mode="json")
    unlike = (
        name
        for name in one.keys() - _MAY_DIFFER
        if one[name] != two[name] and all(in_effect(name, values, AmqpParameters) for values in (one, two))
    )
    return "" if any(unlike) else said


def questions(reference: AmqpParameters, other: AmqpParameters) -> tuple[Question, ...]:
    """What the steps from `reference` to `other` cost: in throughput at full speed, in latency at an equal rate."""
    if not contrast_label(reference, other):
        return ()
    *first, last = (_ADDED[test] for test in range(reference.test + 1, other.test + 1))
    added = f"{', '.join(first)} and {last}" if first else last
    throughput = Question(
        f"What does {added} cost in throughput?",
        "throughput",
        added[0].upper() + added[1:],
        left_of="messages a second",
    )
    latency = Question(f"What does {added} cost in latency?", "latency_mean", f"With {added}")
    asked = {Loop.CLOSED: (throughput,), Loop.OPEN: (latency,), Loop.BOTH: (throughput, latency)}
    return asked[other.loop]
