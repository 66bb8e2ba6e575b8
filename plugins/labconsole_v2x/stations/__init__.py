"""ETSI ITS stations: when a CAM is due, sender, receiver, transports, channel, and capture files."""
