"""Certificate signing requests in the window: made, taken in, decided, handed back."""
