"""The headless core of the lab console: trials, engine, store and command line; never imports Qt."""

import os

__version__ = "0.2.0"

# Before numpy is imported: else its BLAS starts a thread for each core in every process of a run; each spins before it
# sleeps, which disturbs measurements. Nothing here does linear algebra.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
