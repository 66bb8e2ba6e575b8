"""The trials of the plugin: what a run of each starts and stores, how it is evaluated, and which two compare."""
