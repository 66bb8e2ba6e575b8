"""The figures of the AMQP trial, with the source's names and their exact definitions."""

from __future__ import annotations

from labconsole.trial import LINK_USE, Direction, MetricKind

_HIGHER, _LOWER, _NEUTRAL = Direction.HIGHER, Direction.LOWER, Direction.NEUTRAL

METRICS: tuple[MetricKind, ...] = (
    MetricKind(
        "connect_time",
        "Connection establishing",
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
        "Connection establishing, plus the time from the first message handed to the link until the last one is "
        "acknowledged (pre-settled: written). The source's sender duration includes connecting as well. Left out where "
        "a sender did not come to its end.",
    ),
    MetricKind(
        "send_rate",
        "Message sending rate",
        "msg/s",
        _HIGHER,
        "Messages sent, warm-up included, over the sender duration without connection establishing. Left out where a "
        "sender did not come to its end.",
    ),
    MetricKind("sent_size", "Sender message size", "B", _LOWER, "Bytes of the encoded AMQP message as sent; mean."),
    MetricKind(
        "receiver_link_time",
        "Receiver link establishing",
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
        "From the first to the last message received, after the warm-up.",
    ),
    MetricKind(
        "received_size", "Received message size", "B", _LOWER, "Bytes of the encoded AMQP message as received; mean."
    ),
    MetricKind(
        "throughput",
        "Message throughput",
        "msg/s",
        _HIGHER,
        "Messages received after the warm-up, refused ones too, over the receiver duration.",
    ),
    MetricKind(
        "latency_mean",
        "Mean latency",
        "ms",
        _LOWER,
        "From handing a message to the sender's link (open loop: from its intended send time) until it is read out of "
        "the receiver's link, before it is decrypted and verified; mean over all good messages after the warm-up.",
    ),
    MetricKind("latency_min", "Latency, smallest", "ms", _LOWER, "Smallest latency of any message that counts."),
    MetricKind("latency_p50", "Latency p50", "ms", _LOWER, "Half of the messages have this latency or less.", 0.5),
    MetricKind("latency_p90", "Latency p90", "ms", _LOWER, "90 % of the messages have this latency or less.", 0.9),
    MetricKind("latency_p99", "Latency p99", "ms", _LOWER, "99 % of the messages have this latency or less.", 0.99),
    MetricKind(
        "latency_p999", "Latency p99.9", "ms", _LOWER, "99.9 % of the messages have this latency or less.", 0.999
    ),
    MetricKind("latency_max", "Latency, largest", "ms", _LOWER, "Largest latency of any message that counts."),
    MetricKind(
        LINK_USE,
        "Link use",
        "%",
        _NEUTRAL,
        "Bits of the encoded AMQP messages received after the warm-up, per second of receiver duration, over the link "
        "rate that the operator states. Headers of frames, TLS and TCP/IP are not counted: a full link shows less than "
        "100 %.",
    ),
    MetricKind("sent", "Messages sent", "msg", _NEUTRAL, "Messages handed to the link, warm-up included."),
    MetricKind("received", "Messages received", "msg", _NEUTRAL, "Messages read out of the link, warm-up included."),
    MetricKind(
        "lost",
        "Lost",
        "msg",
        _LOWER,
        "Messages sent that never came; a console that only receives: messages expected that never came. Left out "
        "where a run was cancelled or failed, since then nobody knows.",
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
        "Messages that the receiver refused: malformed, signature missing or wrong, not decryptable, another payload.",
    ),
    MetricKind(
        "sign_time", "Signing", "us", _LOWER, "Wall time to sign one message, in the thread that does it; mean."
    ),
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
