// SPDX-License-Identifier: Apache-2.0
// Python exceptions in the log of a rank: tracebacks, gathered over their lines, and lines that are
// an exception by themselves. What the reason says makes the kind: a GPU's error, a child that was
// killed, a peer that was lost, else `exception`.
#pragma once

#include "receivers/decode/app_log/traceback.h"
#include "receivers/decode/line/reader.h"

extern const struct line_reader READER_TRACEBACK;
// After the readers that know exceptions by their message: takes what they do not.
extern const struct line_reader READER_EXCEPTION;

// Who is asked about the line that tells the reason of a traceback; NULL at the end (readers.c).
extern const struct line_reader *const REASON_READERS[];
// Who is asked about the line above a traceback, and the lines in it: `read` adds to the reading
// whose it is.
extern const struct line_reader *const OWNER_READERS[];

// The facts that an exception's type and message tell, into `reading`, which has begun: exception,
// message, signal, exit code, pid, victim. `forms` say what it means; NULL: those that are built
// in.
void exception_facts(const struct forms *forms, const struct raised *raised,
                     struct reading *reading);
// Of a chain: what ended the process, where that is not the reason.
void exception_last(const struct traceback *traceback, struct reading *reading);
// The message alone.
void exception_message(struct slice message, struct reading *reading);
