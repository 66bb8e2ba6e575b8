"""What pages need is imported before they are opened, off the window's thread."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import sys, threading
from labconsole.model.plugin import Plugin, Plugins
from labconsole_ui.shell.startup import import_ahead
before = set(sys.modules)
broken = Plugin(name="x", title="X", description="", panels={"x": "no_such_module:Panel"})
importing = import_ahead(Plugins((broken, *Plugins.discover().found)))
assert importing is not threading.main_thread()
importing.join()
print(*sorted(set(sys.modules) - before))
"""


def test_the_pages_of_all_plugins_are_imported_in_a_thread() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    wanted = {
        "labconsole_certificates.panel.page",
        "labconsole_keypool.panel.service_panel",
        "labconsole_amqp.panel.messaging",
    }
    assert wanted <= set(done.stdout.split())
