"""PKI flows of ETSI TS 102 941: a station enrols at an EA, gets tickets from an AA, and the AA asks the EA first."""
