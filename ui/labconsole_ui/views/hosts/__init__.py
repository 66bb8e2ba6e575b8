"""The hosts of this console: enrol them, bring them together, see what is there."""
