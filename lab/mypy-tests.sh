#!/bin/sh
# Checks the types of fixtures and helpers of the tests, and of the benchmarks. Each folder is checked on its own: several have
# modules of the same name. The tests themselves are not checked.
set -eu
cd "$(dirname "$0")/.."
status=0
for folder in comparison/tests contracts/tests report/tests server/tests worker/tests client/tests lab/tests rehearsal/tests tests benchmarks; do
    files=$(find "$folder" -name '*.py' ! -name 'test_*' ! -name __init__.py ! -path '*/fakekernel/*' | sort)
    [ -n "$files" ] || continue
    # The server's tests are a package; the others import their helpers as top-level modules.
    path=$folder
    [ "$folder" != server/tests ] || path=
    [ "$folder" != benchmarks ] || path=$folder:comparison/tests:report/tests:server/tests/submissions:server:tests
    # Scenarios use the worker's tests' mails and archive.
    [ "$folder" != tests ] || path=$folder:worker/tests
    # shellcheck disable=SC2086  # a list of files
    MYPYPATH="$path" mypy --config-file lab/mypy-tests.ini \
        --cache-dir "$WQLAB_CACHE/mypy-tests" $files || status=1
done
exit $status
