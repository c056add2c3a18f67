// SPDX-License-Identifier: Apache-2.0
// How RAS names a process in its text.
#pragma once

#include "receivers/decode/line/reading.h"

enum who_result {
    WHO_READ,    // host, pid and GPU are set as far as they are said
    WHO_UNKNOWN, // "[process information not found]"
    WHO_CUT,     // breaks off
};

// "Process 90012 on node 10.20.0.8 managing GPU 5", "… managing GPUs 0,1 (NVML 4,5)"; `text` begins
// behind "Process ".
enum who_result who_process(struct slice text, struct reading *reading);
// "GPU 0 (NVML 4) managed by process 81203 on node 10.20.0.7", or in brackets that nothing is
// known.
enum who_result who_gpu(struct slice text, struct reading *reading);
