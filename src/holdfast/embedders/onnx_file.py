"""Read the arrays of an ONNX file and write a small ONNX model: the few protobuf messages that this takes.

The package `onnx` does the same and is larger than all of Holdfast's dependencies together. The numbers of the fields are those
of onnx.proto.
"""

from __future__ import annotations

import struct

import numpy as np

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, BinaryIO

    from numpy.typing import NDArray

    Array = NDArray[Any]
    Attribute = int | float

MICROSOFT = "com.microsoft"  # the domain of onnxruntime's own operators
_TYPES: dict[int, np.dtype[Any]] = {
    1: np.dtype("<f4"),
    2: np.dtype("u1"),
    3: np.dtype("i1"),
    6: np.dtype("<i4"),
    7: np.dtype("<i8"),
}
_NUMBERS: dict[np.dtype[Any], int] = {dtype: number for number, dtype in _TYPES.items()}
_VARINT, _FIXED_64, _BYTES, _FIXED_32 = 0, 1, 2, 5  # wire types


def read_arrays(file: bytes | memoryview) -> dict[str, Array]:
    """Return the constant arrays of a model by name; they share the memory of `file`."""
    arrays = {}
    for number, graph in _read_fields(memoryview(file)):
        if number == 7:
            for field, value in _read_fields(graph):
                if field == 5:
                    name, array = _read_array(value)
                    arrays[name] = array
    return arrays


def _read_array(message: memoryview) -> tuple[str, Array]:
    name, shape, dtype, data = "", list[int](), _TYPES[1], memoryview(b"")
    for field, value in _read_fields(message):
        if field == 1:
            shape += [value] if isinstance(value, int) else _read_varints(value)
        elif field == 2:
            dtype = _TYPES.get(value, dtype)
        elif field == 8:
            name = bytes(value).decode()
        elif field == 9:
            data = value
    count = int(np.prod(shape, dtype=np.int64))
    usable = len(data) == count * dtype.itemsize
    return name, np.frombuffer(data, dtype).reshape(shape) if usable else np.zeros(0, dtype)


def _read_fields(message: memoryview) -> Iterator[tuple[int, Any]]:
    """Yield the number and the value of each field of a message."""
    position = 0
    while position < len(message):
        key, position = _read_varint(message, position)
        number, wire = key >> 3, key & 7
        if wire == _VARINT:
            value, position = _read_varint(message, position)
            yield number, value
            continue
        if wire == _BYTES:
            size, position = _read_varint(message, position)
        else:
            size = 8 if wire == _FIXED_64 else 4
        yield number, message[position : position + size]
        position += size


def _read_varints(message: memoryview) -> list[int]:
    values, position = [], 0
    while position < len(message):
        value, position = _read_varint(message, position)
        values.append(value)
    return values


def _read_varint(message: memoryview, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7


class GraphWriter:
    """Collects the operators and constant arrays of a model."""

    def __init__(self) -> None:
        self._nodes: list[bytes] = []
        self._arrays: list[tuple[bytes, Array]] = []  # each with the fields before its data

    def constant(self, name: str, array: Array) -> str:
        """Add a constant array and return its name."""
        dims = b"".join([_field(1, _VARINT, size) for size in array.shape])
        fields = dims + _field(2, _VARINT, _NUMBERS[array.dtype]) + _text(8, name) + _field(9, _BYTES, array.nbytes)
        self._arrays.append((fields, np.ascontiguousarray(array)))
        return name

    def add(self, operator: str, inputs: list[str], output: str | list[str], domain: str = "", **attributes: Attribute) -> str:
        """Add an operator and return the name of its (first) output; an input "" is left out."""
        outputs = [output] if isinstance(output, str) else output
        parts = [_text(1, name) for name in inputs] + [_text(2, name) for name in outputs] + [_text(4, operator)]
        parts += [_message(5, _write_attribute(name, value)) for name, value in attributes.items()]
        self._nodes.append(b"".join([*parts, _text(7, domain)]))
        return outputs[0]

    def write(self, file: BinaryIO, inputs: list[str], output: str, shape: list[int | str], opset: int) -> None:
        """Write the ONNX file: integer inputs by text and token, and an output of numbers of this shape."""
        integers = [_message(11, _write_value(name, _NUMBERS[np.dtype("<i8")], ["texts", "tokens"])) for name in inputs]
        floats = _message(12, _write_value(output, _NUMBERS[np.dtype("<f4")], shape))
        rest = b"".join([*[_message(1, node) for node in self._nodes], _text(2, "holdfast"), *integers, floats])
        heads = [_field(5, _BYTES, len(fields) + array.nbytes) + fields for fields, array in self._arrays]
        opsets = [_text(1, "") + _field(2, _VARINT, opset), _text(1, MICROSOFT) + _field(2, _VARINT, 1)]
        file.write(_field(1, _VARINT, 8) + b"".join([_message(8, version) for version in opsets]))
        size = len(rest) + sum(map(len, heads)) + sum([array.nbytes for _, array in self._arrays])
        file.write(_field(7, _BYTES, size) + rest)
        for head, (_, array) in zip(heads, self._arrays, strict=True):
            file.write(head)
            file.write(array.data)


def _write_attribute(name: str, value: Attribute) -> bytes:
    if isinstance(value, float):
        return _text(1, name) + _field(20, _VARINT, 1) + _field(2, _FIXED_32, value)
    return _text(1, name) + _field(20, _VARINT, 2) + _field(3, _VARINT, value)


def _write_value(name: str, type: int, shape: list[int | str]) -> bytes:
    sizes = [_text(2, size) if isinstance(size, str) else _field(1, _VARINT, size) for size in shape]
    tensor = _field(1, _VARINT, type) + _message(2, b"".join([_message(1, size) for size in sizes]))
    return _text(1, name) + _message(2, _message(1, tensor))


def _text(number: int, text: str) -> bytes:
    return _message(number, text.encode())


def _message(number: int, data: bytes) -> bytes:
    return _field(number, _BYTES, len(data)) + data


def _field(number: int, wire: int, value: float) -> bytes:
    """Return the key of a field and its number; for bytes, their length."""
    key = _varint(number << 3 | wire)
    return key + (struct.pack("<f", value) if wire == _FIXED_32 else _varint(int(value)))


def _varint(value: int) -> bytes:
    """Return a varint; a negative number takes ten bytes, as in protobuf."""
    value &= (1 << 64) - 1
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*parts, value])
