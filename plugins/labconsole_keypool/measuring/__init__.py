"""The trials `keypool.step-times` and `keypool.device-benchmark`: the time of each operation of a token."""
