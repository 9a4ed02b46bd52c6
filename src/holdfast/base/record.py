"""Immutable records without the import cost of `dataclasses`."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar, Self, dataclass_transform
else:

    def dataclass_transform(**_options):
        return lambda cls: cls


_SEQUENCES = (list, tuple)  # a union would be made for each of many values
_JSON_SCALARS = frozenset((str, int, bool, float, type(None)))


@dataclass_transform(frozen_default=True)
class Record:
    """Immutable record with named fields.

    Subclasses declare their fields as annotations; a class attribute is the default of the field with its name. The cold path
    uses this class because importing `dataclasses` takes 20 ms.
    """

    _fields: tuple[str, ...] = ()
    _computed: ClassVar[tuple[str, ...]] = ()  # properties that `as_dict` adds to the fields
    _names: frozenset[str] = frozenset()
    _defaults: dict[str, Any] = {}
    _missing: ClassVar[dict[int, tuple[Any, ...]]] = {0: ()}  # number of positional values -> defaults of the other fields

    def __init_subclass__(cls) -> None:
        own = tuple(name for name in cls.__dict__.get("__annotations__", ()) if not name.startswith("_"))
        cls._fields = cls._fields + own
        cls._names = frozenset(cls._fields)
        cls._defaults = cls._defaults | {name: cls.__dict__[name] for name in own if name in cls.__dict__}
        last = cls._fields[len(cls._fields) - len(cls._defaults) :]
        tail = tuple(cls._defaults.values()) if last == tuple(cls._defaults) else ()
        cls._missing = {len(cls._fields) - count: tail[len(tail) - count :] for count in range(len(tail) + 1)}

    def __init__(self, *values: Any, **named: Any) -> None:
        state, fields = self.__dict__, self._fields
        if not named and (missing := self._missing.get(len(values))) is not None:
            state.update(zip(fields, values + missing))  # noqa: B905
            return
        state.update(self._defaults)
        state.update(zip(fields, values, strict=False))
        state.update(named)
        if len(state) != len(fields) or len(values) > len(fields) or not named.keys() <= self._names:
            wrong = sorted(set(named) - self._names) or sorted(self._names - set(state)) or ["too many values"]
            raise TypeError(f"{type(self).__name__}: unknown or missing field: {', '.join(wrong)}")

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen; use .replace({name}=...)")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.__dict__ == self.__dict__

    def __hash__(self) -> int:
        return hash((type(self), *(self.__dict__[name] for name in self._fields)))

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={self.__dict__[name]!r}" for name in self._fields)
        return f"{type(self).__name__}({inside})"

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some fields changed."""
        if not changes.keys() <= self._names or len(self.__dict__) != len(self._fields):  # unknown fields, or cached properties
            return type(self)(**({name: self.__dict__[name] for name in self._fields} | changes))
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__, **changes)
        return new

    def as_dict(self) -> dict[str, Any]:
        """Return the record as dicts, lists and scalars, as `--json` prints it."""
        items = [(name, self.__dict__[name]) for name in self._fields]
        items += [(name, getattr(self, name)) for name in self._computed]
        return {name: value if type(value) in _JSON_SCALARS else _to_plain(value) for name, value in items}


def field_names(kind: type[Record]) -> tuple[str, ...]:
    """Return the names of a record's fields, in the order in which they are declared."""
    return kind._fields


def computed_names(kind: type[Record]) -> tuple[str, ...]:
    """Return the names of the properties that `as_dict` adds to the fields."""
    return kind._computed


def _to_plain(value: Any) -> Any:
    if isinstance(value, Record):
        return value.as_dict()
    if isinstance(value, _SEQUENCES):
        return [_to_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(name): _to_plain(item) for name, item in value.items()}
    return value
