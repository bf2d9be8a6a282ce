#!/bin/sh
set -eu
cd "$(dirname "$0")"
python build_cold_warm.py
python read_consoles.py
python scale.py
python plugin_overhead.py
