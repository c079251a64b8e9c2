"""HTML that cannot be broken by what is put into it: every text is escaped unless it is markup already."""

from html import escape

from harness.report.text import cut, printable

MOST_TEXT = 4096
"""Most bytes of one text of an agent or judge in a page."""

_VOID = {"meta", "br", "hr"}


class Markup(str):
    """Text that is HTML already; only this module and the curve make it."""

    __slots__ = ()


def element(tag: str, *children: str | Markup, **attributes: str) -> Markup:
    """Return an element. `class_` stands for `class`, and `_` in other names for `-`."""
    shown = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(printable(value))}"' for name, value in attributes.items()
    )
    if tag in _VOID:
        return Markup(f"<{tag}{shown}>")
    return Markup(f"<{tag}{shown}>{''.join(text(child) for child in children)}</{tag}>")


def text(value: str | Markup) -> Markup:
    """Return escaped text; markup is left as it is."""
    if isinstance(value, Markup):
        return value
    return Markup(escape(printable(value, keep="\n")))


def foreign(value: str) -> Markup:
    """Return a text that somebody else wrote, cut, escaped, and set apart in its own writing direction."""
    return element("bdi", cut(value, MOST_TEXT))


def join(*parts: Markup) -> Markup:
    """Return markup one after the other."""
    return Markup("\n".join(parts))
