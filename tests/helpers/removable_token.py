"""A PKCS#11 module between the console and SoftHSM2 whose token is removed when a file appears."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from labconsole.security.token.configuration import TokenConfiguration

# The places of C_GetTokenInfo, C_OpenSession, C_SignInit, C_Sign, C_GenerateKeyPair, C_WrapKey and C_UnwrapKey in
# CK_FUNCTION_LIST (PKCS#11 v2.40, section 3.6), from 0 on. All their arguments are words.
SOURCE = r"""
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
typedef unsigned long word;
typedef word (*function)(word, word, word, word, word, word, word, word);
static struct { unsigned char version[2]; function functions[68]; } own, *real;
static char removed[4096];
#define PLACE(n) \
    static word place_##n(word a, word b, word c, word d, word e, word f, word g, word h) { \
        return access(removed, F_OK) == 0 ? 0x32 : real->functions[n](a, b, c, d, e, f, g, h); }
PLACE(6) PLACE(12) PLACE(42) PLACE(43) PLACE(59) PLACE(60) PLACE(61)
#define TAKE(n) own.functions[n] = place_##n;
word C_GetFunctionList(void **list) {
    void *library = dlopen(getenv("REAL_MODULE"), RTLD_NOW);
    strncpy(removed, getenv("REMOVED_FILE"), sizeof removed - 1);
    word code = ((word (*)(void **)) dlsym(library, "C_GetFunctionList"))((void **) &real);
    memcpy(&own, real, sizeof own);
    TAKE(6) TAKE(12) TAKE(42) TAKE(43) TAKE(59) TAKE(60) TAKE(61)
    *list = &own;
    return code;
}
"""


def removable(configuration: TokenConfiguration, directory: Path, removed: Path) -> TokenConfiguration:
    """The same token through a module for which it is gone once the file `removed` is there."""
    if sys.platform != "linux" or shutil.which("cc") is None:
        pytest.skip("compiles a PKCS#11 module: needs Linux and a C compiler")
    source, library = directory / "removable.c", directory / "libremovable.so"
    source.write_text(SOURCE)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    variables = {
        **configuration.environment,
        "REAL_MODULE": str(configuration.module),
        "REMOVED_FILE": str(removed),
    }
    return configuration.model_copy(update={"module": library, "environment": variables})
