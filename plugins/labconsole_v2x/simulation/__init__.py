"""The trial `v2x.simulation`: the testbed of PRESERVE on a virtual clock, with radio channel, queues and attackers."""
