# SPDX-License-Identifier: Apache-2.0
"""Memory that is there when a program asks for it.

The host of a virtual machine may have lent out what is free in it, and takes microseconds to give
a page back: as long as culprit takes for ten events. Whoever asks first pays, and the next one does
not, so that figures differ by a third. So each program is started behind one that took half a GiB
and gave it back.
"""
import mmap
import os

PROVIDED_BYTES, PAGE_BYTES = 1 << 29, 4096


def provide_memory():
    """In a process of its own: the most that this one held would be told of its children, too."""
    child = os.fork()
    if child == 0:
        try:
            touch()
        finally:
            os._exit(0)
    os.waitpid(child, 0)


def touch():
    with mmap.mmap(-1, PROVIDED_BYTES) as memory:
        try:
            memory.madvise(mmap.MADV_HUGEPAGE)
        except OSError:
            pass  # a kernel without them: small pages do
        for at in range(0, PROVIDED_BYTES, PAGE_BYTES):
            memory[at] = 1
