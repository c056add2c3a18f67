// SPDX-License-Identifier: Apache-2.0
// What the kernel says, and programs of the node: every wording, whole and cut anywhere.
#include "receivers/decode/line/gather.h"
#include "tests/receivers/decode/kernel_log/said.h"

#define FRONT "[ 7200.000000] "

static const struct {
    const char *title, *lines, *said;
} CASES[] = {
    {"kill in a pod",
     "python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=985\n"
     "CPU: 7 PID: 40110 Comm: python3 Tainted: P           OE      6.8.0-49-generic #49-Ubuntu\n"
     "memory: usage 67108864kB, limit 67108864kB, failcnt 8821\n"
     "Tasks state (memory values in pages):\n"
     "[  pid  ]   uid  tgid total_vm      rss rss_anon rss_file rss_shmem pgtables_bytes swapents "
     "oom_score_adj name\n"
     "[  40110]     0 40110 31000000 16000000 15900000   100000         0 130000000        0       "
     "    985 python3\n"
     "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=cri-containerd-"
     "4be14be14be14be14be14be14be14be14be14be14be14be14be14be14be14be1.scope,mems_allowed=0-1,oom_"
     "memcg=/kubepods.slice/kubepods-burstable.slice/"
     "kubepods-burstable-pod7c1d9a52_3b0e_4f6a_9d21_5e8f00aa1133.slice/"
     "cri-containerd-4be14be14be14be14be14be14be14be14be14be14be14be14be14be14be14be1.scope,task_"
     "memcg=/kubepods.slice/kubepods-burstable.slice/"
     "kubepods-burstable-pod7c1d9a52_3b0e_4f6a_9d21_5e8f00aa1133.slice/"
     "cri-containerd-4be14be14be14be14be14be14be14be14be14be14be14be14be14be14be14be1.scope,task="
     "python3,pid=40110,uid=0\n"
     "Memory cgroup out of memory: Killed process 40110 (python3) total-vm:124000000kB, "
     "anon-rss:63600000kB, file-rss:400000kB, shmem-rss:0kB, UID:0 pgtables:126953kB "
     "oom_score_adj:985\n"
     "oom_reaper: reaped process 40110 (python3), now anon-rss:0kB, file-rss:0kB, shmem-rss:0kB\n",
     "7 oom_kill; pid=40110; process=python3; "
     "container_id=4be14be14be14be14be14be14be14be14be14be14be14be14be14be14be14be1; "
     "unit_uid=7c1d9a52-3b0e-4f6a-9d21-5e8f00aa1133; scope=cgroup\n"
     "8 oom_kill; pid=40110; process=python3; scope=cgroup; anon_rss_bytes=65126400000\n"
     "9 oom_reaped; pid=40110; process=python3\n"},
    {"paths of control groups",
     "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset="
     "9f029f029f029f029f029f029f029f029f029f029f029f029f029f029f029f02,mems_allowed=0,oom_memcg=/"
     "kubepods/besteffort/pod11aa22bb-33cc-44dd-55ee-66ff77008899/"
     "9f029f029f029f029f029f029f029f029f029f029f029f029f029f029f029f02,task_memcg=/kubepods/"
     "besteffort/pod11aa22bb-33cc-44dd-55ee-66ff77008899/"
     "9f029f029f029f029f029f029f029f029f029f029f029f029f029f029f029f02,task=data, "
     "x[1],pid=51,uid=1000\n"
     "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/"
     "kubepods.slice/kubepods-pod11aa22bb_33cc_44dd_55ee_66ff77008899.slice,task_memcg=/"
     "kubepods.slice/kubepods-pod11aa22bb_33cc_44dd_55ee_66ff77008899.slice/"
     "crio-9f029f029f029f029f029f029f029f029f029f029f029f029f029f029f029f02.scope,task=python3,pid="
     "52,uid=1000\n"
     "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/"
     "docker/9f029f029f029f029f029f029f029f029f029f029f029f029f029f029f029f02/kubelet/kubepods/"
     "burstable/pod0123456789abcdef0123456789abcdef/"
     "4be14be14be14be14be14be14be14be14be14be14be14be14be14be14be14be1,task_memcg=/docker/"
     "9f029f029f029f029f029f029f029f029f029f029f029f029f029f029f029f02/kubelet/kubepods/burstable/"
     "pod0123456789abcdef0123456789abcdef/"
     "4be14be14be14be14be14be14be14be14be14be14be14be14be14be14be14be1,task=etcd,pid=53,uid=0\n"
     "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=step_0,mems_allowed=0-7,oom_"
     "memcg=/system.slice/slurmstepd.scope/job_88110/step_0,task_memcg=/system.slice/"
     "slurmstepd.scope/job_88110/step_0/user/task_3,task=python,pid=54,uid=2001\n"
     "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=user.slice,mems_allowed=0,oom_"
     "memcg=/user.slice/user-1000.slice,task_memcg=/user.slice/user-1000.slice/"
     "session-3.scope,task=node,pid=55,uid=1000\n"
     "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/"
     ",mems_allowed=0-1,global_oom,task_memcg=/system.slice/k3s.service/kubepods/"
     "pod11aa22bb-33cc-44dd-55ee-66ff77008899/"
     "9f029f029f029f029f029f029f029f029f029f029f029f029f029f029f029f02,task=java,pid=56,uid=0\n",
     "1 oom_kill; pid=51; process=data, x[1]; "
     "container_id=9f029f029f029f029f029f029f029f029f029f029f029f029f029f029f029f02; "
     "unit_uid=11aa22bb-33cc-44dd-55ee-66ff77008899; scope=cgroup\n"
     "2 oom_kill; pid=52; process=python3; "
     "container_id=9f029f029f029f029f029f029f029f029f029f029f029f029f029f029f029f02; "
     "unit_uid=11aa22bb-33cc-44dd-55ee-66ff77008899; scope=cgroup\n"
     "3 oom_kill; pid=53; process=etcd; "
     "container_id=4be14be14be14be14be14be14be14be14be14be14be14be14be14be14be14be1; "
     "unit_uid=0123456789abcdef0123456789abcdef; scope=cgroup\n"
     "4 oom_kill; pid=54; process=python; task=3; job=88110; step=0; scope=cgroup\n"
     "5 oom_kill; pid=55; process=node; scope=cgroup\n"
     "6 oom_kill; pid=56; process=java; "
     "container_id=9f029f029f029f029f029f029f029f029f029f029f029f029f029f029f029f02; "
     "unit_uid=11aa22bb-33cc-44dd-55ee-66ff77008899; scope=machine\n"},
    {"kills of old kernels",
     "Memory cgroup out of memory: Kill process 811 (python3) score 1974 or sacrifice child\n"
     "Killed process 811 (python3) total-vm:90000000kB, anon-rss:66000000kB, file-rss:1000kB, "
     "shmem-rss:0kB\n"
     "Out of memory: Killed process 812, UID 48, (httpd).\n"
     "Killed process 813 (Web Content), UID 1000, total-vm:2000000kB, anon-rss:1200000kB, "
     "file-rss:0kB, shmem-rss:10kB\n"
     "Out of memory (oom_kill_allocating_task): Killed process 814 (stress) total-vm:1024kB, "
     "anon-rss:1000kB, file-rss:4kB, shmem-rss:0kB, UID:0 pgtables:44kB oom_score_adj:0\n"
     "Out of memory: Killed process 815 (python) total-vm:16,184,840kB, anon-rss:5,370,088kB, "
     "file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:38964kB oom_score_adj:0\n",
     "1 oom_kill; lines=2; pid=811; process=python3; scope=cgroup; anon_rss_bytes=67584000000\n"
     "3 oom_kill; pid=812; process=httpd; scope=machine\n"
     "4 oom_kill; pid=813; process=Web Content; anon_rss_bytes=1228800000\n"
     "5 oom_kill; pid=814; process=stress; scope=machine; anon_rss_bytes=1024000\n"
     "6 oom_kill; pid=815; process=python; scope=machine; anon_rss_bytes=5498970112\n"},
    {"a group is killed",
     "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/"
     "kubepods.slice/kubepods-burstable.slice/"
     "kubepods-burstable-pod7c1d9a52_3b0e_4f6a_9d21_5e8f00aa1133.slice/"
     "cri-containerd-4be14be14be14be14be14be14be14be14be14be14be14be14be14be14be14be1.scope,task_"
     "memcg=/kubepods.slice/kubepods-burstable.slice/"
     "kubepods-burstable-pod7c1d9a52_3b0e_4f6a_9d21_5e8f00aa1133.slice/"
     "cri-containerd-4be14be14be14be14be14be14be14be14be14be14be14be14be14be14be14be1.scope,task="
     "python3,pid=6001,uid=0\n"
     "Memory cgroup out of memory: Killed process 6001 (python3) total-vm:900kB, anon-rss:800kB, "
     "file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:2kB oom_score_adj:985\n"
     "Tasks in "
     "/kubepods.slice/kubepods-burstable.slice/"
     "kubepods-burstable-pod7c1d9a52_3b0e_4f6a_9d21_5e8f00aa1133.slice/"
     "cri-containerd-4be14be14be14be14be14be14be14be14be14be14be14be14be14be14be14be1.scope are "
     "going to be killed due to memory.oom.group set\n"
     "Memory cgroup out of memory: Killed process 6000 (torchrun) total-vm:90kB, anon-rss:80kB, "
     "file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:2kB oom_score_adj:985\n"
     "Memory cgroup out of memory: Killed process 6002 (pt_data_worker) total-vm:90kB, "
     "anon-rss:80kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:2kB oom_score_adj:985\n",
     "1 oom_kill; pid=6001; process=python3; "
     "container_id=4be14be14be14be14be14be14be14be14be14be14be14be14be14be14be14be1; "
     "unit_uid=7c1d9a52-3b0e-4f6a-9d21-5e8f00aa1133; scope=cgroup\n"
     "2 oom_kill; pid=6001; process=python3; scope=cgroup; anon_rss_bytes=819200\n"
     "4 oom_kill; pid=6000; process=torchrun; scope=cgroup; anon_rss_bytes=81920\n"
     "5 oom_kill; pid=6002; process=pt_data_worker; scope=cgroup; anon_rss_bytes=81920\n"},
    {"segfaults and traps",
     "pt_nccl_watchdg[70113]: segfault at 7f0000000008 ip 00007f31aa0410c6 sp 00007f2e11ffd9f0 "
     "error 4 in libtorch_cuda.so[7f31a9e00000+c9a4000] likely on CPU 3 (core 3, socket 0)\n"
     "Code: 48 8b 47 08 48 85 c0 74 11 <48> 8b 00 c3\n"
     "traps: python3[70200] general protection fault ip:7f31aa0410c6 sp:7f2e11ffd9f0 error:0 in "
     "libcuda.so.560.35.03[7f31a9e00000+c9a4000]\n"
     "traps: train[70201] trap invalid opcode ip:55aa sp:7ffe error:0 in train[55a0+2000]\n"
     "python3[70202]: segfault at 0 ip 0000000000000000 sp 00007ffe0000 error 14\n",
     "1 segfault; pid=70113; process=pt_nccl_watchdg; signal=11; library=libtorch_cuda.so\n"
     "3 segfault; pid=70200; process=python3; signal=11; library=libcuda.so.560.35.03\n"
     "4 trap; pid=70201; process=train; signal=4; library=train\n"
     "5 segfault; pid=70202; process=python3; signal=11\n"},
    {"lockups and hung tasks",
     "watchdog: BUG: soft lockup - CPU#44 stuck for 22s! [python3:90551]\n"
     "BUG: soft lockup - CPU#2 stuck for 23s! [kworker/2:1:811]\n"
     "INFO: task python3:4711 blocked for more than 120 seconds.\n"
     "      Tainted: P           OE     5.15.0-102-generic #112-Ubuntu\n"
     "\"echo 0 > /proc/sys/kernel/hung_task_timeout_secs\" disables this message.\n"
     "rcu: INFO: rcu_sched self-detected stall on CPU\n"
     "watchdog: Watchdog detected hard LOCKUP on cpu 3\n",
     "1 soft_lockup; pid=90551; process=python3; cpu=44; seconds=22\n"
     "2 soft_lockup; pid=811; process=kworker/2:1; cpu=2; seconds=23\n"
     "3 hung_task; pid=4711; process=python3; seconds=120\n"
     "6 soft_lockup\n"
     "7 hard_lockup; cpu=3\n"},
    {"oops and panic",
     "BUG: unable to handle page fault for address: ffffb0c1deadbeef\n"
     "#PF: supervisor read access in kernel mode\n"
     "Oops: 0000 [#1] PREEMPT SMP NOPTI\n"
     "Kernel panic - not syncing: Fatal exception in interrupt\n"
     "Kernel Offset: 0x12000000 from 0xffffffff81000000\n",
     "1 kernel_oops\n"
     "4 kernel_panic; cause=Fatal exception in interrupt\n"},
    {"hardware errors",
     "mce: [Hardware Error]: CPU 4: Machine Check: 0 Bank 5: be00000000800400\n"
     "{1}[Hardware Error]: Hardware error from APEI Generic Hardware Error Source: 1\n"
     "{1}[Hardware Error]: event severity: fatal\n"
     "{1}[Hardware Error]:  Error 0, type: fatal\n"
     "EDAC MC0: 1 CE memory read error on CPU_SrcID#0_MC#1_Chan#0_DIMM#0 (channel:0 slot:0 "
     "page:0x1b3a1 offset:0x40 grain:32 syndrome:0x0)\n"
     "EDAC MC1: 2 UE memory scrubbing error on CPU_SrcID#1_MC#0_Chan#1_DIMM#0 (channel:1 slot:0 "
     "page:0x9 offset:0x0 grain:32)\n"
     "EDAC MC: UMC9 chip selects:\n",
     "1 machine_check; cpu=4; corrected=false\n"
     "2 machine_check; lines=3; severity=fatal\n"
     "5 memory_error; device=CPU_SrcID#0_MC#1_Chan#0_DIMM#0; count=1; corrected=true\n"
     "6 memory_error; device=CPU_SrcID#1_MC#0_Chan#1_DIMM#0; count=2; corrected=false\n"},
    {"what firmware says of a PCI Express device",
     "{7}[Hardware Error]: Hardware error from APEI Generic Hardware Error Source: 514\n"
     "{7}[Hardware Error]: event severity: recoverable\n"
     "{7}[Hardware Error]:  Error 0, type: recoverable\n"
     "{7}[Hardware Error]:   section_type: PCIe error\n"
     "{7}[Hardware Error]:   port_type: 0, PCIe end point\n"
     "{7}[Hardware Error]:   version: 3.0\n"
     "{7}[Hardware Error]:   command: 0x0406, status: 0x0010\n"
     "{7}[Hardware Error]:   device_id: 0000:9b:00.0\n"
     "{7}[Hardware Error]:   slot: 0\n"
     "{7}[Hardware Error]:   vendor_id: 0x10de, device_id: 0x2330\n"
     "{7}[Hardware Error]:   class_code: 030200\n"
     "vfio-pci 0000:9b:00.0: aer_layer=Transaction Layer, aer_agent=Receiver ID\n"
     // Of another section, and nothing of the device.
     "{8}[Hardware Error]: Hardware error from APEI Generic Hardware Error Source: 514\n"
     "{8}[Hardware Error]: event severity: corrected\n"
     "{8}[Hardware Error]:   section_type: PCIe error\n"
     "{8}[Hardware Error]:   slot: 0\n"
     "{8}[Hardware Error]:   section_type: memory error\n"
     "{8}[Hardware Error]:   device_id: 0000:9b:00.0\n"
     "{8}[Hardware Error]:   vendor_id: 0x10de, device_id: 0x2330\n"
     "usb 1-1: something else\n",
     "1 machine_check; lines=11; pci=0000:9b:00.0; vendor=0x10de; severity=recoverable\n"
     "12 aer; at=0000:9b:00.0\n"
     "13 machine_check; lines=7; severity=corrected\n"},
    {"storage",
     "nvme nvme2: I/O 412 QID 9 timeout, reset controller\n"
     "I/O error, dev nvme2n1, sector 88120 op 0x1:(WRITE) flags 0x8800 phys_seg 1 prio class 2\n"
     "blk_update_request: I/O error, dev sda, sector 91 op 0x0:(READ) flags 0x0 phys_seg 1 prio "
     "class 0\n"
     "Buffer I/O error on dev dm-3, logical block 5, lost async page write\n"
     "EXT4-fs error (device dm-3): ext4_find_entry:1456: inode #2: comm python3: reading directory "
     "lblock 0\n"
     "EXT4-fs (dm-3): Remounting filesystem read-only\n"
     "XFS (nvme2n1p1): Log I/O Error (0x2) detected at xlog_ioend_work+0x64/0xb0 [xfs] "
     "(fs/xfs/xfs_log.c:1378).  Shutting down filesystem.\n"
     "nfs: server filer1.example not responding, still trying\n"
     "nfs: server filer1.example OK\n"
     "LustreError: 11-0: scr1-OST0007-osc-ffff8d0: operation ost_write to node 10.9.0.7@o2ib "
     "failed: rc = -19\n"
     "Lustre: scr1-OST0007-osc-ffff8d0: Connection restored to 10.9.0.7@o2ib (at 10.9.0.7@o2ib)\n",
     "1 io_error; device=nvme2\n"
     "2 io_error; device=nvme2n1\n"
     "3 io_error; device=sda\n"
     "4 io_error; device=dm-3\n"
     "5 fs_error; process=python3; device=dm-3; fs=ext4\n"
     "6 fs_error; device=dm-3; fs=ext4\n"
     "7 fs_error; device=nvme2n1p1; fs=xfs\n"
     "8 nfs_stall; state=begin; server=filer1.example\n"
     "9 nfs_stall; state=end; server=filer1.example\n"
     "10 fs_error; fs=lustre\n"},
    {"Xids of NVLink",
     "NVRM: Xid (PCI:0000:72:00): 145, RLW_REMAP Nonfatal XC1 i0 Link 05\n"
     "NVRM: Xid (PCI:0006:01:00): 145, pid=530117, name=ray::Trainer, RLW_SRC_TRACK Fatal XC1 i0 "
     "Link 07 (0x0a0b0c02 0x00000002 0x00000000 0x00000000 0x00000000 0x00000000)\n"
     "NVRM: Xid (PCI:0005:01:00): 149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 09 (0x0a1b2c06 "
     "0x00000000 0x00000000 0x00000000 0x00000000 0x00000000)\n"
     "NVRM: Xid (PCI:0005:01:00): 149, NETIR Fatal XC0 i0 Link -1 (0x0a0f0e06 0x00000000 "
     "0x00000000 0x00000000)\n"
     "NVRM: Xid (PCI:0005:01:00): 146, TLW_RX/TLW_RX_PIPE1 Nonfatal XC0 i1 Link 17 (0x0000000b "
     "0x00000001\n"
     "NVRM: Xid (PCI:0000:ca:00): 74, pid='<unknown>', name=<unknown>, NVLink: fatal error "
     "detected on link 9(0x10000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)\n"
     "NVRM: Xid (PCI:0005:01:00): 154, GPU recovery action changed from 0x0 (None) to 0x4 (Drain "
     "and Reset)\n"
     "NVRM: Xid (PCI:0005:01:00): 154, GPU recovery action changed from 0x4 (Drain and Reset) to "
     "0x0 (None)\n"
     "NVRM: Xid (PCI:0005:01:00): 45, pid=3001, name=python3, Ch 0000000c caused by previous Xid "
     "149\n"
     "NVRM: Xid (PCI:0009:01:0\n"
     "NVRM: Xid (PCI:0005:01:00): 154 (\n",
     "1 xid; at=0000:72:00.0; code=145; link=5; fatal=false; unit=RLW_REMAP\n"
     "2 xid; at=0006:01:00.0; code=145; pid=530117; process=ray::Trainer; link=7; fatal=true; "
     "unit=RLW_SRC_TRACK\n"
     "3 xid; at=0005:01:00.0; code=149; link=9; fatal=true; unit=NETIR_LINK_EVT\n"
     "4 xid; at=0005:01:00.0; code=149; fatal=true; unit=NETIR\n"
     "5 xid; at=0005:01:00.0; code=146; link=17; fatal=false; unit=TLW_RX\n"
     "6 xid; at=0000:ca:00.0; code=74; link=9; fatal=true\n"
     "7 xid; at=0005:01:00.0; code=154; action=Drain and Reset\n"
     "8 xid; at=0005:01:00.0; code=154; action=None\n"
     "9 xid; at=0005:01:00.0; code=45; pid=3001; process=python3; caused_by_xid=149\n"
     "10 refused truncated\n"
     "11 xid; at=0005:01:00.0; code=154\n"},
    {"off the bus in three lines",
     "NVRM: The NVIDIA GPU 0000:1d:00.0\n"
     "               NVRM: (PCI ID: 10de:2330) installed in this system has\n"
     "               NVRM: fallen off the bus and is not responding to commands.\n"
     "NVRM: The NVIDIA GPU 0000:19:00.0 (PCI ID: 10de:1401)\n"
     "               NVRM: installed in this system is not supported by the\n"
     "               NVRM: NVIDIA 560.35.03 driver release.\n"
     "NVRM: The NVIDIA GPU 0000:1b:00.0\n",
     "1 gpu_off_bus; lines=3; at=0000:1d:00.0\n"
     "7 refused truncated\n"},
    {"off the bus, with others in between",
     "NVRM: The NVIDIA GPU 0000:1d:00.0\n"
     "Mar 14 01:50:17 gpu-e21 systemd[1]: Started Daily apt upgrade and clean activities.\n"
     "NVRM: (PCI ID: 10de:2330) installed in this system has\n"
     "NVRM: fallen off the bus and is not responding to commands.\n"
     "NVRM: GPU 0000:1d:00.0: GPU has fallen off the bus.\n"
     "NVRM: GPU 0000:1d:00.0: GPU serial number is 1711100000000.\n",
     "1 gpu_off_bus; lines=3; at=0000:1d:00.0\n"
     "5 gpu_off_bus; at=0000:1d:00.0\n"},
    {"SXids",
     "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 24007, Fatal, Link 41 sourcetrack timeout error "
     "(First)\n"
     "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 24007, Severity 1 Engine instance 41 Sub-engine "
     "instance 00\n"
     "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 24007, Data {0x50610002, 0x10100030, 0x00000000}\n"
     "nvidia-nvswitch0: SXid (PCI:0000:b7:00.0): 20009, Non-fatal, Link 19 RX Short Error Rate\n",
     "1 sxid; at=0000:c1:00.0; code=24007; link=41; fatal=true; unit=nvidia-nvswitch3\n"
     "4 sxid; at=0000:b7:00.0; code=20009; link=19; fatal=false; unit=nvidia-nvswitch0\n"},
    {"mlx5",
     "mlx5_core 0000:5c:00.0: poll_health:840:(pid 0): device's health compromised - reached miss "
     "count\n"
     "mlx5_core 0000:5c:00.0: print_health_info:430:(pid 0): Health issue observed, unrecoverable "
     "hardware error, severity(3) ERROR:\n"
     "mlx5_core 0000:5c:00.0: print_health_info:433:(pid 0): assert_var[0] 0x00000000\n"
     "mlx5_core 0000:5c:00.0: print_health_info:441:(pid 0): fw_ver 28.39.1002\n"
     "mlx5_core 0000:41:00.0: print_health_info:441:(pid 0): synd 0x1: firmware internal error\n"
     "mlx5_core 0000:03:00.0: wait_func:1151:(pid 112): QUERY_VPORT_COUNTER(0x770) timeout. Will "
     "cause a leak of a command resource\n"
     "mlx5_core 0000:d5:00.0: mlx5_cmd_out_err:838:(pid 4411): ACCESS_REG(0x805) op_mod(0x0) "
     "failed, status bad resource(0x5), syndrome (0x305684), err(-22)\n"
     "mlx5_core 0000:5d:00.0: mlx5_pcie_event:305:(pid 331): Detected insufficient power on the "
     "PCIe slot (31W).\n"
     "mlx5_core 0000:5d:00.0: Port module event[error]: module 0, Cable error, High Temperature\n"
     "mlx5_core 0000:5e:00.0: Port module event: module 0, Cable unplugged\n"
     "mlx5_core 0000:5e:00.0: 252.048 Gb/s available PCIe bandwidth (16.0 GT/s PCIe x16 link)\n",
     "1 nic_health; nic=0000:5c:00.0; driver=mlx5_core; fatal=true\n"
     "2 nic_health; nic=0000:5c:00.0; driver=mlx5_core; syndrome=unrecoverable hardware error; "
     "fatal=true\n"
     "5 nic_health; nic=0000:41:00.0; driver=mlx5_core; syndrome=firmware internal error\n"
     "6 nic_command; nic=0000:03:00.0; driver=mlx5_core; fatal=true\n"
     "8 nic_power; nic=0000:5d:00.0; driver=mlx5_core\n"
     "9 nic_module; nic=0000:5d:00.0; driver=mlx5_core; state=High Temperature\n"
     "10 nic_module; nic=0000:5e:00.0; driver=mlx5_core; state=Cable unplugged\n"},
    {"links and the watchdog of queues",
     "mlx5_core 0000:5c:00.0 ens1f0np0: Link down\n"
     "mlx5_core 0000:5c:00.0 ens1f0np0: Link up\n"
     "bnxt_en 0000:a1:00.1 ens3f1np1: NIC Link is Down\n"
     "NETDEV WATCHDOG: eth0 (mlx5_core): transmit queue 3 timed out\n"
     "NETDEV WATCHDOG: eth0 (mlx5_core): transmit queue 3 timed out 5120 ms\n"
     "mlx5_core 0000:5c:00.0 ens1f0np0: NETDEV WATCHDOG: CPU: 12: transmit queue 3 timed out 5120 "
     "ms\n"
     "IPv6: ADDRCONF(NETDEV_CHANGE): eth0: link becomes ready\n"
     "cali317e2eeb40: Link down\n"
     "mlx5_core 0000:5c:00.0 mlx5_5: Port: 1 Link DOWN\n"
     "mlx5_core 0000:5c:00.0 mlx5_5: Port: 1 Link INIT\n"
     "mlx5_core 0000:5c:00.0 mlx5_5: Port: 1 Link ACTIVE\n",
     "1 nic_link; nic=0000:5c:00.0; device=ens1f0np0; driver=mlx5_core; state=down\n"
     "2 nic_link; nic=0000:5c:00.0; device=ens1f0np0; driver=mlx5_core; state=up\n"
     "3 nic_link; nic=0000:a1:00.1; device=ens3f1np1; driver=bnxt_en; state=down\n"
     "4 netdev_watchdog; device=eth0; driver=mlx5_core\n"
     "5 netdev_watchdog; device=eth0; driver=mlx5_core\n"
     "6 netdev_watchdog; nic=0000:5c:00.0; device=ens1f0np0; driver=mlx5_core\n"
     "9 nic_link; nic=0000:5c:00.0; device=mlx5_5; port=1; driver=mlx5_core; state=down\n"
     "11 nic_link; nic=0000:5c:00.0; device=mlx5_5; port=1; driver=mlx5_core; state=up\n"},
    {"AMD",
     "amdgpu 0000:68:00.0: amdgpu: ring sdma1 timeout, signaled seq=411, emitted seq=413\n"
     "amdgpu 0000:68:00.0: amdgpu:  Process python3 pid 9100 thread python3 pid 9177\n"
     "amdgpu 0000:68:00.0: amdgpu: GPU reset begin!\n"
     "amdgpu 0000:68:00.0: GPU reset begin!. Source:  1\n"
     "amdgpu 0000:68:00.0: amdgpu: GPU reset succeeded, trying to resume\n"
     "amdgpu 0000:9e:00.0: {1}uncorrectable hardware error(ERREVENT_ATHUB_INTERRUPT) detected!\n",
     "1 gpu_hang; gpu=0000:68:00.0; vendor=amd\n"
     "3 gpu_reset; gpu=0000:68:00.0; vendor=amd; state=begin\n"
     "4 gpu_reset; gpu=0000:68:00.0; vendor=amd; state=begin\n"
     "5 gpu_reset; gpu=0000:68:00.0; vendor=amd; state=end\n"
     "6 gpu_hardware_error; gpu=0000:9e:00.0; vendor=amd; code=ERREVENT_ATHUB_INTERRUPT\n"},
    {"kills in other words",
     "python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0\n"
     "Memory cgroup out of memory: OOM victim 12 (x) is already exiting. Skip killing the task\n"
     "oom_reaper: unable to reap pid:4711 (x)\n"
     "Killed process 12. So it is said.\n"
     "The handbook says: Killed process 12 (python3)\n"
     "Out of memory: Killed process 12 (a) b) total-vm:1kB, anon-rss:999999999999999999999kB\n"
     "oom-kill:constraint=CONSTRAINT_CPUSET,nodemask=0,cpuset=/,mems_allowed=0,global_oom,"
     "task_memcg=/slurm/uid_1000/job_123/step_batch/task_0,task=a,pid=1,pid=2,uid=0\n"
     "oom-kill:constraint=CONSTRAINT_NONE,nodemask=0,cpuset=/,mems_allowed=0,global_oom,"
     "task_memcg=/a/job_12/step_1/task_1,task=,pid=9,uid=0\n"
     "oom-kill:constraint=CONSTRAINT_NONE,nodemask=0,cpuset=/,mems_allowed=0,global_oom\n",
     "6 oom_kill; pid=12; process=a) b; scope=machine\n"
     "7 oom_kill; pid=2; process=a,pid=1; task=0; job=123; step=batch; scope=machine\n"
     "8 oom_kill; pid=9; process=; scope=machine\n"
     "9 refused truncated\n"},
    {"a child is killed instead",
     "Out of memory: Kill process 811 (python3) score 900 or sacrifice child\n"
     "eth0: something in between\n"
     "Killed process 812 (worker) total-vm:9kB, anon-rss:6kB, file-rss:1kB, shmem-rss:0kB\n"
     "Out of memory: Kill process 821 (python3) score 900 or sacrifice child\n"
     "Out of memory: Kill process 831 (python3) score 900 or sacrifice child\n"
     "Killed process 831 (python3), UID 4, total-vm:9kB, anon-rss:6kB, file-rss:1kB\n"
     "Memory cgroup out of memory: Kill process 841 (python3) score 900 or sacrifice child\n",
     "1 oom_kill; lines=2; pid=812; process=worker; scope=machine; anon_rss_bytes=6144\n"
     "4 refused truncated\n"
     "5 oom_kill; lines=2; pid=831; process=python3; scope=machine; anon_rss_bytes=6144\n"
     "7 refused truncated\n"},
    {"faults in other words",
     "python3[4711]: unhandled level 2 translation fault (11) at 0x00000010, esr 0x92000006, in "
     "libnccl.so.2[ffff8000+c9a4000]\n"
     "python3[4712]: unhandled exception: DABT (lower EL), ESR 0x0000000092000007, level 3 "
     "translation fault in libcuda.so.1[ffff8000,ffff7000+c9a4000]\n"
     "a[1]: unhandled level 0 alignment fault (7) at 0x1, esr 0x1, in a[1+1]\n"
     "a[1]: unhandled something\n"
     "server[801]: unhandled exception: of the program\n"
     "traps: a: b[77] trap divide error ip:1 sp:2 error:0 in a[1+1]\n"
     "traps: c[78] trap alignment check ip:1 sp:2 error:0\n"
     "traps: c[79] trap something new ip:1 sp:2 error:0\n"
     "x: y[80]: segfault at 1 ip 2 sp 3 error 4 in a[b]c.so[1+1]\n"
     "a name that is too long[81]: segfault at 1 ip 2 sp 3 error 4\n"
     "no process: segfault at 1 ip 2 sp 3 error 4\n"
     "general protection fault, probably for non-canonical address 0xdead: 0000 [#1] SMP\n"
     "general protection fault: 0000 [#1] SMP\n"
     "Oops: general protection fault, probably for non-canonical address 0xdead: 0000 [#1] SMP\n",
     "1 segfault; pid=4711; process=python3; signal=11; library=libnccl.so.2\n"
     "2 segfault; pid=4712; process=python3; signal=11; library=libcuda.so.1\n"
     "3 trap; pid=1; process=a; signal=7; library=a\n"
     "6 trap; pid=77; process=a: b; signal=8; library=a\n"
     "7 trap; pid=78; process=c; signal=7\n"
     "8 trap; pid=79; process=c\n"
     "9 segfault; pid=80; process=x: y; signal=11; library=a\n"
     "12 kernel_oops\n"
     "13 kernel_oops\n"
     "14 kernel_oops\n"},
    {"the machine in other words",
     "rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:\n"
     "rcu: INFO: rcu_preempt detected expedited stalls on CPUs/tasks: { 3-.... }\n"
     "rcu: INFO: something else, and BUG: unable to handle the input; a kernel BUG at night\n"
     "INFO: task X:1 is blocked on a mutex likely owned by task Y:2.\n"
     "INFO: task a:b:3 blocked in I/O wait for more than 122 seconds.\n"
     "BUG: kernel NULL pointer dereference, address: 0000000000000008\n"
     "kernel BUG at mm/slub.c:4321!\n"
     "Oops: invalid opcode: 0000 [#1] PREEMPT SMP\n"
     "Unable to handle kernel paging request at virtual address ffff8000\n"
     "Internal error: Oops: 96000004 [#1] SMP\n"
     "---[ end Kernel panic - not syncing: Fatal exception ]---\n"
     "mce: [Hardware Error]: Machine check events logged\n"
     "mce: [Hardware Error]: CPU 5: Machine Check: 0 Bank 7: 8c00004000010090\n"
     "{2}[Hardware Error]: event severity: corrected\n"
     "{3}[Hardware Error]: Hardware error from APEI Generic Hardware Error Source: 0\n"
     "usb 1-1: something else\n"
     "Memory failure: 0x1234: recovery action for dirty LRU page: Recovered\n"
     "Memory failure: 0x1234: Killing python3:4711 due to hardware memory corruption\n",
     "1 soft_lockup\n"
     "2 soft_lockup\n"
     "5 hung_task; pid=3; process=a:b; seconds=122\n"
     "6 kernel_oops\n"
     "7 kernel_oops\n"
     "9 kernel_oops\n"
     "12 machine_check\n"
     "13 machine_check; cpu=5; corrected=true\n"
     "14 machine_check; severity=corrected\n"
     "15 refused truncated\n"
     "17 memory_error; state=Recovered; corrected=false\n"},
    {"storage in other words",
     "critical medium error, dev sdb, sector 12\n"
     "critical of what it reads, dev sdb, sector 12\n"
     "Buffer I/O error on device sda1, logical block 5\n"
     "nvme nvme0: I/O tag 412 (119c) opcode 0x1 (I/O Cmd) QID 9 timeout, reset controller\n"
     "nvme nvme0: I/O 412 QID 9 timeout, completion polled\n"
     "nvme nvme0: Disabling device after reset failure: -19\n"
     "nvme nvme0: 63/0/0 default/read/poll queues\n"
     "md/raid1:md0: Disk failure on sda3, disabling device.\n"
     "block nvme0n1: no available path - failing I/O\n"
     "EXT4-fs (dm-3): mounted filesystem with ordered data mode. Quota mode: none.\n"
     "XFS (nvme0n1p1): Mounting V5 Filesystem\n"
     "XFS (nvme0n1p1): Corruption of in-memory data (0x8) detected at xfs_defer_finish_noroll\n"
     "BTRFS error (device sda1: state EA): bdev /dev/sda1 errs: wr 1, rd 0\n"
     "BTRFS: error (device sda1) in btrfs_commit_transaction:2494: errno=-5 IO failure\n"
     "BTRFS info (device sda1): disk space caching is enabled\n"
     "nfs: server filer1 not responding, timed out\n"
     "nfs: server filer1 is new\n"
     "LustreError: 4711:0:(file.c:243:ll_close_inode_openhandle()) close failed: rc = -5\n"
     "Lustre: lfs-OST0001-osc-ffff8: Connection to lfs-OST0001 (at 10.0.0.9@o2ib) was lost; in "
     "progress operations using this service will wait for recovery to complete\n",
     "1 io_error; device=sdb\n"
     "3 io_error; device=sda1\n"
     "4 io_error; device=nvme0\n"
     "6 io_error; device=nvme0\n"
     "8 io_error; device=sda3\n"
     "9 io_error; device=nvme0n1\n"
     "12 fs_error; device=nvme0n1p1; fs=xfs\n"
     "13 fs_error; device=sda1; fs=btrfs\n"
     "14 fs_error; device=sda1; fs=btrfs\n"
     "16 nfs_stall; state=begin; server=filer1\n"
     "18 fs_error; pid=4711; fs=lustre\n"
     "19 fs_error; fs=lustre; server=lfs-OST0001\n"},
    {"network cards in other words",
     "mlx5_core 0000:5c:00.1: Fatal error 3 detected\n"
     "mlx5_core 0000:5c:00.1: mlx5_health_try_recover:335:(pid 9): PCI slot is unavailable\n"
     "mlx5_core 0000:5c:00.1: print_health_info:441:(pid 0): synd 0x0: \n"
     "mlx5_core 0000:5c:00.1: Health issue observed, High temperature, severity(4) WARNING:\n"
     "mlx5_core 0000:5c:00.1: cmd_exec timeout\n"
     "mlx5_core 0000:5c:00.1 ens1: TX timeout detected\n"
     "mlx5_core 0000:5c:00.1: firmware version: 28.39.1002\n"
     "mlx5_core in a sentence: Link down\n"
     "ice 0000:5c:00.0: NIC Link is Down\n"
     "igb 0000:04:00.0 eno1: igb: eno1 NIC Link is Up 1000 Mbps Full Duplex\n"
     "veth1: NIC Link is Down\n"
     "pcieport 0000:97:01.0: pciehp: Slot(7): Link Down\n"
     "bond0: (slave eth1): link status definitely down, disabling slave\n"
     "bond0: (slave eth1): link status definitely up, 100000 Mbps full duplex\n"
     "bonding: bond0: link status definitely down for interface eth2, disabling it\n"
     "NETDEV WATCHDOG: eth0\n",
     "1 nic_health; nic=0000:5c:00.1; driver=mlx5_core; fatal=true\n"
     "2 nic_health; nic=0000:5c:00.1; driver=mlx5_core; fatal=true\n"
     "4 nic_health; nic=0000:5c:00.1; driver=mlx5_core; syndrome=High temperature; fatal=false\n"
     "5 nic_command; nic=0000:5c:00.1; driver=mlx5_core\n"
     "7 node_state; nic=0000:5c:00.1; driver=mlx5_core; state=up\n"
     "9 nic_link; nic=0000:5c:00.0; driver=ice; state=down\n"
     "10 nic_link; nic=0000:04:00.0; device=eno1; driver=igb; state=up\n"
     "13 nic_link; device=eth1; state=down\n"
     "14 nic_link; device=eth1; state=up\n"
     "15 nic_link; device=eth2; state=down\n"
     "16 refused truncated\n"},
    {"AMD in other words",
     "amdgpu 0000:68:00.0: amdgpu: ring gfx_0.0.0 timeout, but soft recovered\n"
     "[drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring gfx timeout, signaled seq=1, emitted seq=3\n"
     "amdgpu 0000:68:00.0: amdgpu: GPU reset(2) succeeded!\n"
     "amdgpu 0000:68:00.0: amdgpu: GPU reset(3) failed\n"
     "amdgpu 0000:68:00.0: amdgpu: GPU reset end with ret = -62\n"
     "amdgpu 0000:68:00.0: amdgpu: VRAM is lost due to GPU reset!\n"
     "amdgpu 0000:68:00.0: {1}[Hardware Error]: Accelerator Check Architecture events logged\n"
     "amdgpu 0000:68:00.0: amdgpu: socket: 0 4 uncorrectable hardware errors detected in gfx "
     "block\n"
     "amdgpu 0000:68:00.0: amdgpu: 0 uncorrectable hardware errors detected in umc block\n"
     "amdgpu 0000:68:00.0: amdgpu: 9 correctable hardware errors detected in umc block\n"
     "amdgpu 0000:68:00.0: amdgpu: {7}socket: 0, die: 1, 2 new uncorrectable hardware errors "
     "detected in umc block\n"
     "amdgpu 0000:68:00.0: amdgpu: {7}socket: 0, die: 1, 2 uncorrectable hardware errors detected "
     "in total in umc block\n"
     "amdgpu 0000:68:00.0: amdgpu: Ring gfx_0.0.0 reset succeeded\n"
     "amdgpu 0000:68:00.0: amdgpu: Ring gfx_0.0.0 reset failed\n",
     "2 gpu_hang; vendor=amd\n"
     "3 gpu_reset; gpu=0000:68:00.0; vendor=amd; state=end\n"
     "4 gpu_reset; gpu=0000:68:00.0; vendor=amd; state=failed\n"
     "5 gpu_reset; gpu=0000:68:00.0; vendor=amd; code=-62; state=end\n"
     "8 gpu_hardware_error; gpu=0000:68:00.0; vendor=amd; unit=gfx; count=4\n"
     "11 gpu_hardware_error; gpu=0000:68:00.0; vendor=amd; unit=umc; count=2\n"
     "13 gpu_hang; gpu=0000:68:00.0; vendor=amd; state=end\n"},
    {"SXids and the lines behind them",
     "nvidia-nvswitch2: SXid (PCI:0000:5c:00.0): 20034, Fatal, Link 44 LTSSM Fault Up\n"
     "nvidia-nvswitch2: SXid (PCI:0000:5c:00.0): 20034, Severity 1 Engine instance 44 Sub-engine "
     "instance 00\n"
     "nvidia-nvswitch2: SXid (PCI:0000:5c:00.0): 20034, Data {0x0000002b, 0x0000002b}\n"
     "nvidia-nvswitch1: SXid (PCI:0000:5d:00.0): 12028, Severity 0 Engine instance 07 Sub-engine "
     "instance 00\n"
     "nvidia-nvswitch1: SXid (PCI:0000:5d:00.0): 10006, Thermal shutdown\n"
     "nvidia-nvswitch1: SXid (PCI:0000:5d:00.0): 20034, no word on severity\n",
     "1 sxid; at=0000:5c:00.0; code=20034; link=44; fatal=true; unit=nvidia-nvswitch2\n"
     "5 sxid; at=0000:5d:00.0; code=10006; unit=nvidia-nvswitch1\n"},
    {"banks of AMD's check architecture: corrected, deferred, not valid, uncorrected, cut",
     "amdgpu 0000:9e:00.0: {7}[Hardware Error]: ACA[01/01].CONTROL=0x0000000000000000\n"
     "amdgpu 0000:9e:00.0: {7}[Hardware Error]: ACA[01/02].STATUS=0x9c2040000000011b\n"
     "amdgpu 0000:9e:00.0: {7}[Hardware Error]: ACA[02/02].STATUS=0x9c2030000000011b\n"
     "amdgpu 0000:9e:00.0: {1}[Hardware Error]: aca entry[00].STATUS=0x98000800003e0000\n"
     "amdgpu 0000:9e:00.0: {1}[Hardware Error]: aca entry[00].STATUS=0x2000000000000000\n"
     "amdgpu 0000:9e:00.0: {8}[Hardware Error]: ACA[01/01].STATUS=0xb000000000000137\n"
     "amdgpu 0000:9e:00.0: amdgpu: {9}[Hardware Error]: aca entry[00].STATUS=0x8200000000000137\n"
     "amdgpu 0000:9e:00.0: {8}[Hardware Error]: ACA[01/01].STATUS=0xb0000000\n",
     "6 gpu_hardware_error; gpu=0000:9e:00.0; vendor=amd\n"
     "7 gpu_hardware_error; gpu=0000:9e:00.0; vendor=amd\n"
     "8 refused truncated\n"},
    {"programs in a kernel log",
     "Process 70113 (python3) of user 0 dumped core.\n"
     "Process 70113 (a) b) of user 0 dumped core.\n"
     "Process 70113 has ended\n"
     "detected NVSwitch fatal error 24007 on fid 0 on NVSwitch pci bus id 00000000:C1:00.0 "
     "physical "
     "id 2 port 41\n"
     "detected NVSwitch non-fatal error 12028 on fid 0 on NVSwitch pci bus id 00000000:86:00.0 "
     "physical id 3 port 33\n"
     "detected NVSwitch fatal error 0 on fid 0\n"
     "detected NVSwitch topology\n",
     "1 core_dumped; pid=70113; process=python3\n"
     "2 core_dumped; pid=70113; process=a) b\n"
     "4 sxid; at=0000:c1:00.0; code=24007; link=41; fatal=true\n"
     "5 sxid; at=0000:86:00.0; code=12028; link=33; fatal=false\n"
     "6 refused truncated\n"},
};
enum { CASE_COUNT = sizeof CASES / sizeof *CASES };

static struct said said, cut;

static void teardown(void) {
    intern_release();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

START_TEST(cases) {
    said_lines(&said, &decoder_kernel_log, slice_of(CASES[_i].lines), FRONT, "");
    ck_assert_msg(strcmp(said.text, CASES[_i].said) == 0, "%s:\n%s", CASES[_i].title, said.text);
    said_lines(&said, &decoder_kernel_log, slice_of(CASES[_i].lines), FRONT, "\r");
    ck_assert_msg(strcmp(said.text, CASES[_i].said) == 0, "%s, with \\r:\n%s", CASES[_i].title,
                  said.text);
}
END_TEST

// Without a time nobody knows when it was: each event becomes a refusal.
START_TEST(a_time_is_needed) {
    static const char lines[] =
        "oom_reaper: reaped process 9 (a), now anon-rss:0kB, file-rss:0kB, shmem-rss:0kB\n"
        "mlx5_core 0000:5c:00.0: poll_health:840:(pid 0): device's health compromised - reached "
        "miss count\n"
        "nvidia-nvswitch0: open (major=506)\n";
    said_lines(&said, &decoder_kernel_log, SLICE(lines), "", "");
    ck_assert_str_eq(said.text, "1 refused missing_timestamp\n2 refused missing_timestamp\n");
}
END_TEST

// What a process of ROCm writes has the time of the input.
START_TEST(words_of_the_runtime) {
    static const char lines[] =
        "HW Exception by GPU node-5 (Agent handle: 0x55d1c0ffee00) reason :GPU Hang\n"
        "Memory access fault by GPU node-3 (Agent handle: 0x55d1c0ffee00) on address "
        "0x7f1000000000. "
        "Reason: Unknown.\n"
        "HW Exception by GPU node-5 (Agent handle: 0x55d1c0ffee00) reason :\n"
        "HW Exception by GPU node-x\n";
    static const char want[] =
        "1 gpu_hang; timeless; vendor=amd; node_of_topology=5; reason=GPU Hang\n"
        "2 cuda_error; timeless; vendor=amd; node_of_topology=3; error=Memory access fault\n"
        "3 refused truncated\n";
    said_lines(&said, &decoder_log, SLICE(lines), "", "");
    ck_assert_str_eq(said.text, want);
}
END_TEST

// Links and modules in the first minute are how the boot found them.
START_TEST(links_at_boot) {
    static const char lines[] =
        "mlx5_core 0000:5c:00.0 ens1f0np0: Link down\n"
        "bnxt_en 0000:a1:00.1 ens3f1np1: NIC Link is Down\n"
        "mlx5_core 0000:5e:00.0: Port module event: module 0, Cable unplugged\n"
        "mlx5_core 0000:5e:00.0: Fatal error 3 detected\n";
    said_lines(&said, &decoder_kernel_log, SLICE(lines), "[   59.999999] ", "");
    ck_assert_str_eq(said.text, "4 nic_health; nic=0000:5e:00.0; driver=mlx5_core; fatal=true\n");
    said_lines(&said, &decoder_kernel_log, SLICE(lines), "[   60.000000] ", "");
    ck_assert_str_eq(
        said.text,
        "1 nic_link; nic=0000:5c:00.0; device=ens1f0np0; driver=mlx5_core; state=down\n"
        "2 nic_link; nic=0000:a1:00.1; device=ens3f1np1; driver=bnxt_en; state=down\n"
        "3 nic_module; nic=0000:5e:00.0; driver=mlx5_core; state=Cable unplugged\n"
        "4 nic_health; nic=0000:5e:00.0; driver=mlx5_core; fatal=true\n");
}
END_TEST

// -- cut anywhere ---------------------------------------------------------------------------------

// Whether the line of `whole` that begins with the same number and kind has the same fact.
static bool is_said(const char *whole, const char *kind, size_t kind_size, const char *fact,
                    size_t fact_size) {
    while (*whole != '\0') {
        const char *end = strchr(whole, '\n');
        if (strncmp(whole, kind, kind_size) == 0 &&
            (whole[kind_size] == ';' || whole[kind_size] == '\n')) {
            const char *found = memmem(whole, (size_t)(end - whole), fact, fact_size);
            while (found != NULL && found[fact_size] != ';' && found[fact_size] != '\n')
                found = memmem(found + 1, (size_t)(end - found - 1), fact, fact_size);
            return found != NULL;
        }
        whole = end + 1;
    }
    return false;
}

// Facts whose end no wording marks: a number or a text at the end of the line.
static bool is_open(const char *fact) {
    static const char *const open[] = {
        "; cause=",    "; cpu=",   "; link=",   "; code=",  "; caused_by_xid=",
        "; syndrome=", "; state=", "; reason=", "; lines=", "; truncated="};
    for (size_t i = 0; i < sizeof open / sizeof *open; i++)
        if (strncmp(fact, open[i], strlen(open[i])) == 0)
            return true;
    return false;
}

// Every fact of `part` is one of `whole`.
static void check_part(const char *part, const char *whole, const char *title, size_t size) {
    for (const char *line = part; *line != '\0'; line = strchr(line, '\n') + 1) {
        size_t kind = strcspn(line, ";\n");
        if (memmem(line, kind, " refused ", 9) != NULL)
            continue;
        const char *fact = line + kind;
        while (*fact == ';') {
            size_t length = 1 + strcspn(fact + 1, ";\n");
            ck_assert_msg(is_open(fact) || is_said(whole, line, kind, fact, length),
                          "%s, cut at %zu: %.*s", title, size, (int)strcspn(line, "\n"), line);
            fact += length;
        }
    }
}

START_TEST(cut_anywhere) {
    struct slice lines = slice_of(CASES[_i].lines);
    said_lines(&said, &decoder_kernel_log, lines, FRONT, "");
    for (size_t size = 0; size < lines.size; size++) {
        said_lines(&cut, &decoder_kernel_log, (struct slice){lines.data, size}, FRONT, "");
        check_part(cut.text, said.text, CASES[_i].title, size);
    }
}
END_TEST

// -- several writers ------------------------------------------------------------------------------

static void message(struct said_source *source, const char *text, uint64_t key, uint64_t position,
                    enum frame_origin origin) {
    struct frame frame;
    frame_clear(&frame, slice_of(text), position);
    frame.time_ns = UINT64_C(1773453017000000000);
    frame.key = key;
    frame.origin = origin;
    source->event = (struct event){.position = position, .lines = 1, .rank = RANK_NONE};
    said_take(&said, source,
              log_decode_message(source->state, &frame, false, &source->arena, &source->event,
                                 &source->fault));
    said_rest(&said, source);
}

START_TEST(hosts_are_kept_apart) {
    static const struct {
        const char *text;
        uint64_t key;
    } lines[] = {
        {"NVRM: The NVIDIA GPU 0000:1d:00.0", 1},
        {"NVRM: The NVIDIA GPU 0000:1e:00.0", 2},
        {"Out of memory: Kill process 811 (python3) score 900 or sacrifice child", 2},
        {"{1}[Hardware Error]: Hardware error from APEI Generic Hardware Error Source: 1", 1},
        {"NVRM: (PCI ID: 10de:2330) installed in this system has", 2},
        {"{1}[Hardware Error]: Hardware error from APEI Generic Hardware Error Source: 1", 2},
        {"{1}[Hardware Error]: event severity: fatal", 1},
        {"NVRM: (PCI ID: 10de:2330) installed in this system has", 1},
        {"{1}[Hardware Error]: event severity: corrected", 2},
        {"Killed process 9 (a) total-vm:1kB, anon-rss:1kB, file-rss:0kB, shmem-rss:0kB", 1},
        {"NVRM: fallen off the bus and is not responding to commands.", 2},
        {"Killed process 811 (python3) total-vm:1kB, anon-rss:1kB, file-rss:0kB", 2},
        {"NVRM: fallen off the bus and is not responding to commands.", 1},
    };
    struct said_source source = said_open(&decoder_kernel_log);
    said = (struct said){.size = 0};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        message(&source, lines[i].text, lines[i].key, i + 1, ORIGIN_KERNEL);
        // A program of the same host in between belongs to nothing.
        message(&source, "Started Daily apt upgrade and clean activities.", lines[i].key, 90 + i,
                ORIGIN_PROGRAM);
    }
    said_finish(&said, &source);
    said_close(&source);
    said_sort(&said);
    ck_assert_str_eq(
        said.text,
        "1 gpu_off_bus; lines=3; at=0000:1d:00.0\n"
        "2 gpu_off_bus; lines=3; at=0000:1e:00.0\n"
        "3 oom_kill; lines=2; pid=811; process=python3; scope=machine; anon_rss_bytes=1024\n"
        "4 machine_check; lines=2; severity=fatal\n"
        "6 machine_check; lines=2; severity=corrected\n"
        "10 oom_kill; pid=9; process=a; anon_rss_bytes=1024\n");
}
END_TEST

// A report of which the rest does not come is given up, so that the source need not be read again
// from its first line.
START_TEST(a_report_is_not_waited_for) {
    struct said_source source = said_open(&decoder_kernel_log);
    said = (struct said){.size = 0};
    message(&source, "NVRM: The NVIDIA GPU 0000:1d:00.0", 1, 1, ORIGIN_KERNEL);
    for (uint64_t i = 1; i <= GATHER_PASSED_MAX; i++)
        message(&source, "usb 1-1: something else", 1, 1 + i, ORIGIN_KERNEL);
    // Of another writer.
    message(&source, "usb 1-1: something else", 2, 1 + GATHER_PASSED_MAX, ORIGIN_KERNEL);
    ck_assert(log_holds(source.state));
    ck_assert_uint_eq(said.size, 0);
    message(&source, "usb 1-1: something else", 1, 2 + GATHER_PASSED_MAX, ORIGIN_KERNEL);
    ck_assert(!log_holds(source.state));
    ck_assert_str_eq(said.text, "1 refused truncated\n");
    said_close(&source);
}
END_TEST

// -- any bytes ------------------------------------------------------------------------------------

START_TEST(names_that_are_no_text) {
    static const char lines[] =
        "py\xefthon[91]: segfault at 8 ip 1 sp 1 error 6 in libcuda.so.560\xff[7f+1b]\n";
    said_lines(&said, &decoder_kernel_log, SLICE(lines), FRONT, "");
    ck_assert_str_eq(said.text,
                     "1 segfault; pid=91; process=py?thon; signal=11; library=libcuda.so.560?\n");
}
END_TEST

// Only the front of a line that no kernel writes is looked at.
START_TEST(a_line_of_a_mebibyte) {
    static const char *const parts[] = {"task ",
                                        "trap ",
                                        "oom-kill:constraint=,pid=,uid=",
                                        "a ",
                                        "[Hardware Error]: ",
                                        "Killed process 1 (",
                                        "\xff"};
    enum { SIZE = 1 << 20 };
    char *line = malloc(SIZE);
    struct said_source source = said_open(&decoder_kernel_log);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        size_t size = strlen(parts[i]);
        for (size_t at = 0; at < SIZE; at++)
            line[at] = parts[i][at % size];
        said = (struct said){.size = 0};
        said_record(&said, &source, (struct slice){line, SIZE}, 1);
        ck_assert_msg(said.size < 64, "%s", said.text);
        arena_reset(&source.arena);
    }
    said_close(&source);
    free(line);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("kernel_messages");
    TCase *lines = tcase_create("lines");
    tcase_add_checked_fixture(lines, NULL, teardown);
    tcase_add_loop_test(lines, cases, 0, CASE_COUNT);
    tcase_add_loop_test(lines, cut_anywhere, 0, CASE_COUNT);
    tcase_add_test(lines, a_time_is_needed);
    tcase_add_test(lines, words_of_the_runtime);
    tcase_add_test(lines, links_at_boot);
    tcase_add_test(lines, hosts_are_kept_apart);
    tcase_add_test(lines, a_report_is_not_waited_for);
    tcase_add_test(lines, names_that_are_no_text);
    tcase_add_test(lines, a_line_of_a_mebibyte);
    suite_add_tcase(suite, lines);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
