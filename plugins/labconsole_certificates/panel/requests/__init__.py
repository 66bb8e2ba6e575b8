"""Certificate signing requests in the window: created, imported, decided, answered."""
