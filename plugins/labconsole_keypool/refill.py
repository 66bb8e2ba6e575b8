"""Loads keys from the key store into the token beside the signing: claims a batch, unwraps them one by one."""

from __future__ import annotations
