"""The embedded broker: its queues, its clients, and `labconsole broker`."""
