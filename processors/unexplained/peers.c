// SPDX-License-Identifier: Apache-2.0
// Finds names of other ends in the words of signs: each library has its own way to say them.
#include "processors/unexplained/peers.h"

#include "base/text/cut.h"

static bool is_of_name(char c) {
    return text_is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
           c == '-' || c == '_';
}

// The name or address at the beginning; in brackets an address of IPv6 as well.
static struct slice name_at(struct slice text, bool in_brackets) {
    size_t size = 0;
    while (size < text.size &&
           (is_of_name(text.data[size]) || (in_brackets && text.data[size] == ':')))
        size++;
    struct slice name = {text.data, size};
    text_skip(&name, SLICE("::ffff:"));
    while (name.size > 0 && name.data[name.size - 1] == '.')
        name.size--;
    return name;
}

static bool is_local(struct slice host) {
    return host.size == 0 || text_begins(host, SLICE("127.")) || text_begins(host, SLICE("::")) ||
           slice_equal(host, SLICE("localhost")) || slice_equal(host, SLICE("0.0.0.0"));
}

static struct slice host_of(struct slice meeting) {
    text_skip(&meeting, SLICE("tcp://"));
    bool in_brackets = text_skip(&meeting, SLICE("["));
    return name_at(meeting, in_brackets);
}

struct slice sign_peer(const struct sign *sign) {
    static const struct {
        const char *before;
        char behind; // what stands behind the name
    } WAYS[] = {
        {"Connect to ", '<'},       // NCCL
        {"from peer ", '<'},        // NCCL, of InfiniBand
        {"remote peer ", '<'},      // NCCL
        {"connect to (", ','},      // c10d
        {"connect to [", ']'},      // c10d
        {"validate to host ", ':'}, // c10d
        {"addresses of (", ','},    // c10d
        {"peer [", ']'},            // gloo
        {"connect [", ']'},         // gloo
        {"ipv4:", ':'},             // gRPC
    };
    struct slice text = slice_of(sign->text), behind;
    for (size_t i = 0; i < sizeof WAYS / sizeof *WAYS; i++) {
        if (!text_find(text, slice_of(WAYS[i].before), &behind))
            continue;
        struct slice name = name_at(behind, WAYS[i].behind == ']');
        const char *end = name.data + name.size;
        bool is_whole = end < text.data + text.size && *end == WAYS[i].behind;
        if (is_whole && !is_local(name))
            return name;
    }
    return SLICE("");
}

// -- where a job meets ----------------------------------------------------------------------------

struct slice peer_meeting(const struct sign *sign) {
    struct slice text = slice_of(sign->text), behind;
    return text_find(text, SLICE(SIGN_MEETS), &behind) ? behind : SLICE("");
}

static bool is_address(struct slice host) {
    for (size_t i = 0; i < host.size; i++)
        if (!text_is_digit(host.data[i]) && host.data[i] != '.')
            return false;
    return true;
}

static struct slice short_name(struct slice host) {
    return is_address(host) ? host : text_until(host, '.');
}

bool peers_differ(struct slice a, struct slice b) {
    return is_address(a) == is_address(b) && !slice_equal(short_name(a), short_name(b));
}

// Behind the host; empty: not said.
static struct slice port_of(struct slice meeting) {
    const char *colon = meeting.size == 0 ? NULL : memrchr(meeting.data, ':', meeting.size);
    return colon == NULL ? SLICE("") : text_from(meeting, (size_t)(colon - meeting.data) + 1);
}

// Two that cannot be one place.
static bool are_apart(struct slice a, struct slice b) {
    struct slice host_a = host_of(a), host_b = host_of(b);
    if (is_local(host_a) || is_local(host_b))
        return false;
    bool same_host = is_address(host_a) == is_address(host_b) && !peers_differ(host_a, host_b);
    return peers_differ(host_a, host_b) ||
           (same_host && port_of(a).size > 0 && port_of(b).size > 0 &&
            !slice_equal(port_of(a), port_of(b)));
}

const struct sign *peer_find_odd(const struct sign *const *layouts, uint32_t count,
                                 struct slice *others) {
    const struct sign *odd = NULL;
    for (uint32_t i = 0; i < count && count > 2; i++) {
        uint32_t apart = 0;
        for (uint32_t j = 0; j < count; j++)
            apart += are_apart(peer_meeting(layouts[i]), peer_meeting(layouts[j]));
        if (apart == count - 1)
            odd = odd == NULL ? layouts[i] : odd;
        else if (apart > 1)
            return NULL;
        else
            *others = peer_meeting(layouts[i]);
    }
    return odd;
}

struct slice peer_common_host(const struct sign *const *layouts, uint32_t count) {
    struct slice host = SLICE("");
    for (uint32_t i = 0; i < count; i++) {
        struct slice here = host_of(peer_meeting(layouts[i]));
        if (host.size > 0 && !slice_equal(host, here))
            return SLICE("");
        host = here;
    }
    return is_local(host) ? SLICE("") : host;
}
