// SPDX-License-Identifier: Apache-2.0
// What an exception means: rows of the sort `meaning` say by its type, its words and its place
// whose end it tells of.
//
//     meaning site_quota
//       type   QuotaExceeded
//       says   the quota of this project
//       role   own
//       cause  quota
//       sample site.QuotaExceeded: the quota of this project is used up
//       gives  exception=site.QuotaExceeded message=the quota of this project is used up victim=no
//
// A row counts where each of its fields has one of its texts; of several the first.
#pragma once

#include "receivers/decode/forms/rows.h"

struct forms;

// What was raised.
struct uttered {
    struct slice type;    // with its module; data NULL: not known
    struct slice message; // what it says
    struct slice file;    // where it was raised; data NULL: not known
    enum meaning_scope scope;
};

// The row that says what it means; NULL: none. Without `forms`: of those that are built in.
// O(message) for each text of all meanings, of which users have a bounded number. Any thread.
const struct form *forms_meaning(const struct forms *forms, const struct uttered *uttered);
// The same of these rows.
const struct form *meanings_find(const struct form *const *rows, uint32_t count,
                                 const struct uttered *uttered);
// Whether the end that it tells of followed from another process's: 1, or 0; -1: nobody knows.
int meaning_victim(const struct form *form);
