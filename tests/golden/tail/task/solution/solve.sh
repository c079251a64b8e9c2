#!/bin/sh
# Restores the author's own recipe: the reference copies of all editable files.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
workdir="${RSI_WORKDIR:-/app}"
if [ -d "$here/files" ]; then cp -R "$here/files/." "$workdir/"; fi

# The project brings no artefact, so the recipe makes it.
cd "$workdir"
RSI_SEED="${RSI_SEED:-1}"
export RSI_SEED
exec sh -c 'python3 count.py'
