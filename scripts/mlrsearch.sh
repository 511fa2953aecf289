#!/usr/bin/env bash
# Puts the PyPI package MLRsearch 1.2.1, the peer of `measure`'s MLRsearch in benchmarks, into a Python environment of its
# own and prints the path of its python. Made once; nothing of the system is changed.
#   scripts/mlrsearch.sh [OUT]     OUT: where to, instead of ${XDG_CACHE_HOME:-~/.cache}/linerate/mlrsearch-1.2.1
set -euo pipefail

say() { echo "mlrsearch: $*" >&2; }
die() { say "$*"; exit 4; }

out=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/linerate/mlrsearch-1.2.1}
if [ -x "$out/bin/python" ] && "$out/bin/python" -c 'import MLRsearch' 2>/dev/null; then
    echo "$out/bin/python"
    exit 0
fi
command -v python3 >/dev/null || die "python3 is not on PATH; on Debian: apt-get install python3-venv"
python3 -m venv "$out" >&2 || die "python3 has no venv; on Debian: apt-get install python3-venv"
"$out/bin/pip" install --quiet --disable-pip-version-check MLRsearch==1.2.1 >&2 || die "MLRsearch 1.2.1 could not be installed (above)"
echo "$out/bin/python"
