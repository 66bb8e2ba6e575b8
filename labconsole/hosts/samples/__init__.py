"""Samples on hosts: bringing, collecting, and summarising them."""
