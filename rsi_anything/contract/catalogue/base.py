"""What a field of the catalogue is made of: its words, its kind, and the conditions under which it is asked.

Values are plain data (text, numbers, flags, lists, tables), exactly as they stand in an answers file.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

Value: TypeAlias = "str | int | float | bool | list[Value] | dict[str, Value] | None"
Values: TypeAlias = Mapping[str, Value]

ROUNDS = ("source", "question", "baseline", "evaluation", "boundary", "compute", "review")


class Kind(StrEnum):
    """The shape of a value; fronts choose their way of asking by it."""

    TEXT = "text"
    """One line."""
    LONG = "long text"
    """Any number of lines."""
    CODE = "code"
    """The source of a program."""
    CHOICE = "choice"
    """One of the options."""
    CHOICES = "choices"
    """Any number of the options."""
    INTEGER = "whole number"
    NUMBER = "number"
    NUMBER_OR_WORD = "number or word"
    """One of the options, or a number."""
    FLAG = "yes or no"
    LIST = "list"
    """Short texts, such as globs."""
    TABLES = "list of tables"
    """Edits or knobs, each a small table."""


@dataclass(frozen=True)
class Condition:
    """Holds where an earlier field has one of the given values; without values, where it has any."""

    field: str
    values: tuple[str, ...] = ()
    negated: bool = False

    def holds(self, values: Values) -> bool:
        """Say whether the condition is met by the values known so far."""
        value = values.get(self.field)
        met = value in self.values if self.values else value is not None
        return met != self.negated

    def words(self) -> str:
        """Return the condition as a person would say it."""
        if not self.values:
            return f"{self.field} is {'not ' if self.negated else ''}given"
        return f"{self.field} is {'not ' if self.negated else ''}{' or '.join(self.values)}"


@dataclass(frozen=True)
class Field:
    """One leaf of the task specification, and how it is asked. The default is the specification's own."""

    id: str
    """Dotted path in the specification; its first part is the round."""
    group: str
    """Fields of one group are asked together."""
    kind: Kind
    label: str
    """A word or three, for tables."""
    ask: str
    why: str
    example: Value
    depends_on: tuple[str, ...] = ()
    """Earlier fields whose change makes this one to review."""
    when: tuple[Condition, ...] = ()
    """All must hold, else the field is not asked and not in the specification."""
    needed: tuple[Condition, ...] | None = None
    """Where all hold an answer is needed; None leaves it to the specification."""
    options: Callable[[Values], tuple[str, ...]] | None = None
    check: Callable[[Value, Values], str | None] | None = None
    """Problem of a value beside the earlier ones, beyond what the specification says of the field alone."""
    hints: Callable[[Values], tuple[str, ...]] | None = None
    """Lines that say more than `why`, for the values known so far; of no values, all that may be said."""
    unit: str = ""
    """Unit of a number, shown behind it."""
    fact: bool = False
    """Whether it is read off the project and no decision, so that it may be filled in without asking."""

    @property
    def round(self) -> str:
        """Name of the round the field belongs to."""
        return self.id.partition(".")[0]

    @property
    def name(self) -> str:
        """Last part of the id: the key in the answers file."""
        return self.id.rpartition(".")[2]

    @property
    def table(self) -> str:
        """All but the last part of the id: the table in the answers file."""
        return self.id.rpartition(".")[0]

    def example_for(self, values: Values) -> Value:
        """Return the example, or one of the options where the example is none of those that there are now."""
        options = self.options(values) if self.options else ()
        if not options or self.kind is Kind.NUMBER_OR_WORD:
            return self.example
        if isinstance(self.example, list):
            return [item for item in self.example if item in options] or list(options[:1])
        return self.example if self.example in options else options[0]

    def applies(self, values: Values) -> bool:
        """Say whether the field is asked, given the values of the earlier fields."""
        return all(condition.holds(values) for condition in self.when)


@dataclass(frozen=True)
class Group:
    """Fields that are shown and confirmed together: one question of the interview."""

    id: str
    """`round.name`."""
    title: str

    @property
    def round(self) -> str:
        """Name of the round the group belongs to."""
        return self.id.partition(".")[0]


def among(*options: str) -> Callable[[Values], tuple[str, ...]]:
    """Return a source of options that are always the same."""
    return lambda _values: options
