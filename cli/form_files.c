// SPDX-License-Identifier: Apache-2.0
// Reads files of rows and makes one set of them.
//
// All files together are bounded, besides each by itself (FORMS_SIZE_MAX) and the number of rows
// (FORMS_MAX): what is made of them stays in memory.
#include "cli/form_files.h"

#include "base/buffer.h"
#include "base/memory.h"
#include "config/problem.h"
#include "receivers/decode/forms/forms.h"
#include "receivers/decode/forms/rows.h"
#include "receivers/decode/log/form_check.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { ALL_SIZE_MAX = 16 << 20 };

// The files that are still thought to be right.
struct form_texts {
    const char *paths[PLAN_FORM_FILES_MAX];
    struct slice texts[PLAN_FORM_FILES_MAX];
    struct buffer buffers[PLAN_FORM_FILES_MAX];
    uint32_t count;
};

// One byte more than a file may have, so that it is refused for its size.
static bool read_whole(const char *path, struct buffer *into) {
    char block[16384];
    ssize_t got = 1;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    while (got > 0 && into->size <= FORMS_SIZE_MAX) {
        got = read(file, block, sizeof block);
        if (got > 0)
            buffer_append(into, (struct slice){block, (size_t)got});
    }
    int reason = errno;
    close(file);
    errno = reason;
    return got >= 0;
}

static bool read_files(const struct plan_form_file *files, uint32_t count, struct form_texts *texts,
                       struct problem_list *problems) {
    size_t size = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct buffer *buffer = &texts->buffers[i];
        buffer_init(buffer, FORMS_SIZE_MAX + 65536);
        if (!read_whole(files[i].path, buffer))
            problem_add_at(problems, files[i].where, "forms", "%s cannot be read: %s",
                           files[i].path, strerror(errno));
        texts->paths[i] = files[i].path;
        texts->texts[i] = buffer_slice(buffer);
        texts->count++;
        size += buffer->size;
        if (size > ALL_SIZE_MAX) {
            problem_add_at(problems, files[i].where, "forms",
                           "files of rows have more than %d MiB together", ALL_SIZE_MAX >> 20);
            return false;
        }
    }
    return problems->count == 0;
}

static void add_fault(struct problem_list *problems, const struct form_fault *fault) {
    problem_add_at(problems, (struct location){fault->file, fault->line, fault->column}, "forms",
                   "%s", fault->words);
}

static void leave_out(struct form_texts *texts, const char *path) {
    uint32_t i = 0;
    while (i < texts->count && strcmp(texts->paths[i], path) != 0)
        i++;
    assert(i < texts->count);
    texts->count--;
    memmove(&texts->paths[i], &texts->paths[i + 1], (texts->count - i) * sizeof *texts->paths);
    memmove(&texts->texts[i], &texts->texts[i + 1], (texts->count - i) * sizeof *texts->texts);
}

// The set, or NULL with the first problem of each file: a file that is wrong is left out, and the
// others are tried without it.
static struct forms *make_set(struct form_texts *texts, struct problem_list *problems) {
    struct form_fault fault;
    bool right = true;
    struct forms *forms;
    while ((forms = forms_make(texts->paths, texts->texts, texts->count, &fault)) == NULL) {
        add_fault(problems, &fault);
        leave_out(texts, fault.file);
        right = false;
    }
    if (right)
        return forms;
    forms_free(forms);
    return NULL;
}

static bool check_samples(const struct forms *forms, struct problem_list *problems) {
    struct form_fault fault;
    bool right = true;
    for (uint32_t i = 0; i < forms_count(forms); i++) {
        const struct form *form = forms_at(forms, i);
        if (form->is_builtin || form_check(forms, form, &fault))
            continue;
        add_fault(problems, &fault);
        right = false;
    }
    return right;
}

static struct forms *make(const struct plan_form_file *files, uint32_t count, bool with_samples,
                          struct problem_list *problems) {
    struct form_texts *texts = memory_zero(1, sizeof *texts);
    struct forms *forms = NULL;
    assert(count <= PLAN_FORM_FILES_MAX);
    if (read_files(files, count, texts, problems))
        forms = make_set(texts, problems);
    for (uint32_t i = 0; i < count; i++)
        buffer_release(&texts->buffers[i]);
    memory_give(texts);
    if (forms == NULL || !with_samples || check_samples(forms, problems))
        return forms;
    forms_free(forms);
    return NULL;
}

const struct form_maker FORM_FILES = {.make = make, .release = forms_free};
