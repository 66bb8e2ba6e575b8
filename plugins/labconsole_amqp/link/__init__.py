"""A client's end of AMQP 1.0: connection with TLS and SASL, sender and receiver links."""
