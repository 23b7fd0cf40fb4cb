"""Random numbers by counter hash: every draw is a hash of (stream, key, k), so no policy can shift another's draws.

    uniform(stream, key, k) = finalise(stream ^ finalise(key + k * GOLDEN)) / 2^64, never 0 nor 1

`finalise` is the splitmix64 finaliser (Steele, Lea and Flood, "Fast splittable pseudorandom number generators",
OOPSLA 2014). Scalar and block forms agree to the bit; a test holds them together.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15
_M1, _M2 = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_TO_UNIT = 2.0**-53


def finalise(x: int) -> int:
    """Scramble 64 bits one to one."""
    x = ((x ^ (x >> 30)) * _M1) & MASK
    x = ((x ^ (x >> 27)) * _M2) & MASK
    return x ^ (x >> 31)


def mix(a: int, b: int) -> int:
    """Combine two 64-bit words into one; `mix(a, b) != mix(b, a)` in general."""
    return finalise((finalise((a + GOLDEN) & MASK) ^ b) & MASK)


def stream_key(root_seed: int, name: str) -> int:
    """Return the 64-bit key of a named stream: one `SeedSequence` per name."""
    words = np.random.SeedSequence([root_seed, *name.encode("utf-8")]).generate_state(1, np.uint64)
    return int(words[0])


def uniform(stream: int, key: int, k: int = 0) -> float:
    """Draw number k that belongs to `key` in `stream`: uniform on the open interval (0, 1)."""
    x = finalise(stream ^ finalise((key + k * GOLDEN) & MASK))
    return ((x >> 11) + 0.5) * _TO_UNIT


def _finalise_block(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    x = (x ^ (x >> np.uint64(30))) * np.uint64(_M1)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(_M2)
    return x ^ (x >> np.uint64(31))


def uniforms(stream: int, keys: NDArray[np.uint64], k: int = 0) -> NDArray[np.float64]:
    """Draw number k for each of many keys; equal to `uniform` for each of them.

    Parameters
    ----------
    stream : int
        A key from `stream_key`.
    keys : array of uint64, shape (n,)
    k : int
        Which of the key's draws.

    Returns
    -------
    array of float64, shape (n,), in (0, 1)
    """
    x = _finalise_block(_finalise_block(keys + np.uint64((k * GOLDEN) & MASK)) ^ np.uint64(stream))
    out: NDArray[np.float64] = ((x >> np.uint64(11)).astype(np.float64) + 0.5) * _TO_UNIT
    return out


def mix_block(a: int, b: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return `mix(a, x)` for each x of `b`, shape (n,)."""
    return _finalise_block(np.uint64(finalise((a + GOLDEN) & MASK)) ^ b)


def uniform_block(stream: int, first_key: int, count: int, k: int = 0) -> list[float]:
    """Draw number k for keys `first_key .. first_key + count - 1`, as a list (fast to read one by one)."""
    keys = np.arange(first_key, first_key + count, dtype=np.uint64)
    block: list[float] = uniforms(stream, keys, k).tolist()
    return block
