"""The trials `keypool.step-times` and `keypool.device-benchmark`: what a token takes for each operation."""
