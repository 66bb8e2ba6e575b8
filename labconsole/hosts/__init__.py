"""Hosts of one owner as a Dask cluster over mutual TLS; nothing else of the console imports Dask."""
