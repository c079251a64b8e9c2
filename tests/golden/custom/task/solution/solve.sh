#!/bin/sh
# Restores the author's own recipe: the reference copies of all editable files.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
workdir="${RSI_WORKDIR:-/app}"
if [ -d "$here/files" ]; then cp -R "$here/files/." "$workdir/"; fi
