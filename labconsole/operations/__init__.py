"""The operations of the console itself: those on tokens, which every plugin can use, and on hosts."""
