"""Real AMQP 1.0 brokers for trials on this computer: Artemis, Broker-J and RabbitMQ, for `installer/brokers.py`."""
