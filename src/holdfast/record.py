"""A frozen record of named fields: what dataclasses give, without the 20 ms their import costs a cold command."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self, dataclass_transform
else:

    def dataclass_transform(**_options):
        return lambda cls: cls


@dataclass_transform(frozen_default=True)
class Record:
    """Subclasses list their fields as annotations; a class attribute is the field's default."""

    _fields: tuple[str, ...] = ()
    _defaults: dict[str, Any] = {}

    def __init_subclass__(cls) -> None:
        own = tuple(name for name in cls.__dict__.get("__annotations__", ()) if not name.startswith("_"))
        cls._fields = cls._fields + own
        cls._defaults = cls._defaults | {name: cls.__dict__[name] for name in own if name in cls.__dict__}

    def __init__(self, *values: Any, **named: Any) -> None:
        fields = self._fields
        if len(values) > len(fields):
            raise TypeError(f"{type(self).__name__} takes {len(fields)} fields, {len(values)} given")
        state = self.__dict__
        state.update(self._defaults)
        state.update(zip(fields, values, strict=False))
        state.update(named)
        if len(state) != len(fields) or any(name not in state for name in fields):
            unknown = sorted(set(state) - set(fields)) or sorted(set(fields) - set(state))
            raise TypeError(f"{type(self).__name__}: unknown or missing field {', '.join(unknown)}")

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
        """The same record with some fields changed."""
        return type(self)(**(self.__dict__ | changes))

    def as_dict(self) -> dict[str, Any]:
        """Plain dicts, lists and scalars all the way down: what `--json` prints."""
        return {name: _plain(self.__dict__[name]) for name in self._fields}


def _plain(value: Any) -> Any:
    if isinstance(value, Record):
        return value.as_dict()
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    return value
