"""Configuration files: ``configs/NAME.toml`` configures an experiment; its table ``[quick]`` is for quick runs."""

import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar, get_args, get_type_hints

T = TypeVar("T")

FOLDER = Path(__file__).parent / "configs"


def read(name: str, kind: type[T], quick: bool) -> T:
    """Read the configuration of an experiment into the dataclass ``kind``, whose fields are the keys of the file.

    Lists become tuples. A table becomes a dataclass if the field is one, and so does each of a list of tables
    (``tuple[Kind, ...]``); other tables stay dictionaries. With ``quick``, a key of the table [quick] replaces the same
    key outside of it.

    Raise ValueError, with the name of the file, if a key is unknown or missing, including in [quick].
    """
    return read_file(FOLDER / f"{name}.toml", kind, quick, f"configs/{name}.toml")


def read_file(path: Path, kind: type[T], quick: bool, where: str = "") -> T:
    """Read a configuration file, which errors call ``where``, or by its path."""
    where = where or str(path)
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{where}: {error}") from error
    smaller = table.pop("quick", {})
    _check_known(kind, smaller, f"{where}, [quick]")
    made: T = _made(kind, {**table, **smaller} if quick else table, where)
    return made


def _made(kind: Any, table: Mapping[str, Any], where: str) -> Any:
    """Create a dataclass from a table."""
    _check_known(kind, table, where)
    missing = [one.name for one in fields(kind) if one.name not in table and _is_needed(one)]
    if missing:
        raise ValueError(f"{where}: missing {', '.join(missing)}")
    hints = get_type_hints(kind)
    return kind(**{key: _value(hints[key], value, f"{where}, {key}") for key, value in table.items()})


def _value(hint: Any, value: Any, where: str) -> Any:
    if isinstance(value, list):
        inner = next(iter(get_args(hint)), None)
        return tuple(_value(inner, one, where) for one in value)
    if isinstance(value, dict):
        if isinstance(hint, type) and is_dataclass(hint):
            return _made(hint, value, where)
        inner = next(reversed(get_args(hint)), None)
        return {key: _value(inner, one, f"{where}.{key}") for key, one in value.items()}
    return value


def _is_needed(one: Field[Any]) -> bool:
    return one.default is MISSING and one.default_factory is MISSING


def _check_known(kind: Any, table: Mapping[str, Any], where: str) -> None:
    known = [one.name for one in fields(kind)]
    unknown = [key for key in table if key not in known]
    if unknown:
        raise ValueError(f"{where}: unknown {', '.join(unknown)}; there are {', '.join(known)}")
