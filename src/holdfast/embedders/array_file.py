"""Write arrays in numpy's file format, byte for byte the same with every version of numpy: the digest of the file is known."""

from __future__ import annotations

import struct

import numpy as np

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, BinaryIO

    from numpy.typing import NDArray

_HEADER_BYTES = 118  # with the 10 bytes before it 128, a multiple of 64 as the format asks for


def write_array(file: BinaryIO, values: NDArray[Any] | float) -> None:
    """Write an array or a number so that `np.load` reads it."""
    array = np.asarray(values)
    header = f"{{'descr': '{array.dtype.str}', 'fortran_order': False, 'shape': {array.shape!r}, }}"
    file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", _HEADER_BYTES) + f"{header:<{_HEADER_BYTES - 1}}\n".encode("latin-1"))
    file.write(np.ascontiguousarray(array).tobytes())
