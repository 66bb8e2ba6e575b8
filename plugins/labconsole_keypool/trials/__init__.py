"""The trials of the plugin: what a run starts and stores, how it is evaluated, and which runs can be compared."""
