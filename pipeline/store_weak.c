// SPDX-License-Identifier: Apache-2.0
// temporary: goes away when pipeline/store.c is there
#include "pipeline/store.h"
#include <stddef.h>
__attribute__((weak)) struct store_batch *store_batch_new(struct store *s) {
    (void)s;
    return NULL;
}
__attribute__((weak)) void store_put(struct store_batch *b, enum store_space s, const char *n, uint64_t x,
               struct slice y) {
    (void)b;
    (void)s;
    (void)n;
    (void)x;
    (void)y;
}
__attribute__((weak)) void store_delete(struct store_batch *b, enum store_space s, const char *n, uint64_t x,
                  uint64_t y) {
    (void)b;
    (void)s;
    (void)n;
    (void)x;
    (void)y;
}
__attribute__((weak)) void store_delete_names(struct store_batch *b, enum store_space s, const char *p) {
    (void)b;
    (void)s;
    (void)p;
}
__attribute__((weak)) uint64_t store_submit(struct store_batch *b) {
    (void)b;
    return 1;
}
__attribute__((weak)) uint64_t store_durable(const struct store *s) {
    (void)s;
    return 0;
}
__attribute__((weak)) enum status store_wait(struct store *s, uint64_t t, uint64_t n, struct error *e) {
    (void)s;
    (void)t;
    (void)n;
    (void)e;
    return STATUS_OK;
}
__attribute__((weak)) void store_on_commit(struct store *s, void (*c)(void *), void *x) {
    (void)s;
    (void)c;
    (void)x;
}
__attribute__((weak)) enum status store_scan(struct store *s, enum store_space p, const char *n, uint64_t f, uint64_t l,
                       store_visit *v, void *c, struct error *e) {
    (void)s;
    (void)p;
    (void)n;
    (void)f;
    (void)l;
    (void)v;
    (void)c;
    (void)e;
    return STATUS_OK;
}
__attribute__((weak)) void store_figures(struct store *s, struct store_figures *f) {
    (void)s;
    (void)f;
}
__attribute__((weak)) bool store_full(const struct store *s) {
    (void)s;
    return false;
}
