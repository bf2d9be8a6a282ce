#!/bin/sh
set -eu
cd "$(dirname "$0")"
python compare_million.py
python boot_overhead.py
python build_cold_warm.py
