// SPDX-License-Identifier: Apache-2.0
// Few exceptions are told in a log, so that all rows are tried in turn. Which letters a text has is
// looked at once: most words have one that it lacks.
#include "receivers/decode/forms/meanings.h"

#include "base/text/cut.h"
#include "base/text/find.h"

// What was raised, with what is found out once for all words.
struct heard {
    struct slice texts[WORD_OF_COUNT];
    struct slice name; // the last of the type
    uint64_t letters[WORD_OF_COUNT];
};

static void hear(const struct uttered *uttered, struct heard *heard) {
    struct slice type = uttered->type;
    const char *dot = type.size == 0 ? NULL : memrchr(type.data, '.', type.size);
    heard->name = dot == NULL ? type : text_from(type, (size_t)(dot - type.data) + 1);
    heard->texts[WORD_OF_TYPE] = type;
    heard->texts[WORD_OF_MESSAGE] = uttered->message;
    heard->texts[WORD_OF_PLACE] = uttered->file;
    for (int i = 0; i < WORD_OF_COUNT; i++)
        heard->letters[i] = meaning_letters(heard->texts[i]);
}

static bool has_word(const struct form_word *word, const struct heard *heard) {
    struct slice text = heard->texts[word->of];
    if ((word->letters & ~heard->letters[word->of]) != 0)
        return false;
    if (word->begins && !word->ends)
        return text_begins(text, word->text);
    if (word->of == WORD_OF_TYPE && !word->ends)
        return slice_equal(heard->name, word->text);
    if (word->of == WORD_OF_TYPE)
        text = heard->name;
    return text_position(text, word->text) != NULL;
}

static bool has_all(const struct form *form, const struct heard *heard) {
    bool wanted[WORD_OF_COUNT] = {false}, found[WORD_OF_COUNT] = {false};
    for (uint32_t i = 0; i < form->word_count; i++) {
        const struct form_word *word = &form->words[i];
        wanted[word->of] = true;
        found[word->of] = found[word->of] || has_word(word, heard);
    }
    for (int i = 0; i < WORD_OF_COUNT; i++)
        if (wanted[i] && !found[i])
            return false;
    return true;
}

const struct form *meanings_find(const struct form *const *rows, uint32_t count,
                                 const struct uttered *uttered) {
    struct heard heard;
    hear(uttered, &heard);
    for (uint32_t i = 0; i < count; i++)
        if ((rows[i]->scope == 0 || rows[i]->scope == uttered->scope) && has_all(rows[i], &heard))
            return rows[i];
    return NULL;
}

int meaning_victim(const struct form *form) {
    if (form->role.data == NULL)
        return -1;
    return !slice_equal(form->role, SLICE("own"));
}
