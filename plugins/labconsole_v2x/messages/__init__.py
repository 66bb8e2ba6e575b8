"""Messages of ETSI ITS: CAM, DENM, BTP, GeoNetworking, and ITS time."""
