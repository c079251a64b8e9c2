"""Write what was measured into task.toml, and nothing else of it: comments, order and layout stay as they are."""

import os
import tempfile
from pathlib import Path

from harness.errors import InputError, RsiError
from harness.task.contract import Reference
from harness.task.load import CONTRACT, FILE, load_contract


def write_reference(folder: Path, reference: Reference) -> None:
    """Put the measured table into the folder's task.toml, at once or not at all.

    The file must hold a contract; the result is read again before it takes the old one's place.
    """
    path = folder / FILE
    try:
        content = path.read_bytes()
        text = content.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = f"{FILE} cannot be read: {error}"
        raise InputError(reason, where=str(path), next_step="check the file with `rsi check`") from error
    load_contract(text)
    new = with_reference(text, reference)
    if load_contract(new).reference != reference:
        raise RsiError("the measured numbers could not be written", where=str(path), next_step="report this as a bug")
    if new != text:
        _replace(path, new.encode("utf-8"))


def with_reference(text: str, reference: Reference) -> str:
    """Return the text of a task.toml with its `[metadata.rsi.reference]` replaced; text around it stays as it is."""
    # 40 ms of import that reading a task must not pay for.
    import tomlkit
    from tomlkit.items import AbstractTable

    document = tomlkit.parse(text)
    contract = document
    for key in CONTRACT:
        contract = contract[str(key)]
    values = reference.model_dump(exclude_none=True)
    old = contract.get("reference")
    if not isinstance(old, AbstractTable):
        table = tomlkit.table()
        table.update(values)
        table.add(tomlkit.nl())
        contract["reference"] = table
        return tomlkit.dumps(document)
    for key in list(old):
        if key not in values:
            del old[key]
    for key, value in values.items():
        if key not in old or old[key] != value:
            old[key] = value
    return tomlkit.dumps(document)


def _replace(path: Path, content: bytes) -> None:
    """Give a file new content at once; its permissions stay."""
    fd, name = tempfile.mkstemp(prefix=f".{FILE}.", dir=path.parent)
    fresh = Path(name)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(file.fileno(), path.stat().st_mode & 0o7777)
            os.fsync(file.fileno())
        fresh.replace(path)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        reason = f"{FILE} cannot be written: {error.strerror}"
        raise RsiError(reason, where=str(path), next_step="check the folder's permissions and space") from error
    parent = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(parent)
    finally:
        os.close(parent)
