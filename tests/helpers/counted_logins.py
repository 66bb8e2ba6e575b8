"""A PKCS#11 module that passes every call to SoftHSM2, and counts C_Login: to see how often a PIN is really tried."""

from __future__ import annotations

import subprocess
from pathlib import Path

from labconsole.security.secrets import SecretSource
from labconsole.security.token import softhsm
from labconsole.security.token.configuration import TokenConfiguration

_SOURCE = r"""
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

typedef unsigned long (*login_call)(unsigned long, unsigned long, unsigned char *, unsigned long);
struct functions { unsigned char version[2]; void *calls[68]; };
static struct functions own;
static login_call real_login;

static unsigned long login(unsigned long session, unsigned long user, unsigned char *pin, unsigned long length) {
    FILE *file = fopen(LOG, "a");
    fputs("login\n", file);
    fclose(file);
    return real_login(session, user, pin, length);
}

unsigned long C_GetFunctionList(struct functions **list) {
    static struct functions *real;
    if (real == NULL) {
        void *module = dlopen(MODULE, RTLD_NOW);
        unsigned long (*get)(struct functions **) = dlsym(module, "C_GetFunctionList");
        unsigned long result = get(&real);
        if (result != 0) return result;
        memcpy(&own, real, sizeof own);
        real_login = (login_call)real->calls[18];
        own.calls[18] = (void *)login;
    }
    *list = &own;
    return 0;
}
"""


class CountedLogins:
    """The module, built in `folder`."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._log = folder / "logins"
        self.module = folder / "counting.so"
        (folder / "counting.c").write_text(_SOURCE)
        names = (f'-DMODULE="{softhsm.library()}"', f'-DLOG="{self._log}"')
        subprocess.run(["cc", "-shared", "-fPIC", *names, "-o", self.module, folder / "counting.c", "-ldl"], check=True)

    @property
    def count(self) -> int:
        """How often a PIN was tried by now."""
        return len(self._log.read_text().splitlines()) if self._log.exists() else 0

    def through(self, configuration: TokenConfiguration, pin_file: Path) -> TokenConfiguration:
        """The same token through this module, with its PIN in `pin_file`."""
        changes = {"module": self.module, "pin": SecretSource(passphrase_file=pin_file)}
        return configuration.model_copy(update=changes)
