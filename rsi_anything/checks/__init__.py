"""Checks of a task: a ladder of rungs, each of which reports findings with a place, a reason and a cure."""
