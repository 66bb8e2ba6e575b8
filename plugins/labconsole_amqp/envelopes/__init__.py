"""The envelopes of messages: formats by name, their keys, what they sign, and the checks of received messages."""
