"""Reads a project: a checkout at one commit, evidence, and what can be found in it without running it."""

__all__: list[str] = []
