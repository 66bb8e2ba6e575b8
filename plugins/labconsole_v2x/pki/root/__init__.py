"""The root CA of a lab: certificates of EAs and AAs, their requests for them, and what the root keeps of each."""
