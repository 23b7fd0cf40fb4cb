"""From the text of a prompt to its tokens, and to the chain of KV blocks that stands for them.

A block is named by the hash of its tokens and of the block before it, as engines name theirs, so equal names mean
equal prefixes. Names get consecutive ids, so that what is new of a prompt is one run. Hashes are Python's own, keyed
afresh in every process and kept out of every record.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from orchestrator.turn import EMPTY_CHAIN, KvChain, KvRun
from scenarios.errors import UserError

SCOPE = 0  # every session shares one naming scope: what counts is the text
MOST_BLOCKS = 4_000_000  # some 600 MB of names; then all are forgotten, and prompts are new again

Tokens = Sequence[str] | Sequence[int]


def tokenizer(path: str | None) -> Callable[[str], Tokens]:
    """Return what turns a text into tokens: words between white space, or those of a tokenizer.json.

    Raises
    ------
    UserError
        The file cannot be read as a tokenizer.
    """
    if path is None:
        return str.split
    if not Path(path).is_file():
        raise UserError(f"workload.tokenizer: {path}: no such file; name a tokenizer.json")
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise UserError('workload.tokenizer needs the package tokenizers: pip install "steadyflow[serve]"') from None
    try:
        loaded = Tokenizer.from_file(path)
    except Exception as error:  # the package raises bare Exceptions
        raise UserError(f"workload.tokenizer: {path}: {error}") from error

    def encode(text: str) -> Tokens:
        ids: list[int] = loaded.encode(text, add_special_tokens=False).ids
        return ids

    return encode


class PromptBlocks:
    """Names of the blocks of every prompt so far.

    Parameters
    ----------
    block_tokens : int
    """

    def __init__(self, block_tokens: int) -> None:
        self._size = block_tokens
        self._ids: dict[int, int] = {}
        self._next = 0

    def names(self, tokens: Tokens) -> list[int]:
        """Return the hash of each whole block; touches nothing, so it may run in a thread."""
        size, name, names = self._size, 0, []
        for start in range(0, len(tokens) - size + 1, size):
            name = hash((name, *tokens[start : start + size]))
            names.append(name)
        return names

    def chain(self, names: Sequence[int]) -> KvChain:
        """Return the chain of these blocks; those not met before get the next ids."""
        if not names:
            return EMPTY_CHAIN
        ids = self._ids
        if len(ids) > MOST_BLOCKS:
            ids.clear()
        runs: list[KvRun] = []
        first = blocks = -1
        for name in names:
            known = ids.get(name)
            if known is None:
                known = ids[name] = self._next
                self._next += 1
            if known == first + blocks:
                blocks += 1
                continue
            if blocks > 0:
                runs.append(KvRun(SCOPE, first, blocks))
            first, blocks = known, 1
        runs.append(KvRun(SCOPE, first, blocks))
        return KvChain(tuple(runs), self._size)
