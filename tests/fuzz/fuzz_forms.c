// SPDX-License-Identifier: Apache-2.0
// Any text as a file of rows: it is refused with a place in it and a reason, or rows are made of it
// that can be tried on their own samples.
//
// Rows that are made read the samples twice and say the same.
#include "base/intern.h"
#include "base/text/cut.h"
#include "receivers/decode/forms/forms.h"
#include "receivers/decode/log/form_check.h"
#include "tests/fuzz/fuzz.h"

enum { SIZE_MAX_TRIED = 64 << 10 };

// The place lies in the text, or behind one of its lines.
static void require_place(struct slice text, const struct form_fault *fault) {
    struct slice line = {text.data, 0};
    require(fault->line > 0 && fault->column > 0 && fault->words[0] != '\0');
    for (uint32_t i = 0; i < fault->line && text.size > 0; i++)
        line = text_take_line(&text);
    require(fault->column <= line.size + 1);
}

static void check(const struct forms *forms, const struct form *form) {
    struct form_fault first = {.words = ""}, second = {.words = ""};
    bool right = form_check(forms, form, &first);
    require(form_check(forms, form, &second) == right && strcmp(first.words, second.words) == 0);
    require(right || (first.words[0] != '\0' && first.line >= form->line));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size > SIZE_MAX_TRIED)
        return 0;
    const char *file = "rows";
    struct slice text = fuzz_block((struct slice){(const char *)data, size});
    struct form_fault fault = {.words = ""};
    struct forms *forms = forms_make(&file, &text, 1, &fault);
    if (forms == NULL) {
        require(fault.file == file);
        require_place(text, &fault);
    } else {
        for (uint32_t i = 0; i < forms_count(forms); i++)
            if (!forms_at(forms, i)->is_builtin)
                check(forms, forms_at(forms, i));
    }
    forms_free(forms);
    fuzz_block_give(text);
    intern_release();
    return 0;
}
