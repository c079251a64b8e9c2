"""Names of runs: two words that a person can say and type."""

import difflib
import random
from pathlib import Path

from harness import paths
from harness.errors import InputError

_FIRST = (
    "able agile amber ample apt arctic azure balmy bold brave breezy brief bright brisk bronze calm candid careful "
    "cheery chilly civil clear clever cloudy coastal copper cosmic cozy crisp curious dapper daring deft dewy eager "
    "early earnest easy elegant even fabled fair famous fancy fast fertile festive fine firm fleet fluent fond "
    "fresh frosty gentle glad golden grand green handy happy hardy hearty honest humble ideal indigo ivory jade "
    "jolly jovial keen kind lively loyal lucid lucky lunar mellow merry mild mint modest mossy neat nimble noble "
    "novel olive open patient peachy placid plain plucky polite prime proud quick quiet rapid ready rosy royal ruby "
    "rustic sandy serene sharp shiny silent silver simple sincere sleek smooth snowy snug solar solid spry stable "
    "steady still sturdy sunny swift tame teal tender tidy topaz tranquil trim true upbeat urban valiant vast "
    "velvet vivid warm wise witty woody zesty "
)

_SECOND = (
    "acorn alder anchor apple arbor arrow aspen atlas badger bamboo basin bay beacon beaver birch bison bridge "
    "brook canoe canyon cedar cherry cliff clover comet compass condor coral cove crane creek cricket crystal daisy "
    "dawn delta dolphin dune eagle echo elm ember falcon fern field finch fjord forest fox garden geyser glacier "
    "glade grove gull harbor hare hawk hazel heron hill holly island ivy jasmine jay kayak kestrel kite koala "
    "lagoon lake lantern lark laurel leaf lemur lily linden lotus lynx magnet maple marble marsh meadow meteor moon "
    "moss nectar oak oasis ocean orchid osprey otter owl panda pear pebble pelican pine planet plum pond poplar "
    "prairie puffin quail quartz quiver rabbit raven reef ridge river robin sage salmon seal shore sparrow spruce "
    "star stone stream summit swan thistle tiger trail tulip tundra valley violet walnut wave whale willow wren "
    "yarrow zebra "
)

TRIES = 50
"""Attempts at a free pair of words before a number is added."""


def new_name(folder: Path | None = None, rng: random.Random | None = None) -> str:
    """Return a name that no run in `folder` (our runs unless given) has yet."""
    taken = set(run_names(folder))
    rng = rng or random.SystemRandom()
    for _ in range(TRIES):
        name = f"{rng.choice(_FIRST.split())}-{rng.choice(_SECOND.split())}"
        if name not in taken:
            return name
    number = 2
    while f"{name}-{number}" in taken:
        number += 1
    return f"{name}-{number}"


def create_run_folder(folder: Path | None = None, rng: random.Random | None = None) -> Path:
    """Make the folder of a new run, under a name that is its own even when two runs begin at once."""
    folder = folder or paths.runs()
    folder.mkdir(parents=True, exist_ok=True)
    while True:
        made = folder / new_name(folder, rng)
        try:
            made.mkdir(mode=0o755)
        except FileExistsError:
            continue
        return made


def run_names(folder: Path | None = None) -> list[str]:
    """Return the names of all runs, sorted."""
    folder = folder or paths.runs()
    try:
        return sorted(each.name for each in folder.iterdir() if each.is_dir() and not each.name.startswith("."))
    except FileNotFoundError:
        return []


def resolve_run(text: str, folder: Path | None = None) -> Path:
    """Return the folder of the run that a person named: its whole name, or the beginning of only one."""
    folder = folder or paths.runs()
    names = run_names(folder)
    wanted = text.strip().strip("/")
    if wanted in names:
        return folder / wanted
    begun = [name for name in names if wanted and name.casefold().startswith(wanted.casefold())]
    if len(begun) == 1:
        return folder / begun[0]
    if begun:
        shown = ", ".join(begun[:5]) + (", …" if len(begun) > 5 else "")
        raise InputError(f"{text!r} is the beginning of {len(begun)} runs: {shown}", next_step="give more of the name")
    near = difflib.get_close_matches(wanted, names, n=1, cutoff=0.5)
    next_step = f"did you mean {near[0]}? rsi runs lists them all" if near else "rsi runs lists them all"
    if not names:
        next_step = "there are no runs yet; rsi run TASK starts one"
    raise InputError(f"there is no run {text!r}", where=str(folder), next_step=next_step)
