"""Operations on vectors that all models share: normalise, pool, and batch texts of similar length."""

from __future__ import annotations

import numpy as np

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from holdfast.embedders import Vectors

    Ints = NDArray[np.int64]

_BATCH_TOKENS = 512  # measured: larger batches are slower on one core
_BATCH_TEXTS = 16


def normalise(rows: Vectors) -> Vectors:
    """Return the rows with length one; rows of zeros stay."""
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    lengths[lengths == 0] = 1
    return np.asarray(rows / lengths[:, None], dtype=np.float32)


def _split_batches(lengths: Sequence[int], max_texts: int) -> Iterator[list[int]]:
    """Yield the positions of the texts, shortest first, in batches of a limited number of tokens and texts."""
    batch: list[int] = []
    for position in sorted(range(len(lengths)), key=lambda position: (lengths[position], position)):
        if batch and (len(batch) == max_texts or lengths[position] * (len(batch) + 1) > _BATCH_TOKENS):
            yield batch
            batch = []
        batch.append(position)
    if batch:
        yield batch


def _pad(ids: Sequence[Sequence[int]]) -> tuple[Ints, Ints]:
    """Return the ids as one array padded with zeros, and the mask of the real ones."""
    width = max(map(len, ids))
    rows, mask = np.zeros((len(ids), width), np.int64), np.zeros((len(ids), width), np.int64)
    for row, sequence in enumerate(ids):
        rows[row, : len(sequence)] = sequence
        mask[row, : len(sequence)] = 1
    return rows, mask


def mean_pool(tokens: Vectors, mask: Ints) -> Vectors:
    """Return the mean of the real tokens."""
    weight = mask[..., None].astype(np.float32)
    return np.asarray((tokens * weight).sum(axis=1) / weight.sum(axis=1), dtype=np.float32)


def run_in_batches(
    ids: list[list[int]], empty_length: int, dim: int, run: Callable[[Ints, Ints], Vectors], max_texts: int = _BATCH_TEXTS
) -> Vectors:
    """Run a model on token ids; texts with at most `empty_length` tokens get a row of zeros."""
    rows = np.zeros((len(ids), dim), np.float32)
    full = [position for position, sequence in enumerate(ids) if len(sequence) > empty_length]
    for batch in _split_batches([len(ids[position]) for position in full], max_texts):
        positions = [full[position] for position in batch]
        rows[positions] = run(*_pad([ids[position] for position in positions]))
    return normalise(rows)
