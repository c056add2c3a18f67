// SPDX-License-Identifier: Apache-2.0
// Messages of network drivers begin "<driver> <address>[ <interface>]: "; those of mlx5 may have
// the function, line and process behind it. What is said of links and modules in the first minute
// after the boot is how they were found, and no event. O(line), no memory.
#include "receivers/decode/kernel_log/parts.h"

enum { NUMBER_DIGITS_MAX = 10, DRIVER_SIZE_MAX = 32 };
static const uint64_t BOOT_US = 60 * UINT64_C(1000000);

static bool is_boot(const struct frame *frame) {
    return frame->boot_us != 0 && frame->boot_us < BOOT_US;
}

struct card {
    struct slice driver, interface; // interface: empty, not said
    pci_address address;
};

// "mlx5_core 0000:5c:00.0 ens1f0np0: ", "ice 0000:5c:00.0: "; moves `text` behind it.
static bool take_card(struct slice *text, struct card *card) {
    struct slice rest = *text, word;
    card->driver = text_until(rest, ' ');
    if (card->driver.size == 0 || card->driver.size > DRIVER_SIZE_MAX ||
        card->driver.size == rest.size)
        return false;
    rest = text_from(rest, card->driver.size + 1);
    word = text_until(rest, ' ');
    card->interface = (struct slice){rest.data, 0};
    rest = text_from(rest, word.size);
    if (!words_ends(word, SLICE(":"))) {
        if (!text_skip_char(&rest, ' '))
            return false;
        card->interface = text_until(rest, ':');
        rest = text_from(rest, card->interface.size);
        if (!text_skip_char(&rest, ':') || memchr(card->interface.data, ' ', card->interface.size))
            return false;
    } else {
        word.size--;
    }
    if (!pci_parse(word, &card->address))
        return false;
    text_skip_blanks(&rest);
    *text = rest;
    return true;
}

static void begin(enum observation_kind kind, const struct card *card, struct reading *reading) {
    reading_begin(reading, kind);
    reading->needs_time = true;
    if (card->address != PCI_NONE)
        reading_address(reading, FACT_NIC, card->address);
    if (card->interface.size > 0)
        reading_text(reading, FACT_DEVICE, card->interface);
    if (card->driver.size > 0)
        reading_text(reading, FACT_DRIVER, card->driver);
}

// "poll_health:840:(pid 0): ".
static void skip_place(struct slice *text) {
    struct slice rest = *text, function = text_until_any(rest, ": ");
    uint64_t number;
    rest = text_from(rest, function.size);
    if (text_skip_char(&rest, ':') && text_take_number(&rest, 1, NUMBER_DIGITS_MAX, &number) &&
        text_skip(&rest, SLICE(":(pid ")) &&
        text_take_number(&rest, 1, NUMBER_DIGITS_MAX, &number) && text_skip(&rest, SLICE("): ")))
        *text = rest;
}

// -- mlx5 -----------------------------------------------------------------------------------------

static enum read_result give_link(const struct card *card, bool up, const struct frame *frame,
                                  struct reading *reading) {
    if (is_boot(frame))
        return READ_OTHER;
    begin(OBSERVATION_NIC_LINK, card, reading);
    reading_text(reading, FACT_STATE, up ? SLICE("up") : SLICE("down"));
    return READ_EVENT;
}

// "Health issue observed, unrecoverable hardware error, severity(3) ERROR:": a severity of the
// system log, of which 4 is a warning.
static enum read_result read_issue(struct slice text, const struct card *card,
                                   struct reading *reading) {
    struct slice syndrome, rest;
    uint64_t severity;
    if (!words_find_last(text, SLICE(", severity("), &syndrome, &rest) ||
        !text_take_number(&rest, 1, 2, &severity) || !text_skip_char(&rest, ')'))
        return reading_refuse(reading, DECODE_TRUNCATED, "the line ends before the severity");
    begin(OBSERVATION_NIC_HEALTH, card, reading);
    reading_text(reading, FACT_SYNDROME, syndrome);
    reading_yes_no(reading, FACT_FATAL, severity < 4);
    return READ_EVENT;
}

// "synd 0x8: unrecoverable hardware error".
static enum read_result read_syndrome(struct slice text, const struct card *card,
                                      struct reading *reading) {
    struct slice number = text_until(text, ':');
    struct slice syndrome = text_trim(text_from(text, number.size + (number.size < text.size)));
    if (syndrome.size == 0 || slice_equal(number, SLICE("0x0")))
        return READ_OTHER;
    begin(OBSERVATION_NIC_HEALTH, card, reading);
    reading_text(reading, FACT_SYNDROME, syndrome);
    return READ_EVENT;
}

// ": module 0, Cable unplugged", "[error]: module 0, Cable error, High Temperature". What a line
// that breaks off says last may be the front of another state, or what a state stands behind.
static enum read_result read_module(struct slice text, const struct card *card,
                                    const struct frame *frame, struct reading *reading) {
    struct slice state, rest;
    if (is_boot(frame))
        return READ_OTHER;
    if (!text_find(text, SLICE(", "), &state) || text_trim(state).size == 0)
        return reading_refuse(reading, DECODE_TRUNCATED, "the line ends before the state");
    words_find_last(state, SLICE(", "), &rest, &state);
    begin(OBSERVATION_NIC_MODULE, card, reading);
    if (!frame->truncated)
        reading_text(reading, FACT_STATE, text_trim(state));
    return READ_EVENT;
}

// "1 Link DOWN": the state of a port of InfiniBand, as the RDMA core writes it since Linux 6.14 and
// NVIDIA's own drivers do. Between down and active it trains.
static enum read_result read_port(struct slice text, const struct card *card,
                                  const struct frame *frame, struct reading *reading) {
    uint64_t port;
    if (!text_take_number(&text, 1, 3, &port) || !text_skip(&text, SLICE(" Link ")))
        return READ_NOT;
    bool up = slice_equal(text_trim(text), SLICE("ACTIVE"));
    if (!up && !slice_equal(text_trim(text), SLICE("DOWN")))
        return READ_OTHER;
    enum read_result result = give_link(card, up, frame, reading);
    if (result == READ_EVENT)
        reading_number(reading, FACT_PORT, (int64_t)port);
    return result;
}

// What says that the card is lost, at the front of the message.
static bool is_lost(struct slice text) {
    static const struct slice fronts[] = {
        {"device's health compromised - reached miss count", 48},
        {"Fatal error ", 12},
        {"FW is unable to respond to initialization segment reads", 55},
        {"PCI slot is unavailable", 23}};
    for (size_t i = 0; i < sizeof fronts / sizeof *fronts; i++)
        if (text_begins(text, fronts[i]))
            return true;
    return false;
}

static enum read_result read_front(struct slice text, const struct card *card,
                                   const struct frame *frame, struct reading *reading) {
    if (text_skip(&text, SLICE("Health issue observed, ")))
        return read_issue(text, card, reading);
    if (text_skip(&text, SLICE("synd ")))
        return read_syndrome(text, card, reading);
    if (text_skip(&text, SLICE("Port module event")))
        return read_module(text, card, frame, reading);
    if (text_skip(&text, SLICE("Port: ")))
        return read_port(text, card, frame, reading);
    struct slice state = text_trim(text);
    if (slice_equal(state, SLICE("Link down")) || slice_equal(state, SLICE("Link up")))
        return give_link(card, words_ends(state, SLICE("up")), frame, reading);
    if (!text_begins(text, SLICE("Detected insufficient power on the PCIe slot")))
        return READ_NOT;
    begin(OBSERVATION_NIC_POWER, card, reading);
    return READ_EVENT;
}

// A command to the firmware that had no answer. One that it refused is noise: mostly somebody reads
// counters that the function does not have.
static enum read_result read_command(struct slice text, const struct card *card,
                                     struct reading *reading) {
    struct slice rest;
    bool fatal = text_find(text, SLICE(" timeout. Will cause a leak of a command resource"), &rest);
    if (!fatal && !text_find(text, SLICE("cmd_exec timeout"), &rest))
        return text_find(text, SLICE(" failed, status "), &rest) ? READ_OTHER : READ_NOT;
    begin(OBSERVATION_NIC_COMMAND, card, reading);
    if (fatal)
        reading_yes_no(reading, FACT_FATAL, true);
    return READ_EVENT;
}

enum read_result nic_read_mlx5(struct slice before, struct slice behind, const struct frame *frame,
                               struct reading *reading) {
    static const struct slice driver = {"mlx5_core ", 10};
    struct slice text = {behind.data - driver.size, behind.size + driver.size};
    struct card card;
    (void)before;
    if (!take_card(&text, &card))
        return READ_NOT;
    skip_place(&text);
    if (is_lost(text)) {
        begin(OBSERVATION_NIC_HEALTH, &card, reading);
        reading_yes_no(reading, FACT_FATAL, true);
        return READ_EVENT;
    }
    enum read_result result = read_front(text, &card, frame, reading);
    return result == READ_NOT ? read_command(text, &card, reading) : result;
}

// -- any driver -----------------------------------------------------------------------------------

// "bnxt_en 0000:a1:00.1 ens3f1np1: NIC Link is Down"; without an address it is no card.
enum read_result nic_read_link(struct slice before, struct slice behind, const struct frame *frame,
                               struct reading *reading) {
    struct card card;
    if (!take_card(&before, &card))
        return READ_NOT;
    bool up = text_begins(behind, SLICE("Up")) || text_begins(behind, SLICE("up"));
    if (!up && !text_begins(behind, SLICE("Down")) && !text_begins(behind, SLICE("down")))
        return READ_NOT;
    return give_link(&card, up, frame, reading);
}

// "bond0: (slave eth1): link status definitely " "down, disabling slave"; before 5.0 "down for
// interface eth1, disabling it".
enum read_result nic_read_bond(struct slice before, struct slice behind, const struct frame *frame,
                               struct reading *reading) {
    struct card card = {.address = PCI_NONE};
    struct slice rest;
    bool up = text_begins(behind, SLICE("up"));
    if (!up && !text_begins(behind, SLICE("down")))
        return READ_NOT;
    bool named = text_find(before, SLICE("(slave "), &rest)
                     ? words_find(rest, SLICE(")"), &card.interface, &rest)
                     : text_find(behind, SLICE(" for interface "), &rest) &&
                           words_find(rest, SLICE(","), &card.interface, &rest);
    return named ? give_link(&card, up, frame, reading) : READ_NOT;
}

// "eth0 (mlx5_core): transmit queue 3 timed out", "CPU: 12: transmit queue 3 timed out 5120 ms"
// with the card in front.
enum read_result nic_read_watchdog(struct slice before, struct slice behind,
                                   const struct frame *frame, struct reading *reading) {
    struct card card = {.address = PCI_NONE};
    struct slice rest;
    (void)frame;
    if (!text_find(behind, SLICE(" timed out"), &rest))
        return reading_refuse(reading, DECODE_TRUNCATED,
                              "the line ends before it says that a queue timed out");
    if (!take_card(&before, &card)) {
        card = (struct card){.address = PCI_NONE};
        if (words_find(behind, SLICE(" ("), &card.interface, &rest))
            words_find(rest, SLICE("): "), &card.driver, &rest);
    }
    begin(OBSERVATION_NETDEV_WATCHDOG, &card, reading);
    return READ_EVENT;
}
