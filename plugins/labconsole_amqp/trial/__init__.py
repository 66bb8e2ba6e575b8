"""The trial in the worker: identities, phases, evaluation, and the test of a connection."""
