"""`python -m` this: the command line of a console whose workers, operations and roles are threads of its process."""

from __future__ import annotations

import sys

from labconsole.cli.main import main
from tests.helpers.worker_threads import operations_in_threads, workers_in_threads

if __name__ == "__main__":
    with workers_in_threads(), operations_in_threads():
        sys.exit(main())
