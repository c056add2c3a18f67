#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Shows culprit on a job that really broke: builds it, then asks who did it.
set -eu
cd "$(dirname "$0")"

say() { printf '%s\n' "$*"; }

say "== 1/3 packages =="
tools/install_dependencies build
say "== 2/3 build (half a minute the first time) =="
tools/build release culprit
culprit=build/release/culprit
job=tests/golden/real/sigkill-rank1

say "== 3/3 a job that broke =="
cat <<'TEXT'

A PyTorch job on two nodes with two ranks each. From step 2 on, rank 1 kept 64 MiB for each layer
in its backward pass; at the end of step 4 it was killed with SIGKILL, as an out-of-memory killer
does. Then the other ranks fell, one after another. torchrun's own report, on the node without
rank 1, named rank 2 as "Root Cause (first observed failure)": innocent. All that culprit is given
is the telemetry that each rank had written until then, one directory a rank:

TEXT
say "\$ $culprit analyze $job"
say
"$culprit" analyze "$job"
cat <<TEXT

Try next:
  $culprit analyze tests/golden/real/healthy              a job with nothing wrong
  $culprit analyze --output verdicts $job
                                                               the same answer as JSON Lines
  $culprit analyze --fail-on warning DIRECTORY; echo \$?     for scripts: exit code 2 when it finds
                                                               something
  $culprit analyze --print-config $job
                                                               the pipeline behind it, as YAML
  $culprit help                                           everything else
TEXT
