"""What the token layer costs: SoftHSM2 through it, against the OpenSSL that SoftHSM2 is linked with, in one process.

    python tests/benchmarks/token_layer.py [--blocks 12] [--keys 30] [--pairs 20]

Signing is measured in alternating blocks of RSA-2048 keys that have never signed before. Its two readings are both
printed: OpenSSL given a key that is built, and OpenSSL that has to build it first, as SoftHSM2 does at every signature.
Key generation is a matter of luck: the same random numbers are fed to both, so that they find the same modulus, and
CPU times are compared pair by pair. Figures of this machine at this moment, never a test.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable
from importlib.metadata import version
from pathlib import Path
from typing import TypeVar

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.serialization import load_der_public_key
from pkcs11 import Mechanism, Session

from labconsole.clock import now_ns
from labconsole.security.secrets import Secret
from labconsole.security.token.cryptoki.key_pairs import generate
from labconsole.security.token.cryptoki.opening import open_token
from labconsole.security.token.cryptoki.private_keys import TokenRSAPrivateKey
from labconsole.security.token.cryptoki.wrapping import make_wrapper
from labconsole.security.token.lab_token import make_softhsm_token
from labconsole.security.token.mechanisms import KeyKind, WrapMechanism
from tests.helpers.libcrypto import LibCrypto
from tests.helpers.raw_token import RawSigner

KIND, BITS = KeyKind.RSA_2048, 2048
MESSAGE = bytes(32)
PKCS1, SHA256 = padding.PKCS1v15(), hashes.SHA256()
QUANTILES = (0.0, 0.1, 0.25, 0.5)

LAYER = "token layer, fresh key"
BARE = "bare C_Sign, fresh key"
BUILT = "OpenSSL, fresh key"
BUILDING = "OpenSSL, key built as well"

Argument = TypeVar("Argument")
Result = TypeVar("Result")


def main() -> None:
    """Make a token in a temporary directory, and print machine, versions and both comparisons."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--blocks", type=int, default=12, help="blocks of signatures (%(default)s)")
    arguments.add_argument("--keys", type=int, default=30, help="keys in a block (%(default)s)")
    arguments.add_argument("--pairs", type=int, default=20, help="key pairs to generate (%(default)s)")
    asked = arguments.parse_args()
    pin, so_pin = Secret("benchmark-user"), Secret("benchmark-officer")
    with tempfile.TemporaryDirectory() as directory:
        configuration = make_softhsm_token(Path(directory) / "token", "benchmark", pin, so_pin)
        with open_token("benchmark", configuration, pin) as token:
            openssl = LibCrypto(configuration.module)
            print(f"{platform.platform()}, {os.cpu_count()} CPUs, Python {platform.python_version()}")
            print(
                f"{token.identity.manufacturer} {token.identity.library_version}, {openssl.version}, "
                f"python-pkcs11 {version('python-pkcs11')}, cryptography {version('cryptography')}"
            )
            print_load("before")
            compare_signing(token.session(), configuration.module, openssl, asked.blocks, asked.keys)
            print_load("between")
            compare_generation(token.session(), openssl, asked.pairs)
            print_load("after")


def print_load(when: str) -> None:
    """Print the load average of the last minute, where the system has one."""
    if hasattr(os, "getloadavg"):
        print(f"load average {when}: {os.getloadavg()[0]:.2f}")


def compare_signing(session: Session, module: Path, openssl: LibCrypto, blocks: int, keys: int) -> None:
    """Print microseconds per signature, and OpenSSL's time as a share of ours."""
    wrapper = make_wrapper(session, "wrapper-0001", WrapMechanism.KEY_WRAP_PAD)
    pair = generate(session, KIND, extractable=True)
    wrapped = wrapper.wrap(pair)
    der = rsa_der(openssl)
    bare = RawSigner(module, session.handle, Mechanism.SHA256_RSA_PKCS)
    times: dict[str, list[int]] = {LAYER: [], BARE: [], BUILT: [], BUILDING: []}

    def sign(key: TokenRSAPrivateKey) -> None:
        key.sign(MESSAGE, PKCS1, SHA256)

    def build_and_sign(encoded: bytes) -> ctypes.c_void_p:
        key = openssl.load(encoded)
        openssl.sign(key, MESSAGE)
        return key

    for _ in range(blocks):
        handles = [wrapper.unwrap(wrapped, KIND) for _ in range(2 * keys)]
        timed(sign, [TokenRSAPrivateKey(handle, pair.public_key) for handle in handles[:keys]], times[LAYER])
        timed(lambda key: bare.sign(key, MESSAGE), [handle.handle for handle in handles[keys:]], times[BARE])
        for handle in handles:
            handle.destroy()
        loaded = [openssl.load(der) for _ in range(keys)]
        timed(lambda key: openssl.sign(key, MESSAGE), loaded, times[BUILT])
        for key in loaded + timed(build_and_sign, [der] * keys, times[BUILDING]):
            openssl.free(key)

    print(row(f"\nsignature, {KIND}, {blocks} blocks of {keys}, us", ("min", "p10", "p25", "p50")))
    found = {name: [quantile(taken, share) / 1_000 for share in QUANTILES] for name, taken in times.items()}
    for name, figures in found.items():
        print(row(f"  {name}", [f"{figure:.0f}" for figure in figures]))
    for name, reach in ((BUILT, ", to reach 0.90"), (BUILDING, "")):
        ratios = [theirs / ours for theirs, ours in zip(found[name], found[LAYER], strict=True)]
        print(row(f"  {name} / ours{reach}", [f"{ratio:.3f}" for ratio in ratios]))


def compare_generation(session: Session, openssl: LibCrypto, pairs: int) -> None:
    """Print the CPU time of key pairs, ours and OpenSSL's of the same modulus, and how many there were."""
    ours, theirs = [], []
    with openssl.repeated_random() as stream:
        for seed in range(pairs):
            makers = [lambda: made_by_token(session), lambda: made_by_openssl(openssl)]
            found = {}
            for place in (0, 1) if seed % 2 else (1, 0):
                stream.begin(seed)
                found[place] = makers[place]()
            (our_time, our_modulus), (their_time, their_modulus) = found[0], found[1]
            if our_modulus == their_modulus:
                ours.append(our_time)
                theirs.append(their_time)
    print(f"\nkey generation, {KIND}: {len(ours)} of {pairs} pairs have the same modulus and are compared")
    if ours:
        ratios = [openssl_time / own for openssl_time, own in zip(theirs, ours, strict=True)]
        means = [f"{statistics.mean(taken) / 1e6:.1f}" for taken in (ours, theirs)]
        spread = [f"{ratio:.3f}" for ratio in (min(ratios), statistics.median(ratios), max(ratios))]
        print(row("  CPU time of a key, ms", ("ours", means[0], "OpenSSL", means[1])))
        print(row("  OpenSSL / ours, by pair", ("min", spread[0], "p50", spread[1], "max", spread[2])))
        print(row("  OpenSSL / ours of all, to reach 0.95", ("", f"{sum(theirs) / sum(ours):.3f}")))


def made_by_token(session: Session) -> tuple[int, int]:
    """CPU time in ns and modulus of a key pair that the token layer makes."""
    began = time.process_time_ns()
    pair = generate(session, KIND, extractable=True)
    taken = time.process_time_ns() - began
    pair.destroy()
    assert isinstance(pair.public_key, rsa.RSAPublicKey)
    return taken, pair.public_key.public_numbers().n


def made_by_openssl(openssl: LibCrypto) -> tuple[int, int]:
    """CPU time in ns and modulus of a key pair that OpenSSL makes."""
    began = time.process_time_ns()
    key = openssl.generate(BITS)
    taken = time.process_time_ns() - began
    public_key = load_der_public_key(openssl.public_der(key))
    openssl.free(key)
    assert isinstance(public_key, rsa.RSAPublicKey)
    return taken, public_key.public_numbers().n


def rsa_der(openssl: LibCrypto) -> bytes:
    """A private key of OpenSSL's, encoded."""
    key = openssl.generate(BITS)
    encoded = openssl.private_der(key)
    openssl.free(key)
    return encoded


def timed(call: Callable[[Argument], Result], arguments: Iterable[Argument], times: list[int]) -> list[Result]:
    """The results of `call` for each argument; its times in ns go to `times`."""
    results = []
    for argument in arguments:
        began = now_ns()
        results.append(call(argument))
        times.append(now_ns() - began)
    return results


def quantile(times: list[int], share: float) -> int:
    """The time that `share` of all are below."""
    return sorted(times)[int(len(times) * share)]


def row(name: str, cells: Iterable[str]) -> str:
    """A line of the table."""
    return name.ljust(56) + "".join(cell.rjust(9) for cell in cells)


if __name__ == "__main__":
    main()
