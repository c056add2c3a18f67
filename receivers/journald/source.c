// SPDX-License-Identifier: Apache-2.0
// Opens the journal with what is to be matched, and finds where to go on.
#include "base/log.h"
#include "receivers/journald/receiver.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

static const char grant[] =
    "a user needs the group systemd-journal; a container the journal's directory as a volume, in "
    "Kubernetes a hostPath volume of /var/log/journal or /run/log/journal, and the option "
    "`directory`";

static const char *place(const struct journald_receiver *receiver) {
    const char *directory = receiver->config->directory;
    return directory == NULL ? "/var/log/journal or /run/log/journal" : directory;
}

static enum status failed(const struct journald_receiver *receiver, int result, const char *what,
                          struct error *error) {
    assert(result < 0);
    if (result == -EACCES || result == -EPERM || result == -ENOENT)
        return error_set_os(error, STATUS_IO, -result, "%s: %s (%s)", place(receiver), what, grant);
    return error_set_os(error, STATUS_IO, -result, "%s: %s", place(receiver), what);
}

static int open_journal(struct journald_receiver *receiver) {
    const struct journal_library *library = receiver->library;
    const struct journald_config *config = receiver->config;
    const int flags = SD_JOURNAL_LOCAL_ONLY | SD_JOURNAL_SYSTEM;
    if (config->directory != NULL)
        return library->open_directory(&receiver->journal, config->directory, 0);
    if (config->namespace != NULL)
        return library->open_namespace(&receiver->journal, config->namespace, flags);
    return library->open(&receiver->journal, flags);
}

// -- matches --------------------------------------------------------------------------------------

static int add_match(struct journald_receiver *receiver, const char *text) {
    return receiver->library->add_match(receiver->journal, text, 0);
}

static int add_unit(struct journald_receiver *receiver, const char *unit) {
    char text[512];
    int size = snprintf(text, sizeof text, "_SYSTEMD_UNIT=%s", unit);
    return size >= (int)sizeof text ? -ENAMETOOLONG : add_match(receiver, text);
}

// Alternatives: the kernel, or one of the units, or all of the matches.
static int add_matches(struct journald_receiver *receiver) {
    const struct journald_config *config = receiver->config;
    const struct journal_library *library = receiver->library;
    int result = config->kernel ? add_match(receiver, "_TRANSPORT=kernel") : 0;
    if (result >= 0 && config->units.count > 0)
        result = library->add_disjunction(receiver->journal);
    for (uint32_t i = 0; result >= 0 && i < config->units.count; i++)
        result = add_unit(receiver, config->units.items[i]);
    if (result >= 0 && config->matches.count > 0)
        result = library->add_disjunction(receiver->journal);
    for (uint32_t i = 0; result >= 0 && i < config->matches.count; i++)
        result = add_match(receiver, config->matches.items[i]);
    return result;
}

// -- where to go on -------------------------------------------------------------------------------

static int seek_start(struct journald_receiver *receiver) {
    const struct journal_library *library = receiver->library;
    if (receiver->start_us == 0)
        return library->seek_head(receiver->journal);
    return library->seek_realtime_usec(receiver->journal, receiver->start_us);
}

static void say_gap(struct journald_receiver *receiver) {
    if (receiver->context->copy > 0)
        return;
    metric_add(receiver->counters.gaps, 1);
    log_write(LOG_WARN, (struct log_site){"C9201", receiver->context->site},
              "the entry at which it stopped is not in the journal any more: entries behind it may "
              "be lost (SystemMaxUse and MaxRetentionSec of journald.conf say how much is kept)");
}

// Behind the entry that was read last, or where it was.
static int seek_on(struct journald_receiver *receiver) {
    const struct journal_library *library = receiver->library;
    char text[JOURNAL_CURSOR_TEXT_MAX];
    journal_cursor_format(&receiver->cursor, text);
    int result = library->seek_cursor(receiver->journal, text);
    if (result >= 0)
        result = library->next(receiver->journal);
    if (result < 0)
        return result;
    bool there = result > 0;
    if (there)
        result = library->test_cursor(receiver->journal, text);
    if (result < 0)
        return result;
    if (result == 0)
        say_gap(receiver);
    receiver->at_entry = there && result == 0;
    return 0;
}

enum status journald_open(struct journald_receiver *receiver, struct error *error) {
    const struct journal_library *library = receiver->library;
    assert(receiver->journal == NULL);
    receiver->at_entry = false;
    uint64_t usage = 0;
    int result = open_journal(receiver);
    if (result < 0) {
        receiver->journal = NULL;
        return failed(receiver, result, "the journal cannot be opened", error);
    }
    // From now on changes are noted, so that none is missed between reading and waiting.
    result = library->get_fd(receiver->journal);
    if (result >= 0)
        result = library->get_usage(receiver->journal, &usage);
    if (result >= 0 && usage == 0)
        result = -ENOENT;
    if (result < 0) {
        journald_close(receiver);
        return failed(receiver, result, "no journal that may be read is there", error);
    }
    library->set_data_threshold(receiver->journal,
                                (size_t)receiver->config->max_message_size.bytes);
    result = add_matches(receiver);
    if (result >= 0)
        result = receiver->known ? seek_on(receiver) : seek_start(receiver);
    if (result < 0) {
        journald_close(receiver);
        return failed(receiver, result, "the journal cannot be searched", error);
    }
    return STATUS_OK;
}

void journald_close(struct journald_receiver *receiver) {
    if (receiver->journal != NULL)
        receiver->library->close(receiver->journal);
    receiver->journal = NULL;
}
