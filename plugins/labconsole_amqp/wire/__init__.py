"""Message formats: AMQP sections, the source's envelope, signing and encryption, payloads."""
