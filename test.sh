#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs all tests under AddressSanitizer and UBSan. The last line is `N passed, N failed`, counted in
# single checks. Arguments are given to ctest: `./test.sh -R golden`.
set -eu
cd "$(dirname "$0")"

tools/install_dependencies build test
echo "building (preset dev)"
tools/build dev
results=build/dev/results
rm -rf "$results"
mkdir -p "$results"
status=0
# One more than there are processors: several tests mostly wait.
tools/in_memory ctest --preset dev --parallel $(($(nproc) + 1)) \
    --output-junit "$PWD/$results/ctest.xml" "$@" </dev/null || status=$?
python3 -B tools/count_results "$results" || status=1
exit "$status"
