"""The AMQP 1.0 trial between States (SWIM): Tests 1-4 of the source, WP/16."""
