"""Descriptions without I/O: trials, roles, series and metrics, parameters, operations, plugins."""
