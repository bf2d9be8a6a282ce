#!/bin/sh
set -eu
cd "$(dirname "$0")"
python compare_million.py
python read_consoles.py
python list_submissions.py
python scale.py
python capacity.py
python build_cold_warm.py
python plugin_overhead.py
python start.py
