"""Certificate signing requests in the window: created, imported, decided, sent back."""
