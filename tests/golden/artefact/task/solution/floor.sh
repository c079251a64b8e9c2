#!/bin/sh
# Puts a candidate into place that knows nothing: the author's recipe with a few values changed.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
workdir="${RSI_WORKDIR:-/app}"
if [ -d "$here/files" ]; then cp -R "$here/files/." "$workdir/"; fi
cp -R "$here/floor/." "$workdir/"
