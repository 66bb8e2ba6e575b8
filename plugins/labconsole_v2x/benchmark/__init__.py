"""The trial `v2x.benchmark`: how fast this computer signs and verifies, raw and whole packets, as in Table 3.2."""
