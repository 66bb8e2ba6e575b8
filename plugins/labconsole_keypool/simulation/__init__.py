"""The trial `keypool.simulation`: the signing service on a virtual clock."""
