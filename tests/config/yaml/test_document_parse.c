// SPDX-License-Identifier: Apache-2.0
#include "tests/config/yaml/document_fixture.h"

START_TEST(trees) {
    gives("", "{}");
    gives("# nothing\n", "{}");
    gives("---\n", "{}");
    gives("a:\n", "{a:~}");
    gives("a: ~\nb: null\nc: \"\"\nd: 'null'\n", "{a:~,b:~,c:'',d:'null'}");
    gives("a: {b: [1, \"x\", {c: true}]}\n", "{a:{b:[1,'x',{c:true}]}}");
    gives("a:\n  - x\n  -\n  - [y]\nb: |\n  two\n  lines\n", "{a:[x,~,[y]],b:'two\nlines\n'}");
    gives(
        "\xef\xbb\xbf"
        "a: 1\r\nb: 2\r\n",
        "{a:1,b:2}");
    gives("a: ${env:HOME}\nnull: 2\n", "{a:${env:HOME},null:2}");
    gives("a: x # note\n\t# tab before a comment\n \t\nb: \"\\u00e9\"\n", "{a:x,b:'\u00e9'}");
}
END_TEST

START_TEST(aliases) {
    gives("a: &x {k: 1}\nb: *x\nc: [*x, *x]\n", "{a:{k:1},b:{k:1},c:[{k:1},{k:1}]}");
    gives("a: &x 1\nb: &x 2\nc: *x\n", "{a:1,b:2,c:2}");
    fails("a: *x\nb: &x 1\n",
          "c.yaml:1:4: alias '*x' has no anchor before it; quote the text if it is none\n");
    static const char ITSELF[] =
        "refers to itself: it stands inside what &x names; write the "
        "value out\n";
    fails("a: &x [*x]\n", arena_format(&arena, "c.yaml:1:8: alias '*x' %s", ITSELF));
    fails("a: &x {b: *x}\n", arena_format(&arena, "c.yaml:1:11: alias '*x' %s", ITSELF));
    fails("a: &x\n  b: [{c: *x}]\n", arena_format(&arena, "c.yaml:2:11: alias '*x' %s", ITSELF));
    gives("a: &x 1\nb: &x {c: *x}\n", "{a:1,b:{c:1}}");
    fails("a: &x k\n*x : 1\n", "c.yaml:2:1: an alias as a key; write the key out\n");
}
END_TEST

START_TEST(places) {
    struct node *root = parse(
        "receivers:\n"
        "  \xc3\xa9: 1\n"
        "  file: {include: [\"\xc3\xa9\", b], at: 'x'}\n");
    ck_assert_str_eq(problems_text(), "");
    place_is(document_locate(root, "receivers"), 1, 1);
    place_is(document_locate(root, "receivers.file"), 3, 3);
    place_is(document_locate(root, "receivers.file.include"), 3, 19);
    place_is(document_locate(root, "receivers.file.include[0]"), 3, 20);
    place_is(document_locate(root, "receivers.file.include[1]"), 3, 26);
    place_is(document_locate(root, "receivers.file.at"), 3, 34);
    place_is(document_locate(root, "receivers.file.missing"), 3, 3);
    place_is(document_locate(root, "receivers.file.include[2]"), 3, 10);
    place_is(document_locate(root, "nothing.at.all"), 1, 1);
    place_is(document_locate(root, "receivers.\xc3\xa9"), 2, 7);
}
END_TEST

START_TEST(paths_with_dots) {
    struct node *root = parse("a.b: {c: 1}\na: {b: {c: 2}, b.c: 3}\n");
    ck_assert_str_eq(document_find(root, "a.b.c")->text, "1");
    root = parse("a: {b: {c: 2}, b.c: 3}\n");
    ck_assert_str_eq(document_find(root, "a.b.c")->text, "3");
    ck_assert_ptr_null(document_find(root, "a.b.d"));
    ck_assert_ptr_null(document_find(root, "a[0]"));
    ck_assert_ptr_eq(document_find(root, ""), root);
}
END_TEST

START_TEST(keys_given_twice) {
    struct node *root = parse("a: 1\nb: {c: 1, d: {}, c: {e: 2}}\na: [2]\nf: [{g: 1, g: 2}]\n");
    ck_assert_str_eq(problems_text(),
                     "c.yaml:2:18: b.c: given twice; it stands in line 2 already\n"
                     "c.yaml:3:1: a: given twice; it stands in line 1 already\n"
                     "c.yaml:4:12: f[0].g: given twice; it stands in line 4 already\n");
    ck_assert_str_eq(shown(root), "{a:1,b:{c:1,d:{}},f:[{g:1}]}");
}
END_TEST

START_TEST(refused_before_the_parser) {
    fails("a: 1\n\tb: 2\n", "c.yaml:2:1: a tab in the indentation; YAML takes spaces only\n");
    fails("a: \x01\n", "c.yaml:1:4: a control character; a configuration is UTF-8 text\n");
    fails("a: \xff\n", "c.yaml:1:4: a byte that is not UTF-8; a configuration is UTF-8 text\n");
    fails("a: \xed\xa0\x80\n",
          "c.yaml:1:4: half of a surrogate pair; a configuration is UTF-8 text\n");
    fails("a: \u2028\n", "c.yaml:1:4: a Unicode line separator; a configuration is UTF-8 text\n");
    problem_list_init(&problems, &arena);
    ck_assert_ptr_null(document_parse(&arena, "c.yaml", SLICE("a: 1\nb: \0\n"), &problems));
    ck_assert_str_eq(problems_text(), "c.yaml:2:4: a zero byte; a configuration is UTF-8 text\n");
}
END_TEST

START_TEST(refused_while_parsing) {
    fails("[1]\n",
          "c.yaml:1:1: a configuration is a map of receivers, processors, exporters and "
          "service, not a list\n");
    fails("x\n",
          "c.yaml:1:1: a configuration is a map of receivers, processors, exporters and "
          "service, not a text\n");
    fails("a: 1\n---\nb: 2\n", "c.yaml:2:1: a second YAML document; use one document a file\n");
    fails("? [a]\n: b\n", "c.yaml:1:3: a key must be a text, not a list\n");
    fails("a: {{b: 1}: c}\n", "c.yaml:1:5: a key must be a text, not a map\n");
    fails(": 1\n", "c.yaml:1:1: a key has 1 to 256 bytes\n");
    fails("a: !!str 5\n", "c.yaml:1:10: a tag; write the value without it\n");
    fails("&k a: 5\n", "c.yaml:1:4: an anchor on a key; put it on a value\n");
    fails("a: \"\\0\"\n", "c.yaml:1:4: a zero byte in a text; leave it out\n");
    fails("a: [1\n", "c.yaml:2:1: not YAML: flow sequence without a closing bracket\n");
    fails("a: [${env:X}]\n",
          "c.yaml:1:6: not YAML: missing comma in flow sequence; inside [] and "
          "{} write \"${...}\" in quotes\n");
}
END_TEST

static const char *repeated(const char *head, const char *text, size_t count) {
    size_t head_size = strlen(head), size = strlen(text);
    char *all = arena_take(&arena, head_size + size * count + 1);
    memcpy(all, head, head_size);
    for (size_t i = 0; i < count; i++)
        memcpy(all + head_size + i * size, text, size);
    all[head_size + size * count] = '\0';
    return all;
}

static const char *numbered(const char *format, uint32_t count) {
    struct buffer out;
    buffer_init(&out, 1 << 20);
    for (uint32_t i = 0; i < count; i++) {
        char line[64];
        snprintf(line, sizeof line, "%s%u: 1\n", format, i);
        buffer_append_text(&out, line);
    }
    const char *text = arena_text(&arena, buffer_slice(&out));
    buffer_release(&out);
    return text;
}

START_TEST(bounds) {
    fails(repeated("a: ", "[", 65), "c.yaml:1:67: nested more than 64 deep\n");
    fails(repeated("", "#\n", (1 << 19) + 1),
          "c.yaml:1:1: 1048578 bytes long; a configuration has at most 1048576\n");
    fails(repeated("a: ", "x", 65536), "c.yaml:1:1: a line of over 65536 bytes; break it\n");
    fails(repeated("a:\n", "- x\n", 65537),
          "c.yaml:65538:3: more than 65536 values, with aliases counted as what they stand for\n");
    fails(repeated("a: &x 1\nb:\n", "- *x\n", 101),
          "c.yaml:103:3: more than 100 aliases; write the values out\n");
    fails(repeated("a:\n", "- &x y\n", 101),
          "c.yaml:102:6: more than 100 anchors; write the values out\n");
    fails(numbered("k", 1025), "c.yaml:1025:1: more than 1024 keys in one map\n");
    fails(repeated("", "k", 257),
          "c.yaml:1:1: a configuration is a map of receivers, processors, "
          "exporters and service, not a text\n");
    fails(arena_format(&arena, "%s: 1\n", repeated("", "k", 257)),
          "c.yaml:1:1: a key has 1 to 256 bytes\n");
    ck_assert_uint_eq(parse(numbered("k", 1024))->count, 1024);
    ck_assert_ptr_nonnull(
        parse(arena_format(&arena, "%s%s", repeated("a: ", "[", 63), repeated("", "]", 63))));
}
END_TEST

// Every level has four of the level before: 4^40 values in 40 short lines.
START_TEST(alias_bomb) {
    struct buffer text;
    buffer_init(&text, 1 << 16);
    buffer_append_text(&text, "a0: &a0 [x]\n");
    for (int i = 1; i < 25; i++)
        buffer_append_format(&text, "a%d: &a%d [*a%d, *a%d, *a%d, *a%d]\n", i, i, i - 1, i - 1,
                             i - 1, i - 1);
    buffer_append_char(&text, '\0');
    fails(text.data,
          "c.yaml:9:10: more than 65536 values, with aliases counted as what they "
          "stand for\n");
    buffer_release(&text);
}
END_TEST

static void add_tests(TCase *cases) {
    tcase_add_test(cases, trees);
    tcase_add_test(cases, aliases);
    tcase_add_test(cases, places);
    tcase_add_test(cases, paths_with_dots);
    tcase_add_test(cases, keys_given_twice);
    tcase_add_test(cases, refused_before_the_parser);
    tcase_add_test(cases, refused_while_parsing);
    tcase_add_test(cases, bounds);
    tcase_add_test(cases, alias_bomb);
}

int main(void) {
    return run_suite("document_parse", add_tests);
}
