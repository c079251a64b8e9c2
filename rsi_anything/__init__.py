"""From a project to a reviewed task: interview, authoring, checks."""

__all__: list[str] = []
