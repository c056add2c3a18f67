// SPDX-License-Identifier: Apache-2.0
// The types of parts: PATTERN_TYPE(constant, "name", "what it takes"). No include guard: that is
// how it is used.
// clang-format off
PATTERN_TYPE(INT, "int", "digits, with a minus perhaps")
PATTERN_TYPE(DECIMAL, "decimal", "digits with a point among them, perhaps")
PATTERN_TYPE(HEX, "hex", "hexadecimal digits, behind 0x perhaps")
PATTERN_TYPE(NAME, "name", "letters, digits, '_', '.', '-': the name of a host or a program")
PATTERN_TYPE(REPLICA, "replica", "a name, '/' and a number, as in trainer/3")
PATTERN_TYPE(WORD, "word", "anything up to a blank, or to what stands behind the part in the row")
PATTERN_TYPE(ADDRESS, "address", "an IP address with a port perhaps, in square brackets perhaps")
PATTERN_TYPE(PCI, "pci", "a PCI address")
PATTERN_TYPE(SIGNAL, "signal", "a signal: 9, -9, SIGKILL, Killed")
PATTERN_TYPE(TIME, "time", "a date with a time of day, in any of the forms that logs have")
PATTERN_TYPE(CLOCK, "clock", "a time of day: 10:11:12, with a fraction perhaps")
PATTERN_TYPE(UNIX, "unix", "seconds since 1970, with a fraction perhaps")
PATTERN_TYPE(LIST, "list", "numbers with ',', '-' and blanks between them")
PATTERN_TYPE(THREAD, "thread", "the name of a thread: at most 15 bytes, blanks among them perhaps, up to what stands behind the part in the row")
PATTERN_TYPE(TEXT, "text", "anything, as little as possible; to the end of the line where nothing follows in the row")
#undef PATTERN_TYPE
