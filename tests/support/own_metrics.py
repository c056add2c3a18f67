# SPDX-License-Identifier: Apache-2.0
"""What a running culprit tells of itself at service.telemetry.metrics."""
import re
import urllib.request

from running import PATIENCE_S


def metric_sum(port, name):
    """The sum over the metric's series; None: nobody answers (yet), or it is not shown."""
    try:
        with urllib.request.urlopen("http://127.0.0.1:%d/metrics" % port, timeout=PATIENCE_S) as got:
            text = got.read().decode()
    except OSError:
        return None
    values = re.findall(r"^%s(?:{.*})? (\S+)$" % name, text, re.M)
    return sum(map(float, values)) if values else None
