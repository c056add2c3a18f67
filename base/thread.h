// SPDX-License-Identifier: Apache-2.0
// Names of threads, for those who look at a process from outside (top -H, gdb, perf).
#pragma once

// The calling thread is called "in file/ranks", as far as the system's 15 bytes go.
void thread_name(const char *what, const char *of);
