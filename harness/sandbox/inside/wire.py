"""The type of what engine and keeper tell one another: marshalled text, numbers, lists and dicts."""

TYPE_CHECKING = False  # `typing` would cost every box start 10 ms
if TYPE_CHECKING:
    from typing import Any

    Record = dict[str, Any]
else:
    Record = dict
