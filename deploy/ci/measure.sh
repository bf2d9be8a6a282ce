#!/bin/sh
# Measure the commits of a branch in a lab: submit them, wait, and write what a CI system shows. It ends with the exit
# code of `wqlab submit --wait` (docs/cli.md). Its files are in the current folder, a git repository:
#   wqlab-series.mbox, wqlab-submission.json, wqlab-report.md, wqlab-report.html, wqlab-junit.xml, wqlab-annotations
# Environment:
#   WQLAB_URL, WQLAB_TOKEN   the lab, and an API token with the scope submit
#   WQLAB_CI_BASE            commit or branch below the first commit; the series is BASE..HEAD
#   WQLAB_CI_TARGETS         PLAN@DEVICE_TYPE, several with blanks or lines between; empty: what the lab proposes
#   WQLAB_CI_TREE            tree of the lab; empty: its default
#   WQLAB_CI_KEY             idempotency key: a rerun with the same key does not submit again
#   WQLAB_CI_FAIL_ON         verdict that fails the job besides a regression, such as inconclusive
#   WQLAB_CI_ANNOTATIONS     github or gitlab
set -eu
: "${WQLAB_URL:?is not set: the URL of the lab}"
: "${WQLAB_TOKEN:?is not set: an API token of the lab, kept as a secret}"
: "${WQLAB_CI_BASE:?is not set: the commit below the first one}"
: "${WQLAB_CI_KEY:?is not set: a text that only this job has}"

# The commits may have files or links of these names.
rm -rf wqlab-series.mbox wqlab-submission.json wqlab-report.md wqlab-report.html wqlab-junit.xml wqlab-annotations
base=$(git merge-base "$WQLAB_CI_BASE" HEAD) || {
    echo "measure: $WQLAB_CI_BASE and HEAD have no common commit here: fetch the whole history" >&2
    exit 2
}
git format-patch --stdout "$base..HEAD" > wqlab-series.mbox
if [ ! -s wqlab-series.mbox ]; then
    echo "measure: there is no commit after $base, so there is nothing to measure" >&2
    exit 0
fi

set -- --mbox wqlab-series.mbox --idempotency-key "$WQLAB_CI_KEY" --wait --json
[ -z "${WQLAB_CI_TREE:-}" ] || set -- "$@" --tree "$WQLAB_CI_TREE"
[ -z "${WQLAB_CI_FAIL_ON:-}" ] || set -- "$@" --fail-on "$WQLAB_CI_FAIL_ON"
if [ -z "${WQLAB_CI_TARGETS:-}" ]; then
    set -- "$@" --what-it-touches
else
    set -f # a target is no pattern of files
    for target in $WQLAB_CI_TARGETS; do
        set -- "$@" --target "$target"
    done
    set +f
fi
code=0
wqlab submit "$@" > wqlab-submission.json || code=$?
[ -s wqlab-submission.json ] || exit "$code"

id=$(python3 -I -c 'import json; print(json.load(open("wqlab-submission.json"))["id"])')
wqlab report "$id" --format junit -o wqlab-junit.xml
wqlab report "$id" --format html -o wqlab-report.html
wqlab report "$id" --format markdown -o wqlab-report.md
wqlab annotations "$id" --format "${WQLAB_CI_ANNOTATIONS:-gitlab}" -o wqlab-annotations
exit "$code"
