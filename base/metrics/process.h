// SPDX-License-Identifier: Apache-2.0
// The standard figures of a process, process_*, as metrics.
#pragma once

// Sets them to what holds now: three reads below /proc/self. What cannot be read stays as it was.
void metrics_collect_process(void);
