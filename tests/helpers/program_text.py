"""`python -m` this CODE ARGUMENT...: as `python -c CODE ARGUMENT...`, for a program that may be forked."""

from __future__ import annotations

import sys

PROGRAM = (sys.executable, "-m", "tests.helpers.program_text")

if __name__ == "__main__":
    code, sys.argv[:] = sys.argv[1], ["-c", *sys.argv[2:]]
    exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})
