"""The interview on a plain terminal: it shows the machine's state as lines and turns what is typed into events."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from harness.errors import InputError, Interrupted, RsiError
from rsi_anything.contract.answers import read_text
from rsi_anything.contract.draft import Draft
from rsi_anything.contract.fields import Kind, nearest
from rsi_anything.interview import wording
from rsi_anything.interview.machine import REVIEW, Answer, Back, Confirm, Event, Jump, Machine, Skip, State, View
from rsi_anything.interview.skeletons import skeleton
from rsi_anything.interview.typed import parse, show

MEANT = {"back": "<", "help": "?", "quit": ":quit", "exit": ":quit", "review": ":review", "skip": ":skip"}
"""Words that may be meant as commands, and these."""


class Screen(Protocol):
    """Where it is shown and typed: the terminal, or a test."""

    def say(self, text: str = "") -> None:
        """Write lines."""

    def ask(self, prompt: str) -> str:
        """Return what is typed; raises EOFError at the end of input."""

    def ask_lines(self, prompt: str) -> str:
        """Return lines up to a single dot."""

    def edit(self, text: str, suffix: str) -> str | None:
        """Return the text as an editor left it, or None."""


class Ending(Protocol):
    """What the review shows and does: the files that the answers make."""

    def preview(self) -> str:
        """Return the tree of files and what each would do to the folder; raises RsiError where it cannot be made."""

    def diff(self) -> str:
        """Return the difference to what lies in the folder."""

    def question(self) -> str:
        """Return the last question, answered by yes or no."""

    def write(self) -> None:
        """Write the files."""


class Plain:
    """One interview on one screen. `come_back` is the command that continues it."""

    def __init__(self, machine: Machine, screen: Screen, ending: Ending, come_back: str) -> None:
        self.machine = machine
        self.screen = screen
        self.ending = ending
        self.come_back = come_back
        self._shown = ""
        self._doubted: tuple[str, str] | None = None
        self._ready = False
        self._reviewed: Draft | None = None

    def run(self) -> None:
        """Ask until the task is written; raises Interrupted, with the command that comes back, when the person goes."""
        self.screen.say(f"Every answer is kept at once. To come back at any time: {self.come_back}")
        self.screen.say("Enter takes what is shown; ? explains.")
        try:
            while not self._turn():
                pass
        except EOFError as error:
            raise self._leaving("the input ended") from error
        except KeyboardInterrupt as error:
            raise self._leaving("stopped") from error

    def _turn(self) -> bool:
        """Show the present state and take one input; True when the task is written."""
        state = self.machine.state
        if state.group is None:
            return self._review(state)
        if self._shown != state.group.id:
            self.screen.say(wording.heading(state))
            self._shown = state.group.id
        view = next((view for view in state.views if view.field.id == state.focus), None)
        self.screen.say(wording.listing(state) if view is None else wording.asking(view))
        prompt = "Enter takes them all, a number changes one> " if view is None else wording.prompt(view)
        return self._take(lambda: self._question(state, view, self.screen.ask(prompt)))

    def _question(self, state: State, view: View | None, text: str) -> bool:
        word = text.strip()
        if word == "?" or word.startswith(":") or word == "<":
            self._command(word, state, view)
        elif view is not None:
            self._answer(view, text)
        elif not word:
            self.machine.send(Confirm())
        elif word.isdigit() and 1 <= int(word) <= len(state.views):
            self.machine.send(Jump(state.views[int(word) - 1].field.id))
        else:
            labels = {view.field.label: view.field.id for view in state.views}
            if word not in labels:
                meant = MEANT.get(word.lower())
                step = "a number or its name chooses one to change; :goto NAME goes elsewhere"
                step = f"did you mean {meant} ?" if meant else step
                raise InputError(f"{word[:40]!r} is none of these", next_step=step)
            self.machine.send(Jump(labels[word]))
        return False

    def _answer(self, view: View, text: str) -> None:
        if text.strip():
            self._doubt(view, text.strip())
            if view.field.kind is Kind.CODE and "\n" not in text:
                raise InputError(
                    "a program has several lines", next_step="give it with :edit, :lines or :file PATH; ? explains"
                )
            self.machine.send(Answer(view.field.id, parse(view.field, text, view.options)))
        elif view.known.value is None and view.needed:
            raise InputError(f"{view.field.label} needs an answer", next_step="type one; ? explains")
        else:
            self.machine.send(Confirm(view.field.id))

    def _doubt(self, view: View, word: str) -> None:
        """Ask again where an answer may be meant as a command; typed twice, it is the answer."""
        meant = MEANT.get(word.lower())
        if meant is None or word in view.options or self._doubted == (view.field.id, word):
            return
        self._doubted = (view.field.id, word)
        raise InputError(f"did you mean {meant} ?", next_step=f"type it, or {word} again to take that as the answer")

    def _command(self, text: str, state: State, view: View | None) -> None:
        word, _, argument = text.partition(" ")
        argument = argument.strip()
        moves: dict[str, Callable[[], Event]] = {
            "<": Back,
            ":back": Back,
            ":goto": lambda: Jump(argument),
            ":review": lambda: Jump(REVIEW),
            ":skip": lambda: Skip(self._meant(argument, view).field.id),
            ":edit": lambda: self._edited(self._meant(argument, view)),
            ":lines": lambda: self._from_lines(self._meant("", view)),
            ":file": lambda: self._from_file(argument, self._meant("", view)),
        }
        if word == "?":
            for shown in [view] if view else state.views:
                self.screen.say(wording.explanation(shown) + "\n")
            self.screen.say(wording.COMMANDS)
        elif word in {":quit", ":q"}:
            raise self._leaving("left")
        elif word in moves:
            self.machine.send(moves[word]())
            self._shown = ""
        else:
            near = nearest(word, [*moves, ":quit"])
            hint = f"did you mean {near}? " if near else ""
            raise InputError(f"there is no command {word}", next_step=f"{hint}? lists them")

    def _meant(self, name: str, view: View | None) -> View:
        """Return the field a command is about: the one named, else the one asked for."""
        if name:
            state = self.machine.send(Jump(name))
            view = next((each for each in state.views if each.field.id == state.focus), None)
        if view is None:
            raise InputError("which one?", next_step="choose it by its number first")
        return view

    def _edited(self, view: View) -> Event:
        before = show(view.field, view.known.value) or skeleton(view.field, self.machine.draft.values())
        after = self.screen.edit(before, ".py" if view.field.kind is Kind.CODE else ".txt")
        if after is None:
            raise InputError("the text was left as it was", next_step="edit again, or answer in another way")
        return Answer(view.field.id, parse(view.field, after, view.options))

    def _from_lines(self, view: View) -> Event:
        self.screen.say("Type lines; a line with a single dot ends them.")
        return Answer(view.field.id, parse(view.field, self.screen.ask_lines("| "), view.options))

    def _from_file(self, name: str, view: View) -> Event:
        text = read_text(Path(name).expanduser(), "file").removeprefix("\ufeff").replace("\r\n", "\n")
        return Answer(view.field.id, parse(view.field, text, view.options))

    def _review(self, state: State) -> bool:
        if self._reviewed != self.machine.draft or self._shown != REVIEW:
            self.screen.say(wording.review(state))
            self._ready = state.ready and self._take(self._preview)
            self._reviewed, self._shown = self.machine.draft, REVIEW
        return self._take(lambda: self._decision(state, self._ready))

    def _preview(self) -> bool:
        self.screen.say(self.ending.preview())
        return True

    def _decision(self, state: State, ready: bool) -> bool:
        """Take one input of the review; True when the task was written."""
        open_ones = "Enter goes to what is open, a number or name to any answer"
        word = self.screen.ask(f"{self.ending.question() if ready else open_ones}> ").strip()
        if ready and word.lower() in {"y", "yes"}:
            self.ending.write()
            return True
        if ready and word.lower() in {"d", "diff"}:
            self.screen.say(self.ending.diff() or "no difference")
        elif ready and word.lower() in {"n", "no"}:
            raise self._leaving("nothing was written")
        elif word == "?" and ready:
            self.screen.say("y writes the files, d shows the difference, a number or name goes to that answer.")
        elif word == "?" or word.startswith(":") or word == "<":
            self._command(word, replace(state, views=()), None)
        elif word.isdigit() and 1 <= int(word) <= len(state.views):
            self.machine.send(Jump(state.views[int(word) - 1].field.id))
        elif word.lower() in MEANT:
            raise InputError(f"{word!r} is no answer here", next_step=f"did you mean {MEANT[word.lower()]} ?")
        elif word:
            self.machine.send(Jump(word))
        elif not ready:
            self.machine.send(Confirm())
        return False

    def _take(self, step: Callable[[], bool]) -> bool:
        """Do a step; an error of the person's becomes lines on the screen, and the question is asked again."""
        try:
            return step()
        except Interrupted:
            raise
        except RsiError as error:
            self.screen.say("\n".join(error.lines()))
            return False

    def _leaving(self, what: str) -> Interrupted:
        confirmed = len(self.machine.draft.active()) - len(self.machine.draft.missing())
        answers = f"{confirmed} confirmed answer{'' if confirmed == 1 else 's'}"
        return Interrupted(f"{what}; the conversation is kept, with {answers}", next_step=self.come_back)
