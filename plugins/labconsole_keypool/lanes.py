"""The keys in the token, in lanes: a session for each signing thread, so that no thread waits for another's.

A key is bound to the session that unwrapped it, and a session serves one thread at a time. Keys are therefore
unwrapped into the lanes in turn; a thread takes from its own lane, else from the fullest.
"""

from __future__ import annotations
