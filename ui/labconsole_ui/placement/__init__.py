"""Roles of a trial placed on hosts: the dialog by drag and drop, and the button that opens it."""
