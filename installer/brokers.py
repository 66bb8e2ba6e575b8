"""Run a real AMQP 1.0 broker: `python3 installer/brokers.py artemis|broker-j|rabbitmq [--dir D] start|stop|status`.

The work is done by the Python of the checkout's `.venv`, since certificates come from the console. This file alone
keeps to the syntax of Python 3.6, so that any Python can start it.
"""

import os
import subprocess
import sys
from pathlib import Path

ENVIRONMENT = Path(__file__).resolve().parent.parent / ".venv"


def main(arguments: "list[str]") -> int:
    """Carry out the command line in the checkout's environment; return the exit code."""
    if Path(sys.prefix).resolve() == ENVIRONMENT.resolve():
        from real_brokers.command import run

        return run(arguments)
    python = str(ENVIRONMENT / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))
    if not os.access(python, os.X_OK):
        sentence = "labconsole: the console is not set up: run `python3 installer/bootstrap.py run` once."
        print(sentence, file=sys.stderr)
        return 1
    command = [python, str(Path(__file__).resolve()), *arguments]
    if os.name != "nt":
        os.execv(python, command)
    return subprocess.call(command)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
