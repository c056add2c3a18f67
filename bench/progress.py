# SPDX-License-Identifier: Apache-2.0
"""What bench/run is doing, on standard error, with the seconds since its start."""
import sys
import time

BEGUN = time.monotonic()


def say(text):
    print("%4.0f s: %s" % (time.monotonic() - BEGUN, text), file=sys.stderr, flush=True)
