"""Detectors: each finds one kind of fact in a project's text, without importing or running any of it."""

__all__: list[str] = []
