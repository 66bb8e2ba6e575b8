"""Lanes: every signing thread has a session of its own; another thread unwraps keys into all of them meanwhile."""

import threading
from collections import Counter, deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from pkcs11 import Session

from labconsole.security.token.configuration import TokenConfiguration
from labconsole.security.token.cryptoki.key_pairs import generate
from labconsole.security.token.cryptoki.mechanism_probes import mechanism_for
from labconsole.security.token.cryptoki.opening import Token
from labconsole.security.token.cryptoki.private_keys import PrivateKey, private_key
from labconsole.security.token.cryptoki.wrapping import Wrapper, make_wrapper
from labconsole.security.token.errors import TokenError
from labconsole.security.token.mechanisms import KeyKind

LANES = 4
KEYS = 200
WAIT_S = 30.0
ECDSA = ec.ECDSA(hashes.SHA256())


@pytest.fixture(scope="module")
def configuration(each_configuration: TokenConfiguration) -> TokenConfiguration:
    return each_configuration


@pytest.fixture
def wrapper(session: Session) -> Iterator[Wrapper]:
    """A wrapper key that every session of the token finds; gone after the test."""
    made = make_wrapper(session, "wrapper-0001", mechanism_for(session, KeyKind.P_256))
    yield made
    made.key.destroy()


class Lanes:
    """The keys ready to sign, in the lane whose session they belong to: a thread takes its own first."""

    def __init__(self, number: int) -> None:
        self._ready: list[deque[tuple[int, PrivateKey]]] = [deque() for _ in range(number)]
        self._left = threading.Semaphore(0)

    def put(self, lane: int, number: int, key: PrivateKey) -> None:
        self._ready[lane].append((number, key))
        self._left.release()

    def take(self, lane: int) -> tuple[int, PrivateKey]:
        assert self._left.acquire(timeout=WAIT_S)
        while True:
            try:
                return (self._ready[lane] or max(self._ready, key=len)).popleft()
            except IndexError:
                continue


def test_keys_unwrapped_into_lanes_sign_in_parallel_each_once(token: Token, session: Session, wrapper: Wrapper) -> None:
    pairs = [generate(session, KeyKind.P_256, extractable=True) for _ in range(KEYS)]
    wrapped = [wrapper.wrap(pair) for pair in pairs]
    wrappers = [wrapper.in_session(token.session()) for _ in range(LANES)]
    lanes = Lanes(LANES)

    def refill() -> None:
        for number, blob in enumerate(wrapped):
            lane = number % LANES
            key = private_key(wrappers[lane].unwrap(blob, KeyKind.P_256), pairs[number].public_key)
            lanes.put(lane, number, key)

    def sign(lane: int) -> list[tuple[int, bytes]]:
        signed = []
        for _ in range(KEYS // LANES):
            number, key = lanes.take(lane)
            signed.append((number, key.sign(str(number).encode(), ECDSA)))
            key.handle.destroy()
        return signed

    with ThreadPoolExecutor(LANES + 1) as threads:
        refilled = threads.submit(refill)
        signed = [each for signing in threads.map(sign, range(LANES), timeout=WAIT_S) for each in signing]
        refilled.result()
    assert Counter(number for number, _ in signed) == Counter(range(KEYS))
    for number, signature in signed:
        pairs[number].public_key.verify(signature, str(number).encode(), ECDSA)


def in_a_thread(key: PrivateKey) -> tuple[threading.Thread, threading.Event]:
    """A thread that signs with `key` and then sets the event."""
    signed = threading.Event()

    def sign() -> None:
        key.sign(b"to be signed", ECDSA)
        signed.set()

    thread = threading.Thread(target=sign)
    thread.start()
    return thread, signed


def test_a_lane_signs_while_another_is_busy(token: Token, session: Session, wrapper: Wrapper) -> None:
    pair = generate(session, KeyKind.P_256, extractable=True)
    own, other = (
        private_key(each.unwrap(wrapper.wrap(pair), KeyKind.P_256), pair.public_key)
        for each in (wrapper, wrapper.in_session(token.session()))
    )
    with closing(session.get_objects()) as search:
        next(search)
        waiting, waiting_signed = in_a_thread(own)
        thread, signed = in_a_thread(other)
        assert signed.wait(WAIT_S)
        assert not waiting_signed.wait(0.05)
    assert waiting_signed.wait(WAIT_S)
    waiting.join()
    thread.join()


def test_a_key_of_a_closed_session_says_so(token: Token, wrapper: Wrapper, session: Session) -> None:
    pair = generate(session, KeyKind.P_256, extractable=True)
    lane = token.session()
    key = private_key(wrapper.in_session(lane).unwrap(wrapper.wrap(pair), KeyKind.P_256), pair.public_key)
    key.sign(b"to be signed", ECDSA)
    lane.close()
    with pytest.raises(TokenError, match=r"^The token test cannot sign: it is gone"):
        key.sign(b"to be signed", ECDSA)
    private_key(pair.private_handle, pair.public_key).sign(b"to be signed", ECDSA)
