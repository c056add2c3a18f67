// SPDX-License-Identifier: Apache-2.0
// The language of rows, the search for them, and each row that is built in against its own samples.
#include "receivers/decode/forms/forms.h"
#include "receivers/decode/forms/needles.h"
#include "receivers/decode/log/form_check.h"

#include "base/memory.h"
#include "base/text/cut.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

START_TEST(test_builtin_samples) {
    const struct forms *forms = forms_builtin();
    struct form_fault fault;
    uint32_t wrong = 0;
    ck_assert_uint_gt(forms_count(forms), 0);
    for (uint32_t i = 0; i < forms_count(forms); i++)
        if (!form_check(forms, forms_at(forms, i), &fault)) {
            fprintf(stderr, "%s:%u: %s\n", fault.file, fault.line, fault.words);
            wrong++;
        }
    ck_assert_uint_eq(wrong, 0);
}
END_TEST

START_TEST(test_builtin_names) {
    const struct forms *forms = forms_builtin();
    for (uint32_t i = 0; i < forms_count(forms); i++)
        for (uint32_t k = 0; k < i; k++)
            ck_assert_msg(!slice_equal(forms_at(forms, i)->name, forms_at(forms, k)->name),
                          "two rows are called %.*s", (int)forms_at(forms, i)->name.size,
                          forms_at(forms, i)->name.data);
}
END_TEST

static void ignore(void *context, const struct event *event) {
    (void)context;
    (void)event;
}

// Whatever a line breaks off in, nothing is read beyond it (the sanitizers watch).
START_TEST(test_builtin_cut) {
    const struct forms *forms = forms_builtin();
    for (uint32_t i = 0; i < forms_count(forms); i++) {
        const struct form *form = forms_at(forms, i);
        for (uint32_t k = 0; k < form->sample_count; k++)
            for (size_t size = 0; size < form->samples[k].lines.size; size++) {
                char *copy = memory_take(size + 1);
                memcpy(copy, form->samples[k].lines.data, size);
                form_read_lines(forms, (struct slice){copy, size}, ignore, NULL);
                memory_give(copy);
            }
    }
}
END_TEST

// -- patterns -------------------------------------------------------------------------------------

static bool text_type(struct slice name, enum pattern_type *type, char *words, size_t size) {
    static const struct {
        const char *name;
        enum pattern_type type;
    } names[] = {{"rank", PATTERN_INT},     {"host", PATTERN_NAME}, {"signal", PATTERN_SIGNAL},
                 {"message", PATTERN_TEXT}, {"word", PATTERN_WORD}, {"peer", PATTERN_ADDRESS}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (slice_equal(slice_of(names[i].name), name)) {
            *type = names[i].type;
            return true;
        }
    snprintf(words, size, "'%.*s' is no name", (int)name.size, name.data);
    return false;
}

// "name=value|…" of a match; "-": none; "!3 words": refused at that byte.
static const char *matched(const char *source, const char *text) {
    static char out[1024];
    struct arena arena;
    struct pattern pattern;
    struct pattern_fault fault;
    struct slice values[PATTERN_NAMES_MAX];
    size_t end, size = 0;
    arena_init(&arena, 4096);
    out[0] = '\0';
    if (!pattern_compile(slice_of(source), false, text_type, &arena, &pattern, &fault))
        snprintf(out, sizeof out, "!%zu %s", fault.offset, fault.words);
    else if (!pattern_match(&pattern, slice_of(text), 0, values, &end))
        snprintf(out, sizeof out, "-");
    else
        for (uint32_t i = 0; i < pattern.name_count; i++)
            size +=
                (size_t)snprintf(out + size, sizeof out - size, "%s%.*s=%.*s", size == 0 ? "" : "|",
                                 (int)pattern.names[i].size, pattern.names[i].data,
                                 (int)values[i].size, values[i].data == NULL ? "" : values[i].data);
    arena_release(&arena);
    return out;
}

START_TEST(test_patterns) {
    static const struct {
        const char *pattern, *text, *gives;
    } rows[] = {
        {"rank {rank} on {host}.", "rank 12 on gpu-a01.example.org.",
         "rank=12|host=gpu-a01.example.org"},
        {"rank {rank}", "rank x", "-"},
        {"exit  code : {rank}", "exit \t code : -9", "rank=-9"},
        {"exit  code", "exitcode", "-"},
        {"a {message} of {message}", "a cat of b", "message=b"},
        {"{message} of {host}", "x of 1 of y", "message=x|host=1"},
        {"{message} of {host}{end}", "x of 1 of y", "message=x of 1|host=y"},
        {"died{? with signal {signal}} at {host}", "died at n1", "signal=|host=n1"},
        {"died{? with signal {signal}} at {host}", "died with signal SIGKILL at n1",
         "signal=SIGKILL|host=n1"},
        {"by {signal}", "by Segmentation fault (core dumped)", "signal=Segmentation fault"},
        {"died{? in {host}!}", "died in n1?", "host="},
        {"{word:thread}[{rank}]", "a[b] c[12]", "word=a[b] c|rank=12"},
        {"{word:thread}[{rank}]", "fifteen letters[12]", "word=fifteen letters|rank=12"},
        {"{word:thread}[{rank}]", "sixteen  letters[12]", "-"},
        {"by {signal}", "by -11", "signal=-11"},
        {"by {signal}", "by 1000", "-"},
        {"{word=a|ab} x", "ab x", "word=ab"},
        {"{killed|stopped} {rank}", "stopped 3", "rank=3"},
        {"{{{rank}}}", "{3", "!8 a '}' that ends nothing"},
        {"{{{rank}", "{3", "rank=3"},
        {"peer {peer}<{_:int}>", "peer 10.1.2.9<44206>", "peer=10.1.2.9"},
        {"peer {peer}: gone", "peer [10.1.2.9]:440: gone", "peer=[10.1.2.9]:440"},
        {"w {word}, {word}", "w a:b, c", "word=c"},
        {"x{end}", "x \r", ""},
        {"x{end}", "x y", "-"},
        {"x {nothing}", "", "!3 'nothing' is no name"},
        {"x {rank:number}", "", "!8 'number' is no type"},
        {"x {rank", "", "!2 no '}' ends this part; {{ stands for a brace"},
        {"x {? y", "", "!2 no '}' ends this {?"},
        {"x {? y {? z}}", "", "!7 a {? inside of a {?"},
        {"x {? y {message} z}", "", "!2 a part of type text inside of a {?"},
        {"x {a||b}", "", "!5 an empty word among the choices"},
        {"", "", "!0 an empty text"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *gives = matched(rows[i].pattern, rows[i].text);
        ck_assert_msg(strcmp(gives, rows[i].gives) == 0, "%s\non %s\ngives %s\nnot   %s",
                      rows[i].pattern, rows[i].text, gives, rows[i].gives);
    }
}
END_TEST

// -- needles --------------------------------------------------------------------------------------

// Against looking for each of them by itself, in texts of few letters, which have many.
START_TEST(test_needles) {
    enum { COUNT = 40, SIZE = 4000 };
    static char store[COUNT][NEEDLE_SIZE + 1], text[SIZE];
    const char *texts[COUNT];
    struct arena arena;
    arena_init(&arena, 4096);
    srand(7);
    for (int i = 0; i < COUNT; i++) {
        for (int k = 0; k < NEEDLE_SIZE; k++)
            store[i][k] = (char)('a' + rand() % 3);
        texts[i] = store[i];
    }
    for (int i = 0; i < SIZE; i++)
        text[i] = (char)('a' + rand() % 3);
    const struct needles *needles = needles_make(texts, COUNT, &arena);
    for (size_t size = 0; size < SIZE; size = size < 20 ? size + 1 : size * 2) {
        uint32_t counts[COUNT] = {0}, needle;
        size_t at;
        struct needle_walk walk = {0};
        while (needles_next(needles, (struct slice){text, size}, &walk, &needle, &at)) {
            ck_assert(memcmp(text + at, texts[needle], NEEDLE_SIZE) == 0);
            counts[needle]++;
        }
        for (int i = 0; i < COUNT; i++) {
            uint32_t wanted = 0;
            for (size_t k = 0; k + NEEDLE_SIZE <= size; k++)
                wanted += memcmp(text + k, texts[i], NEEDLE_SIZE) == 0;
            ck_assert_uint_eq(counts[i], wanted);
        }
    }
    arena_release(&arena);
}
END_TEST

// -- files ----------------------------------------------------------------------------------------

#define ROW "form x\n text process {rank} has gone\n kind launcher_failed\n"

START_TEST(test_file_faults) {
    static const struct {
        const char *text;
        uint32_t line, column;
        const char *words;
    } rows[] = {
        {"rows\n", 1, 1, "begins with `form`"},
        {" kind x\n", 1, 2, "before any row"},
        {"form X\n", 1, 6, "a name of small letters"},
        {ROW " sample process 1 has gone\n" ROW, 5, 6, "there is a form x already, at mine:1"},
        {ROW, 1, 1, "lacks a `sample`"},
        {"form x\n kind launcher_failed\n sample a\n", 1, 1, "lacks a `text`"},
        {ROW " kind nothing\n", 4, 7, "'nothing' is no kind"},
        {ROW " role mine\n", 4, 7, "a role is own"},
        {ROW " cause No\n", 4, 8, "a cause is a word"},
        {ROW " where there\n", 4, 8, "here, elsewhere or agent"},
        {ROW " whole no\n", 4, 8, "`whole` is yes"},
        {ROW " from programs\n", 4, 7, "one value: kernel"},
        {ROW " uptime soon\n", 4, 9, "a number of seconds"},
        {ROW " from kernel\n then x\n", 5, 7, "of one line"},
        {ROW " then x\n from kernel\n", 5, 7, "of one line"},
        {ROW " becomes abort\n", 4, 2, "stands behind a `then`"},
        {ROW " then ^x\n becomes no\n", 5, 10, "'no' is no kind"},
        {ROW " set signal\n", 4, 6, "set NAME=VALUE"},
        {ROW " set signal=x\n", 4, 13, "a number"},
        {ROW " set victim=x\n", 4, 13, "yes or no"},
        {ROW " when signal=9\n", 4, 15, "set NAME=VALUE"},
        {ROW " when signal=x victim=yes\n", 4, 14, "a number"},
        {ROW " gives rank=1\n", 4, 2, "stands behind a `sample`"},
        {ROW " colour red\n", 4, 2, "is no field"},
        {"meaning x\n says gone\n sample x\n", 1, 1, "lacks a `role`"},
        {"meaning x\n role own\n sample x\n", 1, 1, "lacks a `says`"},
        {"meaning x\n says gone\n role own\n", 1, 1, "lacks a `sample`"},
        {"meaning x\n role mine\n", 2, 7, "or caught, or unknown"},
        {"meaning x\n of line\n", 2, 5, "`of` is exception or abort"},
        {"meaning x\n type A *B\n", 2, 9, "NAME*"},
        {"meaning x\n says ^\n", 2, 2, "says nothing"},
        {"meaning x\n text gone\n", 2, 2, "is no field of a meaning"},
        {ROW " says gone\n", 4, 2, "is no field"},
        {ROW " apart far\n", 4, 8, "yes or no"},
        {ROW " kind\n", 4, 2, "says nothing"},
        {"form x\n text  process {rank has gone\n", 2, 16, "no '}'"},
        {"form x\n text {rank} has gone\n", 2, 7, "begins with 4"},
        {"form x\n text of {rank} has gone\n", 2, 7, "begins with 4"},
        {"form x\n text job {rank} is {host}\n", 2, 7, "has 6 in a row"},
        {"form x\n text ^{rank} is {host}\n", 2, 7, "has 6"},
        {"form x\n text process {colour}\n", 2, 16, "'colour' is no name"},
        {"form x\n text process {victim}\n", 2, 16, "yes or no"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *file = "mine";
        struct slice text = slice_of(rows[i].text);
        struct form_fault fault;
        ck_assert_ptr_null(forms_make(&file, &text, 1, &fault));
        ck_assert_msg(fault.line == rows[i].line && fault.column == rows[i].column &&
                          strstr(fault.words, rows[i].words) != NULL && fault.file == file,
                      "%s\n%u:%u: %s", rows[i].text, fault.line, fault.column, fault.words);
    }
}
END_TEST

// A file of so many times this text behind the row, with %u counted up.
static struct slice repeated(const char *front, const char *text, uint32_t count) {
    static char bytes[FORMS_SIZE_MAX];
    size_t size = (size_t)snprintf(bytes, sizeof bytes, "%s", front);
    for (uint32_t i = 0; i < count; i++) {
        char number[16];
        struct slice rest = slice_of(text), head = text_until(rest, '%');
        bool has_number = head.size < rest.size;
        ck_assert_uint_lt(size + rest.size + sizeof number, sizeof bytes);
        memcpy(bytes + size, head.data, head.size);
        size += head.size;
        rest = text_from(rest, head.size + (has_number ? 2 : 0));
        if (has_number)
            size += (size_t)snprintf(bytes + size, sizeof number, "%u", i);
        memcpy(bytes + size, rest.data, rest.size);
        size += rest.size;
    }
    return (struct slice){bytes, size};
}

#define SITE "form site\n text worker gone\n kind abort\n sample worker gone\n"

// Each bound of users' rows, just kept and just passed.
START_TEST(test_bounds) {
    static const struct {
        const char *front, *text, *words;
        uint32_t max;
    } bounds[] = {
        {"", "form x%u\n text worker gone\n kind abort\n sample worker gone\n",
         "more than 4096 rows", FORMS_MAX},
        {"", "prefix x%u\n text <{rank}>\n sample <1> x\n", "more than 256 prefixes",
         FORM_PREFIXES_MAX},
        {"", "meaning x%u\n says gone\n role own\n sample x\n", "more than 256 meanings",
         FORM_MEANINGS_MAX},
        {"meaning x\n role own\n sample x\n", " says gone\n", "more than 64", FORM_WORDS_MAX},
        {"form x\n kind abort\n sample worker gone\n", " text worker gone\n", "more than 8",
         FORM_TEXTS_MAX},
        {SITE, " then gone, too\n", "more than 8", FORM_THEN_MAX},
        {SITE, " set signal=9\n", "more than 8", FORM_SETS_MAX},
        {SITE, " when signal=9 victim=yes\n", "more than 4", FORM_WHENS_MAX},
        {SITE, " not worker here\n", "more than 16", FORM_SAMPLES_MAX - 1},
        {SITE, " more and so on\n", "more than 64", FORM_MORE_MAX},
        {"form x\n kind abort\n sample worker gone\n text worker ", "{?x}", "more than 48 parts",
         (PATTERN_PARTS_MAX - 1) / 2},
        {"form x\n kind abort\n sample worker gone\n text worker gone", "x", "longer than 512",
         PATTERN_SIZE_MAX - 11},
    };
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++)
        for (uint32_t more = 0; more < 2; more++) {
            const char *file = "mine";
            struct slice text = repeated(bounds[i].front, bounds[i].text, bounds[i].max + more);
            struct form_fault fault = {.words = ""};
            struct forms *forms = forms_make(&file, &text, 1, &fault);
            ck_assert_msg((forms != NULL) == (more == 0), "%s: %s", bounds[i].text, fault.words);
            ck_assert_msg(more == 0 || strstr(fault.words, bounds[i].words) != NULL, "%s: %s",
                          bounds[i].words, fault.words);
            forms_free(forms);
        }
}
END_TEST

// Rows and lines that are made to take long: what was tried is counted, not timed.
START_TEST(test_hostile) {
    static const struct {
        const char *row, *line; // the line is this text again and again
    } hostile[] = {
        {"text abcd{_:text}needle{_:text}zzz", "abcdneedle"},
        {"text abcd{_:text}needle{_:text}{rank}zzz", "abcd needle 1 "},
        {"text abcdef{_:text}{_:word}x{_:word}y{_:word}z", "abcdef "},
        {"text abcdef{_:text}{_:list}!{_:text}{_:list}!", "abcdef 1,1,1,1,1,1 "},
        {"text abcdef{_:text}{a|aa|aaa|aaaa}!", "abcdefaaaaaaaaaaaaaaaaaa"},
        {"text abcdef{_:text}{? a}{? a}{? a}{? a}{? a}{? a}{? a}{? a}!", "abcdef a a a a a a "},
        {"text abcdef{_:text}{_:time}!", "abcdef 2026-11-20T10:00:00Z "},
        {"text abcdef{_:text}  {end}", "abcdef          "},
        {"text ^{_:text}abcdef{_:text}abcdeg", "abcdef"},
        {"text ^{_:text}{_:int}abcdef{_:text}{_:int}abcdeg", "1abcdef"},
        {"text abcdef{_:text}=q{_:text}=q{_:text}=q{_:text}=r", "abcdef=q"},
    };
    enum { SHORT = 4 << 10, LONG = 64 << 10 };
    static char line[LONG];
    for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++) {
        char source[256];
        const char *file = "mine";
        struct form_fault fault;
        struct form_match match;
        size_t size = strlen(hostile[i].line);
        snprintf(source, sizeof source, "form x\n %s\n kind abort\n sample x\n", hostile[i].row);
        struct slice text = slice_of(source);
        struct forms *forms = forms_make(&file, &text, 1, &fault);
        ck_assert_msg(forms != NULL, "%s: %s", hostile[i].row, fault.words);
        for (size_t at = 0; at < sizeof line; at++)
            line[at] = hostile[i].line[at % size];
        for (size_t length = SHORT; length <= LONG; length *= 4) {
            struct slice message = {line, length};
            forms_find(forms, message, &match);
            ck_assert_msg(match.memo.steps <= pattern_steps_max(message) + length,
                          "%s: %llu steps for %zu bytes", hostile[i].row,
                          (unsigned long long)match.memo.steps, length);
        }
        forms_free(forms);
    }
}
END_TEST

// The bound on needles that are all alike, and on a place where many begin.
START_TEST(test_alike_needles) {
    enum { COUNT = 20000, SIZE = 64 << 10 };
    static char names[COUNT][NEEDLE_SIZE + 1], text[SIZE];
    static const char *needles[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) { // one gram, and needles that are not there
        snprintf(names[i], sizeof names[i], "aaaa%c%c", 'b' + (int)(i % 20), 'b' + (int)(i % 19));
        needles[i] = names[i];
    }
    memset(text, 'a', sizeof text);
    struct arena arena;
    arena_init(&arena, 1 << 20);
    struct needles *made = needles_make(needles, COUNT, &arena);
    struct needle_walk walk = {0};
    uint32_t needle;
    size_t begins;
    ck_assert(!needles_next(made, (struct slice){text, SIZE}, &walk, &needle, &begins));
    ck_assert_uint_le(walk.looks, NEEDLE_LOOKS_MIN + NEEDLE_LOOKS_A_BYTE * SIZE + COUNT * 3);
    arena_release(&arena);
}
END_TEST

// A user's row stands in the place of the built-in one of its name.
START_TEST(test_replaced) {
    const struct form *first = forms_at(forms_builtin(), 0);
    char source[512];
    const char *file = "mine";
    struct form_fault fault;
    snprintf(source, sizeof source,
             "form %.*s\n text my own words\n kind abort\n sample my own words\n",
             (int)first->name.size, first->name.data);
    struct slice text = slice_of(source);
    struct forms *forms = forms_make(&file, &text, 1, &fault);
    ck_assert_ptr_nonnull(forms);
    ck_assert_uint_eq(forms_count(forms), forms_count(forms_builtin()));
    ck_assert_int_eq(forms_at(forms, 0)->kind, OBSERVATION_ABORT);
    forms_free(forms);
}
END_TEST

START_TEST(test_samples_are_checked) {
    static const struct {
        const char *more, *words;
    } rows[] = {
        {" sample process 3 has gone\n gives rank=3\n", NULL},
        {" sample process 3 has gone\n gives rank=4\n", "x: the sample gives rank=3"},
        {" sample process 3 went\n gives rank=3\n", "x: the sample gives nothing"},
        {" sample process 3 has gone\n gives rank=3\n not process 3 has gone\n",
         "x: this line must not match, and does"},
        {" text job {rank} is no more\n sample x job 1 of job 3 is no more\n gives rank=3\n"
         " not ajob 3 is no more\n not job 3 is one more\n",
         NULL},
        {" role report\n sample Traceback (most recent call last):\n"
         " more   File \"a.py\", line 3, in f\n more RuntimeError: process 3 has gone\n"
         " gives rank=3 exception=RuntimeError message=process 3 has gone\n",
         NULL},
        {" then code {exit_code}\n sample Traceback (most recent call last):\n"
         " more RuntimeError: process 3 has gone\n"
         " gives rank=3 exception=RuntimeError message=process 3 has gone\n",
         NULL},
        {" role report\n sample <13>Nov 28 01:02:03 n1 x: process 3 has gone\n gives rank=3\n",
         NULL},
        {" role report\n where here\n sample <13>Nov 28 01:02:03 n1 x: process 3 has gone\n"
         " gives host=n1 rank=3\n",
         NULL},
        {" then code {exit_code}\n then by hand\n becomes job_stopped\n"
         " sample process 3 has gone\n more code 4\n gives rank=3 exit_code=4\n",
         NULL},
        {" then code {exit_code}\n then by hand\n becomes job_stopped\n"
         " sample process 3 has gone\n more by hand\n gives rank=3\n",
         "x: the sample gives another kind, job_stopped"},
        {" text ^gone for good: {rank}\n sample process 3 has gone\n gives rank=3\n"
         " not [rank1]: gone for good: 3\n",
         "x: this line must not match, and does"},
        {" then ^code {exit_code}\n then ^by {signal}\n sample process 3 has gone\n more by "
         "SIGBUS\n"
         " gives rank=3 signal=7\n",
         NULL},
        {" then code {exit_code}\n sample [rank1]: process 3 has gone\n more [rank1]: code -9\n"
         " gives rank=3 signal=9\n",
         NULL},
        {" then code {exit_code}\n sample process 3 has gone\n more x\n more code 4\n"
         " gives rank=3\n",
         NULL},
        {" then ^code {exit_code}\n sample process 3 has gone\n more 12:00 code 4\n gives rank=3\n",
         NULL},
        {" then code {exit_code}\n sample process 3 has gone\n more 12:00 code 4\n"
         " gives rank=3 exit_code=4\n",
         NULL},
        {" then code {exit_code}\n sample process 3 has gone\n more decode 4\n gives rank=3\n",
         NULL},
        {" apart yes\n then code {exit_code}\n sample process 3 has gone\n more x\n more code 4\n"
         " gives rank=3 exit_code=4\n",
         NULL},
        {" then code {exit_code}\n when exit_code=4 victim=yes\n sample process 3 has gone\n"
         " more code 4\n gives rank=3 exit_code=4 victim=yes\n sample process 3 has gone\n"
         " more code 5\n gives rank=3 exit_code=5\n",
         NULL},
        {" apart yes\n then code {exit_code}\n sample process 3 has gone\n more process 5 has "
         "gone\n more code 4\n gives rank=3\n",
         NULL},
        {" from kernel\n sample Nov 28 01:02:03 n1 kernel: process 3 has gone\n"
         " gives host=n1 rank=3\n",
         NULL},
        {" from kernel\n sample Nov 28 01:02:03 n1 job[7]: process 3 has gone\n gives rank=3\n",
         "x: the sample gives nothing"},
        // In a file that is read whole, a line without a time or a head may be the kernel's.
        {" from kernel\n sample process 3 has gone\n gives rank=3\n", NULL},
        {" kind none\n sample process 3 has gone\n not process x has gone\n", NULL},
        {" kind none\n sample process x has gone\n", "x: the sample says nothing of the row"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char source[512];
        const char *file = "mine";
        struct form_fault fault = {0};
        snprintf(source, sizeof source, "%s%s", ROW, rows[i].more);
        struct slice text = slice_of(source);
        struct forms *forms = forms_make(&file, &text, 1, &fault);
        ck_assert_msg(forms != NULL, "%s: %s", source, fault.words);
        bool right = form_check(forms, forms_at(forms, 0), &fault);
        ck_assert_msg(right == (rows[i].words == NULL) &&
                          (right || strcmp(fault.words, rows[i].words) == 0),
                      "%s: %s", source, fault.words);
        forms_free(forms);
    }
}
END_TEST

struct told {
    int events;
    int64_t code; // -1: none
};

static void take_told(void *context, const struct event *event) {
    struct told *told = context;
    told->events++;
    if (!observation_number(event->observation, FACT_EXIT_CODE, &told->code))
        told->code = -1;
}

// The further line is read although it is indented, but not behind too many others.
START_TEST(test_apart_is_bounded) {
    const char *file = "mine",
               *source = ROW
               " apart yes\n then code {exit_code}\n sample process 3 has gone\n gives rank=3\n";
    struct slice text = slice_of(source);
    struct form_fault fault;
    struct forms *forms = forms_make(&file, &text, 1, &fault);
    ck_assert_ptr_nonnull(forms);
    for (int between = 0; between <= FORM_APART_MAX + 1; between++) {
        char lines[1024] = "process 3 has gone\n";
        struct told told = {0, -1};
        for (int i = 0; i < between; i++)
            strcat(lines, "other words\n");
        strcat(lines, "   code 4\n");
        form_read_lines(forms, slice_of(lines), take_told, &told);
        ck_assert_int_eq(told.events, 1);
        ck_assert_int_eq(told.code, between <= FORM_APART_MAX ? 4 : -1);
    }
    forms_free(forms);
}
END_TEST

// Of a row with `whole yes` a line that ends within the text is told apart, unless another row has
// it, whichever stands first.
START_TEST(test_cut_lines) {
    static const struct {
        const char *line, *row;
        bool is_cut;
    } lines[] = {
        {"worker gone from 3 of 8", "a", false}, {"worker gone from 3 o", "a", true},
        {"worker gone from", "a", true},         {"worker gone for a while", "b", false},
        {"worker gone for", "b", true},          {"worker gone fast", NULL, false},
    };
    const char *file = "mine", *source =
                                   "form a\n whole yes\n text worker gone from {rank} of 8\n"
                                   " kind abort\n sample worker gone from 3 of 8\n"
                                   "form b\n whole yes\n text worker gone for {reason} while\n"
                                   " kind abort\n sample worker gone for a while\n";
    struct slice text = slice_of(source);
    struct form_fault fault;
    struct forms *forms = forms_make(&file, &text, 1, &fault);
    ck_assert_ptr_nonnull(forms);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct form_match match;
        bool found = forms_find(forms, slice_of(lines[i].line), &match);
        ck_assert_msg(found == (lines[i].row != NULL), "%s", lines[i].line);
        ck_assert_msg(!found || (slice_equal(match.form->name, slice_of(lines[i].row)) &&
                                 match.is_cut == lines[i].is_cut),
                      "%s: %.*s", lines[i].line, (int)match.form->name.size, match.form->name.data);
    }
    forms_free(forms);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("forms");
    TCase *tests = tcase_create("forms");
    tcase_add_test(tests, test_patterns);
    tcase_add_test(tests, test_needles);
    tcase_add_test(tests, test_file_faults);
    tcase_add_test(tests, test_samples_are_checked);
    tcase_add_test(tests, test_apart_is_bounded);
    tcase_add_test(tests, test_cut_lines);
    tcase_add_test(tests, test_bounds);
    tcase_add_test(tests, test_hostile);
    tcase_add_test(tests, test_alike_needles);
    tcase_add_test(tests, test_replaced);
    tcase_add_test(tests, test_builtin_names);
    tcase_add_test(tests, test_builtin_samples);
    tcase_add_test(tests, test_builtin_cut);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
