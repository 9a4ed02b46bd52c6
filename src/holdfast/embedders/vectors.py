"""What every model does with rows of numbers: normalise, pool, and batch texts of like length."""

from __future__ import annotations

import numpy as np

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from holdfast.embedders import Vectors

    Ints = NDArray[np.int64]

TOKENS_A_BATCH = 512  # measured: larger batches are slower on one core
TEXTS_A_BATCH = 16


def normalised(rows: Vectors) -> Vectors:
    """Each row at length one; rows of zeros stay."""
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    lengths[lengths == 0] = 1
    return np.asarray(rows / lengths[:, None], dtype=np.float32)


def batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """The places of the texts, the short ones first, in batches of a bounded number of tokens."""
    batch: list[int] = []
    for place in sorted(range(len(lengths)), key=lambda place: (lengths[place], place)):
        if batch and (len(batch) == TEXTS_A_BATCH or lengths[place] * (len(batch) + 1) > TOKENS_A_BATCH):
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch


def padded(ids: Sequence[Sequence[int]]) -> tuple[Ints, Ints]:
    """The ids as one array, filled up with zeros, and the mask that tells which count."""
    width = max(map(len, ids))
    rows, mask = np.zeros((len(ids), width), np.int64), np.zeros((len(ids), width), np.int64)
    for row, one in enumerate(ids):
        rows[row, : len(one)] = one
        mask[row, : len(one)] = 1
    return rows, mask


def pooled(tokens: Vectors, mask: Ints) -> Vectors:
    """The mean of the tokens that count."""
    weight = mask[..., None].astype(np.float32)
    return np.asarray((tokens * weight).sum(axis=1) / weight.sum(axis=1), dtype=np.float32)


def in_batches(ids: list[list[int]], least: int, dim: int, run: Callable[[Ints, Ints], Vectors]) -> Vectors:
    """Run a model over token ids; texts with no more than `least` tokens have no content."""
    rows = np.zeros((len(ids), dim), np.float32)
    full = [place for place, one in enumerate(ids) if len(one) > least]
    for batch in batches([len(ids[place]) for place in full]):
        places = [full[place] for place in batch]
        rows[places] = run(*padded([ids[place] for place in places]))
    return normalised(rows)
