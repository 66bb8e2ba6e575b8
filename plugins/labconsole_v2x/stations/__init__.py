"""What stations need on the air: captures of packets in pcap and pcapng files."""
