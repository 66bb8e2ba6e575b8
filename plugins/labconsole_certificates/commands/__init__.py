"""`labconsole pki ...`: everything about certificates on the terminal."""
