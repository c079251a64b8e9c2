"""From a task to a judged run: the outer loop, the sandboxes, the judge and the record."""

__all__: list[str] = []
