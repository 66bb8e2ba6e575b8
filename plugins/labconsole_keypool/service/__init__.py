"""The live trial `keypool.signing-service`: its parameters, arrivals, processes and connections."""
