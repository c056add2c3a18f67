// SPDX-License-Identifier: Apache-2.0
// The readers of single messages, one for each word that tells one (messages.c lists the words).
#pragma once

#include "pipeline/component/decoder.h"
#include "pipeline/model/node_event.h"
#include "pipeline/model/observation.h"
#include "receivers/decode/kernel_log/words.h"
#include "receivers/decode/line/frame.h"
#include "receivers/decode/line/reading.h"

// oom.c: the out-of-memory killer. Source: Linux mm/oom_kill.c and mm/memcontrol.c, 3.10 to 6.16.
word_read oom_read_constraint; // "oom-kill:constraint="
word_read oom_read_killed;     // "Killed process "
extern const struct line_reader READER_OOM_IN_TWO_LINES;

// machine.c: machine checks. Source: Linux arch/x86/kernel/cpu/mce, drivers/acpi/apei/ghes.c.
word_read machine_read_check; // "Machine Check: "
extern const struct line_reader READER_HARDWARE_ERROR;

// nvswitch.c: lines of fabricmanager.log. Source: NVIDIA's fabric manager guide; leptonai/gpud.
word_read nvswitch_read_manager; // "detected NVSwitch "

// amdgpu.c: GPUs of AMD. Source: Linux drivers/gpu/drm/amd.
word_read amdgpu_read_bank; // "amdgpu "
