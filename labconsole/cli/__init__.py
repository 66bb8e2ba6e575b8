"""The command line `labconsole`: the same engine without a window."""
