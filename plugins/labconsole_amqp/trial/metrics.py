"""The metrics of the AMQP trial, with the source's names and their exact definitions."""

from __future__ import annotations

from collections.abc import Iterator

from labconsole.model.trial import LINK_USE, OFFERED_RATE, Direction, Metric, MetricKind, Origin

_HIGHER, _LOWER, _NEUTRAL = Direction.HIGHER, Direction.LOWER, Direction.NEUTRAL


def _time_metrics(
    prefix: str, title: str, direction: Direction, about: str, *, at_rate: bool = False
) -> Iterator[MetricKind]:
    """Mean, percentiles and extremes of a time per message; `about` is the definition of the time."""
    mean = f"Mean {title[0].lower()}{title[1:]}"

    def kind(name: str, title: str, description: str, quantile: float | None = None) -> MetricKind:
        return MetricKind(f"{prefix}_{name}", title, "ms", direction, description, quantile, at_rate)

    yield kind("mean", mean, about)
    yield kind("min", f"{title}, smallest", "Smallest of any message that counts.")
    for name, quantile in (("50", 0.5), ("90", 0.9), ("99", 0.99), ("99.9", 0.999)):
        share = "Half" if quantile == 0.5 else f"{name} %"
        text = f"{share} of the messages have this time or less."
        yield kind(f"p{name.replace('.', '')}", f"{title} p{name}", text, quantile)
    yield kind("max", f"{title}, largest", "Largest of any message that counts.")


def _drift_metrics() -> Iterator[MetricKind]:
    """What a soak finds of changes over time."""

    def kind(name: str, what: str, unit: str, description: str, direction: Direction = _LOWER) -> MetricKind:
        return MetricKind(f"{name}_drift", f"Drift of {what}", unit, direction, description, at_rate=True)

    yield kind(
        "latency_p50",
        "latency p50",
        "ms/h",
        "Soak: change an hour, the median of the slopes between any two of 20 to 60 parts of the run (Theil-Sen), "
        "without the first tenth (3 minutes at least) and parts in which other processes kept the computer busy. "
        "Its 95 % interval is in the verdict. Not judged where less than 15 parts are left, or they have less than 5 s "
        "or 1,000 messages, where more than a third of all parts was busy, or a connection was lost.",
    )
    yield kind("latency_p99", "latency p99", "ms/h", "Soak: as the drift of latency p50, of p99 of each part.")
    yield kind(
        "throughput",
        "throughput",
        "msg/s/h",
        "Soak: as the drift of latency p50, of good messages received per second in each part.",
        _HIGHER,
    )
    yield kind(
        "queue_depth",
        "queue depth",
        "msg/h",
        "Soak: as the drift of latency p50, of the mean number of messages in the embedded broker's queue.",
    )
    of_processes = "one figure per process, and without a label that of the process with the largest."
    yield kind(
        "memory",
        "memory",
        "MB/h",
        f"Soak: as the drift of latency p50, of resident memory; {of_processes}",
    )
    yield kind(
        "cpu_per_message",
        "CPU per message",
        "us/h",
        f"Soak: as the drift of latency p50, of CPU time over the messages that arrived in the same time; "
        f"{of_processes}",
    )


def _key_metrics(step: str, title: str, task: str) -> Iterator[MetricKind]:
    """Mean and p99 of a step of signing with a key for one message."""
    about = f"Time of the token {task}, a part of the time to sign"
    yield MetricKind(f"key_{step}_time", title, "us", _LOWER, f"{about}; mean.")
    yield MetricKind(f"key_{step}_p99", f"{title} p99", "us", _LOWER, f"{about}; 99 % of the messages.", 0.99)


METRICS: tuple[MetricKind, ...] = (
    MetricKind(
        "connect_time",
        "Connection setup time",
        "ms",
        _LOWER,
        "Sender: from the start of connecting until TCP, TLS (Tests 2-4), SASL and AMQP open are done; mean over "
        "senders.",
    ),
    MetricKind(
        "send_duration",
        "Sender duration",
        "ms",
        _LOWER,
        "Connection setup time, plus the time from the first message handed to the link until the last one is "
        "acknowledged (pre-settled: written). The source's sender duration includes connecting as well. Left out where "
        "a sender did not come to its end, and with both phases.",
    ),
    MetricKind(
        "send_rate",
        "Message sending rate",
        "msg/s",
        _HIGHER,
        "Messages sent, warm-up included, over the sender duration without connection setup time. Left out where a "
        "sender did not come to its end. With both phases: of the messages sent at full speed.",
    ),
    MetricKind("sent_size", "Sender message size", "B", _LOWER, "Bytes of the encoded AMQP message as sent; mean."),
    MetricKind(
        "sent_size_p99",
        "Sender message size p99",
        "B",
        _LOWER,
        "99 % of the messages sent have this size or less; shown where sizes are drawn.",
    ),
    MetricKind(
        "receiver_link_time",
        "Receiver link setup time",
        "ms",
        _LOWER,
        "Receiver: from the start of connecting until the broker has answered the attach of the link; mean over "
        "receivers.",
    ),
    MetricKind(
        "receive_duration",
        "Receiver duration",
        "s",
        _LOWER,
        "From the first to the last message received, after the warm-up. Left out with both phases.",
    ),
    MetricKind(
        "received_size", "Received message size", "B", _LOWER, "Bytes of the encoded AMQP message as received; mean."
    ),
    MetricKind(
        "received_size_p99",
        "Received message size p99",
        "B",
        _LOWER,
        "99 % of the messages received have this size or less; shown where sizes are drawn.",
    ),
    MetricKind(
        "throughput",
        "Message throughput",
        "msg/s",
        _HIGHER,
        "Messages accepted after the warm-up less one, over the time from the first to the last of them (with both "
        "phases: of those sent at full speed). Not judged below 0.5 s, and in an open loop, which is not full speed. "
        "Runs recorded before definitions 2: all messages received, refused ones too, over the receiver duration.",
    ),
    MetricKind(
        OFFERED_RATE,
        "Offered rate",
        "msg/s",
        _NEUTRAL,
        "Messages due per second in the open loop, of all senders. Latencies are judged only at the same offered rate.",
    ),
    MetricKind(
        "highest_rate",
        "Highest rate under the limit",
        "msg/s",
        _HIGHER,
        "Rate sweep: the highest rate of all senders at which all messages came and p99 of their latency, from "
        "the time at which they were due, stayed under the limit, to within 10 %. The rate was tried twice at least, "
        "and kept the limit more often than not.",
    ),
    MetricKind(
        "p99_at_highest_rate",
        "Latency p99 at that rate",
        "ms",
        _NEUTRAL,
        "Of the last step at the highest rate that kept the limit.",
    ),
    MetricKind("sweep_steps", "Steps", "", _NEUTRAL, "Steps of the sweep, each at one rate."),
    *_time_metrics(
        "latency",
        "Latency",
        _LOWER,
        "Open loop: from the time at which a message was due, sealing included, until it is read out of the "
        "receiver's link, before it is decrypted and verified; of all good messages after the warm-up. A console "
        "that only receives: from the stamp in the message, by the wall clocks of both computers, corrected by the "
        "measured clock offset. Not judged where less than 98 % of the rate was achieved, a message was lost or "
        "refused, latency rose during the run, the sender was late, other processes kept the computer busy, the "
        "rate is over a quarter of full speed, or the clocks of two consoles were not compared before and after, or "
        "those of consoles and hosts with an uncertainty over 10 % of the median latency. A soak's percentiles are "
        "exact to within 0.1 %; that its latency rose is its drift, and does not leave it unjudged.",
        at_rate=True,
    ),
    *_drift_metrics(),
    *_time_metrics(
        "queue_time",
        "Time in queue at full speed",
        _NEUTRAL,
        "Closed loop: from handing a message to the sender's link until it is read out of the receiver's link, of all "
        "good messages after the warm-up. At full speed this is how long the queue is, which is neither good nor bad. "
        "The source's average latency is measured in this way.",
    ),
    MetricKind(
        "link_rate_to_broker",
        "Shaped rate to the broker",
        "Mbit/s",
        _NEUTRAL,
        "Of IP packets with full segments, measured over the built-in shaper by its calibration before the run.",
    ),
    MetricKind(
        "link_rate_from_broker",
        "Shaped rate from the broker",
        "Mbit/s",
        _NEUTRAL,
        "As the rate to the broker, in the other direction.",
    ),
    MetricKind(
        "link_round_trip",
        "Shaped round-trip time",
        "ms",
        _NEUTRAL,
        "Median of exchanges of one octet over the built-in shaper, by its calibration before the run.",
    ),
    MetricKind(
        LINK_USE,
        "Link use",
        "%",
        _NEUTRAL,
        "Bits of the encoded AMQP messages received after the warm-up less the first, refused ones too, per second of "
        "receiver duration (with both phases: at full speed), over the link rate: that of the built-in shaper (the "
        "lower one of the directions that messages take), or the one that the operator states. Headers of frames, TLS "
        "and TCP/IP are not counted: a full link shows less than 100 %. Runs recorded before definitions 3: the first "
        "message, too.",
    ),
    MetricKind("sent", "Messages sent", "msg", _NEUTRAL, "Messages handed to the link, warm-up included."),
    MetricKind("received", "Messages received", "msg", _NEUTRAL, "Messages read out of the link, warm-up included."),
    MetricKind(
        "lost",
        "Lost",
        "msg",
        _LOWER,
        "Messages sent that never came; a console that only receives: messages expected that never came. Left out "
        "where a run was cancelled or failed, since it is not known then.",
    ),
    MetricKind(
        "duplicated",
        "Duplicated",
        "msg",
        _LOWER,
        "Arrivals of a message beyond its first; without message ids, arrivals beyond the number of messages that were "
        "sent with that time stamp.",
    ),
    MetricKind("unknown", "Unknown", "msg", _LOWER, "Arrivals of a message that no sender of this run had sent."),
    MetricKind(
        "unrecorded",
        "Sending not recorded",
        "msg",
        _NEUTRAL,
        "Arrivals of messages of a sender that was killed before it had written their rows (every 250 ms).",
    ),
    MetricKind(
        "out_of_order",
        "Out of order",
        "msg",
        _LOWER,
        "Messages that came after a later one of the same sender to the same receiver; without message ids, seen only "
        "between messages with different time stamps (1 ms).",
    ),
    MetricKind(
        "failed_verifications",
        "Failed verifications",
        "msg",
        _LOWER,
        "Messages that the receiver refused: malformed, signature missing or wrong, not decryptable, another payload; "
        "with a hardened envelope also replayed, for another recipient or address, too old or from the future, of an "
        "unknown signer or one whose certificate is refused, by a key that has signed another message where each signs "
        "one. Repeats where a lost connection is restored count as "
        "duplicated, although they are refused.",
    ),
    MetricKind(
        "reconnects",
        "Reconnects",
        "",
        _LOWER,
        "How often senders and receivers lost their connection and restored it; shown where the parameters allow it.",
    ),
    MetricKind(
        "reconnect_time",
        "Time to reconnect",
        "ms",
        _LOWER,
        "From the loss of a connection, as its sender or receiver noticed it, until connected and attached again; the "
        "longest.",
    ),
    MetricKind(
        "clock_offset",
        "Clock offset",
        "ms",
        _NEUTRAL,
        "Wall clock of the receiver's console less that of the sender's, measured over the broker before the run by "
        "the exchange with the shortest round trip. Shown where each console plays one end.",
    ),
    MetricKind(
        "clock_uncertainty",
        "Clock offset, uncertainty",
        "us",
        _LOWER,
        "Half of the shortest round trip of the exchanges that gave the clock offset: the offset is within ± this; the "
        "larger one of before and after the run. With roles on hosts: the sum of the two largest of all hosts, each "
        "with its largest before, during and after the run; that of a single host is to the console's clock.",
    ),
    MetricKind("hosts", "Hosts", "", _NEUTRAL, "Hosts on which roles of the run were; not the console's own computer."),
    MetricKind(
        "sign_time",
        "Signing",
        "us",
        _LOWER,
        "Wall time to sign one message, in the thread that does it; mean. With a key of its own for each message: to "
        "load the key into the token, to sign and to destroy it.",
    ),
    MetricKind(
        "keys_generated",
        "Message keys generated ahead",
        "keys",
        _NEUTRAL,
        "Keys that the senders' tokens generated before T0, one for each message, and one for the example of one.",
    ),
    MetricKind(
        "key_generation_time",
        "Generating a message key",
        "ms",
        _LOWER,
        "Time of the token to generate one key pair and to wrap its private key, before T0; mean.",
    ),
    *_key_metrics("load", "Loading a message key", "to unwrap one key into the token"),
    *_key_metrics("sign", "Signing with a message key", "to sign one message with the key that was loaded"),
    *_key_metrics("destroy", "Destroying a message key", "to destroy one key in the token"),
    MetricKind("encrypt_time", "Encrypting", "us", _LOWER, "Wall time to encrypt one body and wrap its key; mean."),
    MetricKind("verify_time", "Verifying", "us", _LOWER, "Wall time to verify one signature; mean."),
    MetricKind("decrypt_time", "Decrypting", "us", _LOWER, "Wall time to unwrap one key and decrypt the body; mean."),
    MetricKind(
        "cpu_per_message",
        "CPU per message",
        "us",
        _LOWER,
        "CPU time of the role's process from T0 to its end, over the messages it handled; one figure per role.",
    ),
)

_KINDS = {kind.name: kind for kind in METRICS}


def metric(
    name: str, value: float, samples: int, not_judged: str = "", uncertainty: float = 0.0, /, **labels: str
) -> Metric:
    """A figure of this trial with the unit and direction of its kind; why it is `not_judged`, and its `uncertainty`."""
    kind = _KINDS[name]
    unit, direction = kind.unit, kind.direction
    return Metric(name, float(value), unit, direction, samples, labels, Origin.MEASURED, not_judged, uncertainty)
