"""The live trial `keypool.signing-service`: its processes, what they say to each other, and who conducts them."""
