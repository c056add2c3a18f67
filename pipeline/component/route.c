// SPDX-License-Identifier: Apache-2.0
#include "pipeline/component/route.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static const char *const SEVERITIES[] = {"info", "warning", "error", "critical", NULL};

#define MATCH_ROWS(severity, roots)                                                                \
    {                                                                                              \
        OPTION(struct route_match, patterns, OPTION_TEXT_LIST,                                     \
               .help =                                                                             \
                   "only verdicts of these patterns; * at the end stands for any rest; none: "     \
                   "all"),                                                                         \
            OPTION(struct route_match, min_severity, OPTION_CHOICE, .default_value = (severity),   \
                   .choices = SEVERITIES, .help = "only verdicts of this severity or above"),      \
            OPTION(struct route_match, jobs, OPTION_TEXT_LIST,                                     \
                   .help =                                                                         \
                       "only verdicts about these jobs; * at the end stands for any rest; "        \
                       "none: all, also those about no job"),                                      \
            OPTION(struct route_match, only_roots, OPTION_BOOL, .default_value = (roots),          \
                   .help = "only the root of each incident, not what followed from it"),           \
    }

const struct option route_match_rows[4] = MATCH_ROWS("info", "false");
const struct option route_root_rows[4] = MATCH_ROWS("warning", "true");

// -- what passes ----------------------------------------------------------------------------------

static bool item_matches(const char *item, struct slice text) {
    size_t size = strlen(item);
    if (size > 0 && item[size - 1] == '*')
        return text.size >= size - 1 && memcmp(text.data, item, size - 1) == 0;
    return slice_equal(text, (struct slice){item, size});
}

static bool list_matches(const struct text_list *list, struct slice text) {
    for (uint32_t i = 0; i < list->count; i++)
        if (item_matches(list->items[i], text))
            return true;
    return list->count == 0;
}

bool route_is_default(const struct route_config *config) {
    const struct route_match *match = &config->match;
    assert(match->min_severity >= SEVERITY_INFO);
    return match->patterns.count == 0 && match->jobs.count == 0 && !match->only_roots &&
           match->min_severity == SEVERITY_INFO && config->update_interval.ns == 0 &&
           config->max_per_minute == 0;
}

bool route_matches(const struct route_config *config, const struct verdict *verdict) {
    const struct route_match *match = &config->match;
    assert(verdict->pattern != NULL && match->min_severity <= SEVERITY_CRITICAL);
    return (int)verdict->severity >= match->min_severity &&
           (!match->only_roots || verdict_is_root(verdict)) &&
           list_matches(&match->patterns, slice_of(verdict->pattern)) &&
           (match->jobs.count == 0 || (verdict->job != STRING_NONE &&
                                       list_matches(&match->jobs, intern_slice(verdict->job))));
}

// -- what is no pattern ---------------------------------------------------------------------------

static bool is_known(const char *item, const char *const *names, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (item_matches(item, slice_of(names[i])))
            return true;
    return false;
}

void route_check(const struct route_config *config, const char *const *names, size_t count,
                 struct problem_list *problems) {
    assert(names != NULL || count == 0);
    const struct text_list *patterns = &config->match.patterns;
    for (uint32_t i = 0; i < patterns->count; i++) {
        const char *item = patterns->items[i];
        if (is_known(item, names, count) || problem_list_full(problems))
            continue;
        char key[40];
        snprintf(key, sizeof key, "match.patterns[%u]", i);
        const char *near = option_nearest(item, names, count);
        if (near != NULL)
            problem_add(problems, key, "'%.60s' is not a pattern; did you mean '%s'?", item, near);
        else
            problem_add(problems, key,
                        "'%.60s' is not a pattern; `culprit components` lists those of each "
                        "processor",
                        item);
    }
}
