// SPDX-License-Identifier: Apache-2.0
// Chooses the format that a scraper prefers.
//
// Reads the media ranges of an Accept header (RFC 9110, 12.5.1) with their versions and weights, in
// one pass over the header, without memory. OpenMetrics is written only for who names it.
#include "base/metrics/exposition.h"

#include "base/text/cut.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

// Weights in thousandths; -1: not named.
struct wish {
    int openmetrics;
    int text; // the most specific range that text/plain fits, and how specific that was
    int text_rank;
};

// Takes off what stands before the next `mark` outside of quotes.
static struct slice take_until(struct slice *rest, char mark) {
    bool quoted = false;
    size_t at = 0;
    for (; at < rest->size && (quoted || rest->data[at] != mark); at++) {
        if (quoted && rest->data[at] == '\\' && at + 1 < rest->size)
            at++;
        else if (rest->data[at] == '"')
            quoted = !quoted;
    }
    struct slice part = {rest->data, at};
    assert(!quoted || at == rest->size);
    *rest = text_from(*rest, at < rest->size ? at + 1 : at);
    return text_trim(part);
}

static bool is(struct slice text, const char *word) {
    return text.size == strlen(word) && strncasecmp(text.data, word, text.size) == 0;
}

// "0.75" in thousandths; what is no weight counts as 1.
static int weight_of(struct slice text) {
    if (text.size == 0 || text.data[0] != '0')
        return 1000;
    int weight = 0;
    int unit = 100;
    for (size_t i = 2; i < text.size && text.data[1] == '.' && unit > 0; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            break;
        weight += (text.data[i] - '0') * unit;
        unit /= 10;
    }
    assert(weight >= 0 && weight < 1000);
    return weight;
}

static struct slice unquoted(struct slice text) {
    if (text.size >= 2 && text.data[0] == '"' && text.data[text.size - 1] == '"')
        return (struct slice){text.data + 1, text.size - 2};
    return text;
}

static void read_range(struct slice range, struct wish *wish) {
    struct slice type = take_until(&range, ';');
    struct slice version = {NULL, 0};
    int weight = 1000;
    while (range.size > 0) {
        struct slice value = take_until(&range, ';');
        struct slice name = take_until(&value, '=');
        if (is(name, "q"))
            weight = weight_of(text_trim(value));
        else if (is(name, "version"))
            version = unquoted(text_trim(value));
    }
    if (is(type, "application/openmetrics-text") && (version.size == 0 || is(version, "1.0.0"))) {
        if (weight > wish->openmetrics)
            wish->openmetrics = weight;
        return;
    }
    int rank = is(type, "text/plain") && (version.size == 0 || is(version, "0.0.4")) ? 3
               : is(type, "text/*")                                                  ? 2
               : is(type, "*/*")                                                     ? 1
                                                                                     : 0;
    if (rank == 0 || rank < wish->text_rank || (rank == wish->text_rank && weight <= wish->text))
        return;
    wish->text = weight;
    wish->text_rank = rank;
}

enum exposition_format exposition_negotiate(const char *accept) {
    struct wish wish = {.openmetrics = -1, .text = -1};
    struct slice rest = accept == NULL ? (struct slice){"", 0} : slice_of(accept);
    while (rest.size > 0)
        read_range(take_until(&rest, ','), &wish);
    return wish.openmetrics > 0 && wish.openmetrics >= wish.text ? EXPOSITION_OPENMETRICS
                                                                 : EXPOSITION_TEXT;
}

const char *exposition_content_type(enum exposition_format format) {
    return format == EXPOSITION_OPENMETRICS
               ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
               : "text/plain; version=0.0.4; charset=utf-8";
}
