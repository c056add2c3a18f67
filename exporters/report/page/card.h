// SPDX-License-Identifier: Apache-2.0
// What the cards of the page are made of.
#pragma once

#include "exporters/report/page/parts.h"

struct badge {
    const char *class; // how the card looks
    const char *shape;
    const char *word;
};

// The answer on the memory of a job; the gravest of its verdicts.
struct badge card_answer_badge(const struct page_view *view, const struct evaluation *evaluation);
struct badge card_severity_badge(enum severity severity);
struct badge card_badge(const struct page_view *view, const struct verdict *verdict);
// Its place among the page's verdicts; their count: it is not there.
uint32_t card_number(const struct page_view *view, const char *id);
// "v4": the id by which others lead to it.
const char *card_id(struct page_view *view, const struct verdict *verdict);
// `verdict` and `id` may be NULL. The caller ends it with "</article>".
void card_begin(struct page_view *view, struct badge badge, const struct verdict *verdict,
                const char *id);
void card_headline(struct page_view *view, const char *text);
// Rows of a list of facts.
void card_fact_begin(struct page_view *view, const char *label);
void card_fact_end(struct page_view *view);
void card_fact(struct page_view *view, const char *label, struct slice text);
void card_entities(struct page_view *view, const struct verdict *verdict);
void card_moments(struct page_view *view, const struct verdict *verdict);
// When it began, or that nobody wrote it.
void card_began(struct page_view *view, const struct verdict *verdict);
// Folded: evidence by time; id, pattern, the two times, and attributes.
void card_evidence(struct page_view *view, const struct verdict *verdict);
void card_figures(struct page_view *view, const struct verdict *verdict, bool with_times);
