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
word_read oom_read_reaper;     // "oom_reaper: "
extern const struct line_reader READER_OOM_IN_TWO_LINES;

// fault.c: a process dies by a fault. Source: Linux arch/x86/mm/fault.c, arch/x86/kernel/traps.c,
// arch/arm64/kernel/traps.c; systemd's coredump.
word_read fault_read_segfault;   // "segfault at "
word_read fault_read_protection; // "general protection"
word_read fault_read_trap;       // "trap "
word_read fault_read_unhandled;  // "unhandled "
word_read fault_read_dumped;     // "Process "

// machine.c: the machine itself. Source: Linux kernel/watchdog.c, hung_task.c, panic.c, rcu,
// arch/*/mm/fault.c, arch/x86/kernel/cpu/mce, drivers/edac, drivers/acpi/apei/ghes.c.
word_read machine_read_soft_lockup; // "BUG: soft lockup - CPU#"
word_read machine_read_stall;       // "INFO: rcu"
word_read machine_read_hard_lockup; // "Watchdog detected hard LOCKUP"
word_read machine_read_hung_task;   // "task "
word_read machine_read_panic;       // "Kernel panic - not syncing: "
word_read machine_read_oops;        // "BUG: unable to handle page fault" and its like
word_read machine_read_bug;         // "kernel BUG at "
word_read machine_read_oops_line;   // "Oops: "
word_read machine_read_check;       // "Machine Check: "
word_read machine_read_checks;      // "Machine check events logged"
word_read machine_read_edac;        // "EDAC MC"
word_read machine_read_page;        // "Memory failure: "
extern const struct line_reader READER_HARDWARE_ERROR;

// storage.c: disks and file systems. Source: Linux block/blk-core.c, fs/buffer.c, drivers/nvme,
// drivers/md, fs/ext4, fs/xfs, fs/btrfs, fs/nfs; Lustre.
word_read storage_read_io_error;  // "I/O error, dev "
word_read storage_read_critical;  // "critical "
word_read storage_read_buffer;    // "Buffer I/O error on dev"
word_read storage_read_nvme;      // "nvme "
word_read storage_read_raid;      // "Disk failure on "
word_read storage_read_no_path;   // "no available path - failing I/O"
word_read storage_read_ext4;      // "EXT4-fs"
word_read storage_read_xfs;       // "XFS ("
word_read storage_read_btrfs;     // "BTRFS"
word_read storage_read_nfs;       // "nfs: server "
word_read storage_read_lustre;    // "LustreError: "
word_read storage_read_lustre_up; // "Lustre: "

// nvswitch.c: lines of fabricmanager.log. Source: NVIDIA's fabric manager guide; leptonai/gpud.
word_read nvswitch_read_manager; // "detected NVSwitch "

// amdgpu.c: GPUs of AMD. Source: Linux drivers/gpu/drm/amd; ROCm's issues 2533 and 4021.
word_read amdgpu_read_driver;    // "amdgpu "
word_read amdgpu_read_timeout;   // "amdgpu_job_timedout"
word_read amdgpu_read_exception; // "HW Exception by GPU node-"
word_read amdgpu_read_access;    // "Memory access fault by GPU node-"
