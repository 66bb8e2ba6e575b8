"""Set the console up and start it, test it, or build kryoptic: `python3 installer/bootstrap.py run|test|kryoptic`.

Needs Python 3.11 or newer and nothing else. What is missing on the system is installed (Debian, Ubuntu) or named
(macOS, Windows), `.venv` is made with the locked dependencies, and the console starts. All that happens once. This file
alone keeps to the syntax of Python 3.6, so that an older Python is refused with a sentence.
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

OLDEST_PYTHON = (3, 11)
ROOT = Path(__file__).resolve().parent.parent
IN_PARALLEL = ["--numprocesses=auto", "--dist=worksteal"]
"""How many test processes these are, and the order of tests: `tests/helpers/suite_schedule.py`."""
CHOSEN_VARIABLE = "LABCONSOLE_PYTHON_CHOSEN"
"""Environment variable of a Python that was chosen for its speed: it chooses none again."""
USAGE = """%(prog)s run  [-- ARGUMENTS]   open the window, or hand ARGUMENTS to labconsole;
                                                without a display: run the demo campaign in the terminal
       %(prog)s test [-- ARGUMENTS]   run the whole test suite, ARGUMENTS go to pytest
       %(prog)s kryoptic              build kryoptic, a PKCS#11 token in software"""


def main(arguments: "list[str]") -> int:
    """Carry out the command line; return an exit code where the application does not take over the process."""
    if sys.version_info < OLDEST_PYTHON:
        print("labconsole: " + python_refusal(sys.version.split()[0], newer_python()), file=sys.stderr)
        return 1
    own, handed_on = split_arguments(arguments)
    parser = argparse.ArgumentParser(prog="bootstrap.py", usage=USAGE)
    parser.add_argument("command", choices=["run", "test", "kryoptic"])
    command = parser.parse_args(own).command
    if not set_up(command):
        return 1
    if command == "kryoptic":
        return 0
    if command == "test":
        os.environ["QT_QPA_PLATFORM"] = "offscreen"
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # each of hundreds of processes would compile all again
        os.chdir(str(ROOT))
        return hand_over([installed("python"), "-m", "pytest", *IN_PARALLEL, *handed_on])
    return hand_over([installed("labconsole"), *(handed_on or start_arguments(has_display()))])


def set_up(command: str) -> bool:
    """Install and make what is not there yet; say what prevents it and return False when it cannot be done."""
    sys.path.append(str(ROOT))  # what the installer shares with the console, which is not installed yet
    import system_packages
    from environment import Environment, Step
    from processes import SetupError, say

    environment = Environment(ROOT)
    try:
        step = environment.step()
        if step is Step.MAKE and os.name != "nt":
            start_with_fastest_python()
        building = step is not Step.NOTHING
        system_packages.ensure(system_packages.needs(command, building))
        if building:
            environment.ensure()
        if command == "kryoptic":
            import kryoptic_build

            say(kryoptic_build.next_steps(kryoptic_build.build(ROOT, environment.python)))
    except SetupError as error:
        say(str(error))
        return False
    except OSError as error:
        say(f"the set-up cannot continue: {error}")
        return False
    except KeyboardInterrupt:
        say("interrupted: start again to continue.")
        return False
    return True


def start_with_fastest_python() -> None:
    """Start again with another build of this Python where that is faster; return where none is."""
    import fastest_python
    from processes import say

    if os.environ.pop(CHOSEN_VARIABLE, None):
        return
    python, ratio = fastest_python.fastest_python(sys.executable, fastest_python.search_folders())
    if python != sys.executable:
        os.environ[CHOSEN_VARIABLE] = "1"
        say(f"using {python}, which is {ratio:.1f} times as fast as {sys.executable}")
        hand_over([python, *sys.argv])


def split_arguments(arguments: "list[str]") -> "tuple[list[str], list[str]]":
    """Return what is meant for this script, and what follows the first `--`."""
    if "--" not in arguments:
        return arguments, []
    at = arguments.index("--")
    return arguments[:at], arguments[at + 1 :]


def has_display() -> bool:
    """Say whether a window can be opened here."""
    return sys.platform != "linux" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def start_arguments(display: bool) -> "list[str]":
    """Return the arguments of labconsole when the user gave none."""
    return ["gui"] if display else ["run", "demo", "--csv"]


def python_refusal(version: str, newer: "str | None") -> str:
    """Return the sentence for a Python that is too old."""
    needed = ".".join(map(str, OLDEST_PYTHON))
    advice = f"start again with {newer}" if newer else "install one and start again with it"
    return f"Python {needed} or newer is needed, and this is {version}: {advice}."


def newer_python() -> "str | None":
    """Return the command of a Python on the search path that is new enough."""
    names = [f"python{OLDEST_PYTHON[0]}.{minor}" for minor in range(OLDEST_PYTHON[1], OLDEST_PYTHON[1] + 4)]
    return next((name for name in names if shutil.which(name)), None)


def installed(name: str) -> str:
    """Return the path of a program of the virtual environment."""
    return str(ROOT / ".venv" / (f"Scripts/{name}.exe" if os.name == "nt" else f"bin/{name}"))


def hand_over(command: "list[str]") -> int:
    """Become `command`: its exit code and its signals are this process's; Windows has no such call, and waits."""
    sys.stdout.flush()
    sys.stderr.flush()
    if os.name != "nt":
        os.execv(command[0], command)
    return subprocess.call(command)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
