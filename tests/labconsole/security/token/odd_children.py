"""A child of `module_process.ask` that behaves as the question says: as modules do that crash, hang or chatter."""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import Any

from labconsole.security.token.errors import TokenError
from labconsole.security.token.module_process import answer


def respond(question: dict[str, Any]) -> dict[str, Any]:
    match question["do"]:
        case "chatter":
            print("a vendor's greeting")
            os.write(1, b"a vendor's greeting, past Python\n")
        case "refuse":
            raise TokenError("The token says no: say yes.")
        case "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        case "stumble":
            raise ZeroDivisionError("a fault of our own")
        case "hang":
            time.sleep(60)
    return {"length": len(question["pin"])}


if __name__ == "__main__":
    sys.exit(answer(respond))
