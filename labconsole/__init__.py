"""The headless core of the lab console: trials, engine, store and command line; never imports Qt."""

__version__ = "0.1.0"
