"""The reference page of answers files, written from the catalogue, so that no answer goes undocumented."""

from rsi_anything.contract.answers import LONG_KINDS, toml_value
from rsi_anything.contract.fields import CATALOGUE, GROUPS, Field, default_of, needs_answer

HEAD = """\
# Answers

An answers file holds a whole interview: `rsi new PROJECT --answers FILE --out DIR` asks nothing. It is TOML, in UTF-8.
Every task keeps its own as `answers.toml`; the same answers and project make the same task.

- An answer that has no default is needed. All that are missing are listed at once.
- A long text may lie in a file of its own beside the answers: `adapter_file = "rsi_adapter.py"` instead of `adapter`.
- An unknown key is an error, with its line and the nearest key that is known.
- `version = 1` at the top says which form of the file it is.
- What research finds in the project never answers in your place; a missing answer names it as a hint.

This page is made by `python -m rsi_anything.contract.reference > docs/reference/answers.md`.
"""


def answers_reference() -> str:
    """Return the page as Markdown."""
    parts = [HEAD]
    current = ""
    for group in GROUPS:
        if group.round != current:
            current = group.round
            parts.append(f"## {current}\n")
        parts.append(f"### {group.title}\n")
        parts += [_entry(field) for field in CATALOGUE if field.group == group.id]
    return "\n".join(parts).rstrip() + "\n"


def _entry(field: Field) -> str:
    lines = [f"**`{field.id}`** ({field.kind}): {field.ask} {field.why}", ""]
    if field.hints:
        lines += [*field.hints({}), ""]
    if field.options:
        options = field.options({})
        lines.append(f"- one of: {', '.join(f'`{option}`' for option in options)}")
    if field.when:
        lines.append(f"- asked only if {' and '.join(condition.words() for condition in field.when)}")
    lines.append(f"- {_default(field)}")
    lines.append(f"- example: `{field.name} = {toml_value(field.example)}`")
    if field.kind in LONG_KINDS:
        lines.append(f'- as a file: `{field.name}_file = "PATH"`')
    if field.depends_on:
        lines.append(f"- to review when these change: {', '.join(f'`{name}`' for name in field.depends_on)}")
    return "\n".join(lines) + "\n"


def _default(field: Field) -> str:
    if field.fact:
        return "left out, it is read off the project"
    if field.needed:
        return f"needed if {' and '.join(condition.words() for condition in field.needed)}"
    default = default_of(field)
    if default is None:
        return "needed" if field.needed == () or needs_answer(field, {}) else "may be left out"
    return f"default: `{toml_value(default)}`"


if __name__ == "__main__":
    import sys

    sys.stdout.write(answers_reference())
