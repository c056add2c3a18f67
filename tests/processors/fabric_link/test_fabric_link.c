// SPDX-License-Identifier: Apache-2.0
// fabric_link: which links failed, how, and which only bounced or erred once.
#include "cli/component_list.h"
#include "pipeline/model/observation.h"
#include "tests/processors/cluster_fixture.h"

static struct fact facts[CLUSTER_EVENTS_MAX][8];
static struct observation said[CLUSTER_EVENTS_MAX];

static void setup(void) {
    fixture_begin(&processor_fabric_link);
}

static struct observation *seen(double seconds, const char *node, enum observation_kind kind) {
    struct observation *observation = &said[cluster.count];
    *observation = (struct observation){
        .kind = kind, .text = SLICE("as it stood"), .facts = facts[cluster.count]};
    node_event_add(&cluster, seconds, node, EVENT_OBSERVATION)->observation = observation;
    return observation;
}

// Facts stand in the order of their keys.
static void with(struct observation *observation, struct fact fact) {
    struct fact *list = facts[observation - said];
    uint32_t at = observation->fact_count++;
    for (; at > 0 && list[at - 1].key > fact.key; at--)
        list[at] = list[at - 1];
    list[at] = fact;
}

static void with_text(struct observation *observation, enum fact_key key, const char *text) {
    with(observation, (struct fact){.key = key, .text = slice_of(text)});
}

static void link_line(double seconds, const char *state) {
    struct observation *line = seen(seconds, "n1", OBSERVATION_NIC_LINK);
    with(line, (struct fact){.key = FACT_NIC, .address = node_pci("0000:5c:00")});
    with_text(line, FACT_DEVICE, "ens1f0np0");
    with_text(line, FACT_STATE, state);
}

static void bounce(double seconds, double length) {
    link_line(seconds, "down");
    link_line(seconds + length, "up");
}

// `counter` NULL: the port's state, of which 1 is active.
static void port(double seconds, const char *device, const char *counter, int64_t value) {
    struct observation *sample =
        seen(seconds, "n1", counter == NULL ? OBSERVATION_IB_STATE : OBSERVATION_IB_COUNTER);
    with_text(sample, FACT_DEVICE, device);
    with(sample, (struct fact){.key = FACT_PORT, .number = 1});
    if (counter == NULL) {
        with_text(sample, FACT_STATE, value == 1 ? "ACTIVE" : "DOWN");
        return;
    }
    with_text(sample, FACT_COUNTER, counter);
    with(sample, (struct fact){.key = FACT_VALUE, .number = value});
}

// Moves the time on.
static void later(double seconds) {
    node_xid(&cluster, seconds, "n9", "0000:01:00", 13, "");
}

// -- down -----------------------------------------------------------------------------------------

START_TEST(down_and_not_up) {
    link_line(100, "down");
    later(200);
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines,
         "\"pattern\":\"fabric_link\",\"kind\":\"link_down\",\"state\":\"open\","
         "\"severity\":\"error\",\"completeness\":\"full\",\"confidence\":88");
    says(lines, "Network card ens1f0np0 (0000:5c:00) of n1 is down");
    says(lines,
         "{\"kind\":\"nic\",\"name\":\"n1/0000:5c:00\",\"role\":\"culprit\"},"
         "{\"kind\":\"node\",\"name\":\"n1\",\"role\":\"suspect\"}");
    says(lines, "\"uid\":\"link:n1:ens1f0np0:down:1794992500000000000\"");
    says(lines, "\"action\":\"check_link\"");
}
END_TEST

// Each function of a card is a port: that one came up says nothing of the other.
START_TEST(two_ports_of_a_card) {
    static const struct {
        double seconds;
        const char *address, *state;
    } lines_of[] = {{100, "0000:18:00.1", "down"}, {103, "0000:18:00.0", "up"}};
    for (int i = 0; i < 2; i++) {
        struct observation *line = seen(lines_of[i].seconds, "n1", OBSERVATION_NIC_LINK);
        with(line, (struct fact){.key = FACT_NIC, .address = node_pci(lines_of[i].address)});
        with_text(line, FACT_STATE, lines_of[i].state);
    }
    later(200);
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines, "Network card 0000:18:00.1 of n1 is down");
    says(lines, "{\"kind\":\"nic\",\"name\":\"n1/0000:18:00.1\",\"role\":\"culprit\"}");
}
END_TEST

static const struct {
    double length;
    uint32_t verdicts;
} BOUNCES[] = {{0.5, 0}, {9.9, 0}, {10, 1}, {60, 1}};

START_TEST(a_short_bounce_is_none) {
    bounce(100, BOUNCES[_i].length);
    later(1000);
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, BOUNCES[_i].verdicts);
    if (BOUNCES[_i].verdicts == 1)
        says(lines, "was down for");
}
END_TEST

START_TEST(just_gone_down) {
    link_line(100, "down");
    later(105);
    detector_start(&detector);
    detector_feed(&detector, cluster.events, cluster.count);
    detector_judge(&detector, UINT64_MAX, false);
    ck_assert_uint_eq(detector.verdict_count, 0);
    later(110);
    detector_feed(&detector, &cluster.events[cluster.count - 1], 1);
    detector_judge(&detector, UINT64_MAX, false);
    ck_assert_uint_eq(detector.verdict_count, 1);
}
END_TEST

// A port that was never active is one that nobody uses.
START_TEST(state_of_a_port) {
    for (int i = 0; i < 4; i++) {
        port(30 * i, "mlx5_7", NULL, 0);
        port(30 * i, "mlx5_3", NULL, i < 2);
    }
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines, "Port 1 of mlx5_3 of n1 is down");
    says(lines, "\"name\":\"n1/mlx5_3\"");
    says(lines, "\"uid\":\"ib:n1:mlx5_3:1:state:1794992460000000000\"");
    says(lines, "\"start_time_unix_nano\":\"1794992460000000000\"");
}
END_TEST

// A sample tells of what happened after the one before, a line when it was. What a program could
// not reach in between is an effect of it.
START_TEST(a_sample_says_after_when) {
    for (int i = 0; i < 3; i++) {
        port(30 * i, "mlx5_3", NULL, i < 2);
        with(&said[cluster.count - 1],
             (struct fact){.key = FACT_NIC, .address = node_pci("0000:5c:00")});
    }
    if (_i == 1)
        with_text(seen(50, "n1", OBSERVATION_NCCL_NET_ERROR), FACT_DEVICE, "mlx5_3");
    if (_i == 2)
        link_line(50, "down");
    later(200);
    detector_start(&detector);
    detector_feed(&detector, cluster.events, cluster.count);
    struct batch batch = {.arena = &detector.arena,
                          .newest_ns = detector.newest_ns,
                          .evaluate = true,
                          .as_of_ns = UINT64_MAX};
    detector.type->processor.consume(detector.instance, &batch);
    ck_assert_uint_eq(batch.verdicts.count, 1);
    const struct verdict *verdict = &batch.verdicts.items[0];
    ck_assert_uint_eq(verdict->start_ns, cluster_time(_i == 0 ? 60 : 50));
    ck_assert_uint_eq(verdict->after_ns, _i == 2 ? 0 : cluster_time(30));
    arena_reset(&detector.arena);
}
END_TEST

START_TEST(lost_while_in_use) {
    struct observation *line = seen(100, "n1", OBSERVATION_NCCL_PORT_ERROR);
    with_text(line, FACT_DEVICE, "mlx5_3");
    with(line, (struct fact){.key = FACT_PORT, .number = 1});
    struct observation *remote = seen(103, "n1", OBSERVATION_NCCL_NET_ERROR);
    with_text(remote, FACT_DEVICE, "mlx5_3");
    const char *lines = run();
    says(lines, "Port 1 of mlx5_3 of n1 went down while a program used it");
    says(lines, "\"role\":\"effect\"");
}
END_TEST

START_TEST(who_cannot_reach_others_is_no_culprit) {
    with_text(seen(103, "n1", OBSERVATION_NCCL_NET_ERROR), FACT_DEVICE, "mlx5_3");
    run();
    ck_assert_uint_eq(detector.verdict_count, 0);
}
END_TEST

static void health(double seconds, int fatal) {
    struct observation *line = seen(seconds, "n1", OBSERVATION_NIC_HEALTH);
    with(line, (struct fact){.key = FACT_NIC, .address = node_pci("0000:5c:00")});
    if (fatal >= 0)
        with(line, (struct fact){.key = FACT_FATAL, .yes = fatal == 1});
}

START_TEST(card_that_fails) {
    health(100, _i - 1);
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, _i != 1);
    if (_i == 2) {
        says(lines, "\"kind\":\"link_down\",\"state\":\"open\",\"severity\":\"critical\"");
        says(lines, "\"action\":\"drain_node\"");
    } else if (_i == 0) {
        says(lines, "\"kind\":\"link_errors\"");
    }
}
END_TEST

// -- flapping, errors -----------------------------------------------------------------------------

START_TEST(three_in_an_hour) {
    bounce(100, 4);
    bounce(1000, 4);
    if (_i != 0)
        bounce(_i == 1 ? 3700 : 3701, 4);
    later(9000);
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, _i == 1);
    if (_i == 1)
        says(lines, "Network card ens1f0np0 (0000:5c:00) of n1 went down 3 times within 1 h");
}
END_TEST

// One flap that three sources tell of is one.
START_TEST(sources_are_not_added_up) {
    struct observation *sample = seen(0, "n1", OBSERVATION_IB_COUNTER);
    with_text(sample, FACT_DEVICE, "mlx5_3");
    with(sample, (struct fact){.key = FACT_NIC, .address = node_pci("0000:5c:00")});
    with_text(sample, FACT_COUNTER, "link_downed");
    with(sample, (struct fact){.key = FACT_VALUE, .number = 1});
    port(1, "mlx5_3", "link_downed", 1);
    bounce(100, 4);
    port(120, "mlx5_3", "link_downed", 2);
    bounce(200, 4);
    port(220, "mlx5_3", "link_downed", _i == 0 ? 3 : 4);
    run();
    ck_assert_uint_eq(detector.verdict_count, (unsigned)_i);
}
END_TEST

START_TEST(flaps_and_then_stays_down) {
    bounce(100, 4);
    bounce(200, 4);
    bounce(300, 4);
    link_line(400, "down");
    later(500);
    says(run(), "\"kind\":\"link_down\"");
}
END_TEST

static const struct {
    int64_t values[4];
    const char *counter;
    uint32_t verdicts;
} RISES[] = {
    {{0, 60, 120, 120}, "symbol_error", 0},
    {{0, 60, 121, 121}, "symbol_error", 1},
    {{0, 60, 121, 121}, "port_rcv_errors", 1},
    {{0, 60, 121, 121}, "link_error_recovery", 1},
    {{0, 6000, 12100, 99999}, "port_xmit_wait", 0},    // load
    {{65535, 65535, 65535, 65535}, "symbol_error", 0}, // was there before
    {{5000, 100, 150, 200}, "symbol_error", 0},        // was reset
    {{65000, 65500, 65535, 65535}, "symbol_error", 1},
    {{1, 1, 3, 4}, "link_downed", 1},
};

START_TEST(counters) {
    for (int i = 0; i < 4; i++)
        port(60 * i, "mlx5_3", RISES[_i].counter, RISES[_i].values[i]);
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, RISES[_i].verdicts);
    if (RISES[_i].values[2] == 65535 && RISES[_i].verdicts == 1)
        says(lines, "stands at its maximum");
    if (_i == 8)
        says(lines, "\"kind\":\"link_flapping\"");
}
END_TEST

START_TEST(queue_that_does_not_drain) {
    with_text(seen(100, "n1", OBSERVATION_NETDEV_WATCHDOG), FACT_DEVICE, "eth0");
    const char *lines = run();
    says(lines, "\"kind\":\"link_errors\",\"state\":\"open\",\"severity\":\"warning\"");
    says(lines, "Network card eth0 of n1 has trouble: as it stood");
}
END_TEST

START_TEST(modules) {
    static const char *const states[] = {"Cable plugged", "Cable unplugged", "High Temperature"};
    static const char *const kinds[] = {NULL, "link_down", "link_errors"};
    struct observation *line = seen(100, "n1", OBSERVATION_NIC_MODULE);
    with(line, (struct fact){.key = FACT_NIC, .address = node_pci("0000:5c:00")});
    with_text(line, FACT_STATE, states[_i]);
    later(200);
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, kinds[_i] != NULL);
    if (kinds[_i] != NULL)
        says(lines, kinds[_i]);
}
END_TEST

START_TEST(another_monitor) {
    struct observation *event = seen(100, "n1", OBSERVATION_HEALTH_EVENT);
    with_text(event, FACT_DEVICE, "mlx5_3");
    with(event, (struct fact){.key = FACT_FATAL, .yes = true});
    with(event, (struct fact){.key = FACT_HEALTHY, .yes = _i == 1});
    run();
    ck_assert_uint_eq(detector.verdict_count, _i == 0);
}
END_TEST

// -- NVLink ---------------------------------------------------------------------------------------

static void nonfatal(double seconds) {
    node_xid(&cluster, seconds, "n1", "0000:45:00", 145, "RLW_RXPIPE Nonfatal XC0 i0 Link 02");
}

static void sxid(double seconds, enum kernel_fatal fatal) {
    struct kernel_line *line = node_line(&cluster, seconds, "n1", "0000:05:00", KERNEL_SXID);
    line->code = 20034;
    line->fatal = fatal;
    line->link = 21;
    line->detail = SLICE("LTSSM Fault Up");
}

// What an Xid 45 names it cleared up after: the Xid itself may be in no line that is left.
START_TEST(an_xid_that_only_a_cleanup_names) {
    node_xid(&cluster, 100, "n1", "0000:dc:00", 45, "pid=7, Ch 00000001 caused by previous Xid 149")
        ->caused_by = 149;
    node_xid(&cluster, 101, "n1", "0000:ba:00", 45, "pid=8, Ch 00000002 caused by previous Xid 145")
        ->caused_by = 145;
    node_xid(&cluster, 102, "n1", "0000:1b:00", 45, "pid=9, Ch 00000003 caused by previous Xid 31")
        ->caused_by = 31;
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines, "an NVLink error ended what ran on it (Xid 149)");
    says(lines, "\"uid\":\"xid:n1:0000:dc:00:45:1794992500000000000\"");
    says(lines, "{\"kind\":\"gpu\",\"name\":\"n1/0000:ba:00\",\"role\":\"suspect\"}");
    says_not(lines, "0000:1b:00");
}
END_TEST

START_TEST(nvlink_of_a_gpu) {
    node_xid(&cluster, 100, "n1", "0000:9b:00", 149, "NETIR_LINK_EVT Fatal XC0")->link = 9;
    node_xid(&cluster, 101, "n1", "0000:1b:00", 74, "NVLink: fatal error detected on link 3");
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines, "\"kind\":\"nvlink_error\",\"state\":\"open\",\"severity\":\"critical\"");
    says(lines, "GPU 0000:9b:00 of n1: NVLink failed with Xid 149 on link 9");
    says(lines,
         "{\"kind\":\"gpu\",\"name\":\"n1/0000:9b:00\",\"role\":\"culprit\"},"
         "{\"kind\":\"gpu\",\"name\":\"n1/0000:1b:00\",\"role\":\"suspect\"}");
    says(lines, "\"action\":\"reset_gpu\"");
}
END_TEST

// Two links of one GPU in one moment share a uid: which is told does not depend on arrival. A GPU
// is named once, however many Xids it has.
START_TEST(links_of_one_gpu_in_one_moment) {
    static const struct {
        const char *detail;
        int32_t link;
    } links[] = {{"NETIR_LINK_EVT Fatal XC0", 9}, {"NETIR Fatal XC0", -1}};
    node_xid(&cluster, 99, "n1", "0000:9b:00", 145, "RLW_SRC_TRACK Fatal XC1");
    for (int i = 0; i < 2; i++)
        node_xid(&cluster, 100, "n1", "0000:1b:00", 149, links[i ^ _i].detail)->link =
            links[i ^ _i].link;
    const char *lines = run();
    says(lines, "\"description\":\"Xid 149 on 0000:1b:00: NVLink 5 unit NETIR: NETIR Fatal XC0\"");
    ck_assert_ptr_eq(strstr(lines, "NETIR_LINK_EVT"), NULL);
    const char *suspect = "{\"kind\":\"gpu\",\"name\":\"n1/0000:1b:00\",\"role\":\"suspect\"}";
    says(lines, suspect);
    ck_assert_ptr_eq(strstr(strstr(lines, suspect) + 1, suspect), NULL);
}
END_TEST

START_TEST(recovered_errors_of_nvlink) {
    for (int i = 0; i < 9 + _i; i++)
        nonfatal(100 + i);
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, (unsigned)_i);
    if (_i == 1)
        says(lines, "\"severity\":\"warning\"");
}
END_TEST

START_TEST(switch_before_gpus) {
    node_xid(&cluster, 100, "n1", "0000:9b:00", 74, "NVLink: fatal error");
    sxid(100.2, KERNEL_FATAL_YES);
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines, "\"kind\":\"nvswitch_error\"");
    says(lines, "NVSwitch 0000:05:00 of n1 failed: SXid 20034 on link 21");
    says(lines, "{\"kind\":\"pci_device\",\"name\":\"n1/0000:05:00\",\"role\":\"culprit\"}");
    says(lines, "{\"kind\":\"gpu\",\"name\":\"n1/0000:9b:00\",\"role\":\"victim\"}");
    says(lines, "\"uid\":\"sxid:n1:0000:05:00:20034:21:1794992500200000000\"");
}
END_TEST

// Without a word on severity the code decides.
START_TEST(switch_by_its_code) {
    sxid(100, KERNEL_FATAL_UNKNOWN);
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines, "NVSwitch 0000:05:00 of n1 failed: SXid 20034 on link 21");
}
END_TEST

// What NVIDIA's guide lets pass is not counted, however often it comes.
START_TEST(switch_says_what_is_harmless) {
    for (int i = 0; i < 40; i++) {
        struct kernel_line *line = node_line(&cluster, 100 + i, "n1", "0000:05:00", KERNEL_SXID);
        line->code = i % 2 == 0 ? 22013 : 11012;
        line->fatal = KERNEL_FATAL_NO;
        line->link = i;
    }
    run();
    ck_assert_uint_eq(detector.verdict_count, 0);
}
END_TEST

// -- NVLink 5, by the numbers of the line ---------------------------------------------------------

#define PEER_FAILED        "NETIR_LINK_EVT  Fatal   XC0 i0 Link 15 (0x0215e5c6 0x00000000 0x0)"
#define LINK_FAILED_ITSELF "NETIR_LINK_EVT  Fatal   XC0 i0 Link 08 (0x004505c6 0x00000000 0x0)"

START_TEST(nvlink_of_the_other_end) {
    node_xid(&cluster, 100, "n1", "0009:01:00", 149, PEER_FAILED)->link = 15;
    node_xid(&cluster, 100.1, "n1", "0009:01:00", 154,
             "GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)");
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines, "GPU 0009:01:00 of n1 lost NVLink on link 15: the other end of the link failed");
    says(lines, "{\"kind\":\"gpu\",\"name\":\"n1/0009:01:00\",\"role\":\"victim\"}");
    says(lines, "The driver itself asks for a reset (Xid 154).");
    says_not(lines, "\"role\":\"culprit\"");
}
END_TEST

// The GPU that failed comes before those that lost it, whoever was first.
START_TEST(nvlink_of_both_ends) {
    node_xid(&cluster, 100, "n1", "0009:01:00", 149, PEER_FAILED)->link = 15;
    node_xid(&cluster, 100.1, "n1", "0000:9b:00", 149, LINK_FAILED_ITSELF)->link = 8;
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines, "GPU 0000:9b:00 of n1: NVLink failed with Xid 149 on link 8");
    says(lines, "{\"kind\":\"gpu\",\"name\":\"n1/0009:01:00\",\"role\":\"victim\"}");
}
END_TEST

START_TEST(nvlink_that_ends_programs) {
    node_xid(&cluster, 100, "n1", "0000:66:00", 145,
             "RLW_REMAP Nonfatal XC0 i0 Link 02 (0x00000004 0x00000004 0x0)")
        ->link = 2;
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines, "\"kind\":\"nvlink_error\",\"state\":\"open\",\"severity\":\"critical\"");
    says(lines, "GPU 0000:66:00 of n1: an NVLink error ended what ran on it (Xid 145) on link 2");
}
END_TEST

START_TEST(nvlink_that_somebody_took_down) {
    node_xid(&cluster, 100, "n1", "0000:66:00", 149,
             "NETIR_LINK_EVT  Fatal   XC0 i0 Link 02 (0x00f505c6 0x00000000 0x0)")
        ->link = 2;
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines, "\"severity\":\"warning\"");
    says(lines, "NVLink was taken down by software or by somebody (Xid 149) on link 2");
}
END_TEST

// -- restarts -------------------------------------------------------------------------------------

static struct observation *restart(double seconds, const char *state, const char *driver) {
    struct observation *line = seen(seconds, "n1", OBSERVATION_NODE_STATE);
    with_text(line, FACT_STATE, state);
    if (driver != NULL)
        with_text(line, FACT_DRIVER, driver);
    return line;
}

static const struct {
    double down, up; // of the link
    double time;     // of the restart
    const char *state, *driver;
    uint32_t verdicts;
} RESTARTS[] = {
    {1000, 1400, 1010, "down", NULL, 0}, // the machine goes down behind its links
    {1000, 1400, 950, "down", NULL, 0},  // and before them
    {1000, 1400, 1200, "down", NULL, 1}, // the link was down long before that
    {1000, 1400, 990, "up", NULL, 0},    // a port that comes up late
    {1000, 1400, 1030, "up", NULL, 0},   // lines of a start are not always in order
    {1000, 1400, 600, "up", NULL, 1},    // it ran for minutes
    {1000, 1400, 1390, "up", NULL, 1},   // a machine that was reset because of the link
    {1000, 1400, 995, "down", "mlx5_core", 0}, {1000, 1400, 995, "up", "mlx5_core", 0},
    {1000, 1400, 995, "up", "nvidia", 1}, // cards have nothing to do with it
};

START_TEST(links_while_a_machine_restarts) {
    link_line(RESTARTS[_i].down, "down");
    link_line(RESTARTS[_i].up, "up");
    restart(RESTARTS[_i].time, RESTARTS[_i].state, RESTARTS[_i].driver);
    later(3000);
    run();
    ck_assert_uint_eq(detector.verdict_count, RESTARTS[_i].verdicts);
}
END_TEST

// Another machine's restart is no excuse; that of the switch's driver is one for its links.
START_TEST(links_of_others) {
    link_line(1000, "down");
    seen(1001, "n2", OBSERVATION_NODE_STATE);
    restart(2000, "down", "nvidia");
    sxid(2001, KERNEL_FATAL_YES);
    later(3000);
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines, "is down");
}
END_TEST

// A driver that starts one card says little of the links of another; both functions of a card are
// one card.
static const struct {
    const char *card;
    double seconds; // of its start; the link goes down at 1000
    uint32_t verdicts;
} STARTS[] = {{"0000:1e:00.0", 900, 1}, {"0000:1e:00.0", 970, 0}, {"0000:5c:00.1", 900, 0}};

START_TEST(a_driver_that_starts_one_card) {
    link_line(1000, "down");
    with(restart(STARTS[_i].seconds, "up", "mlx5_core"),
         (struct fact){.key = FACT_NIC, .address = node_pci(STARTS[_i].card)});
    later(3000);
    run();
    ck_assert_uint_eq(detector.verdict_count, STARTS[_i].verdicts);
}
END_TEST

START_TEST(switch_that_recovered) {
    sxid(100, KERNEL_FATAL_NO);
    sxid(101, KERNEL_FATAL_NO);
    run();
    ck_assert_uint_eq(detector.verdict_count, 0);
}
END_TEST

// The other GPUs lose their links to one that fell off the bus: that is told of by gpu_fault.
START_TEST(peers_of_a_lost_gpu) {
    node_xid(&cluster, 100, "n1", "0000:1b:00", 79, "");
    if (_i == 1)
        node_xid(&cluster, 100.5, "n1", "0000:9b:00", 74, "NVLink: fatal error");
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, (unsigned)_i);
    if (_i == 1)
        says(lines, "{\"kind\":\"gpu\",\"name\":\"n1/0000:1b:00\",\"role\":\"victim\"}");
}
END_TEST

// -- what others tell of, restart, order, bounds --------------------------------------------------

static void judge_behind(const char *uid, enum verdict_state state) {
    struct evidence evidence = {.uid = slice_of(uid), .role = EVIDENCE_CAUSE};
    struct verdict verdict = {.id = "xid_correlation:0123456789abcdef",
                              .pattern = "xid_correlation",
                              .state = state,
                              .evidence = &evidence,
                              .evidence_count = 1};
    struct batch batch = {.arena = &detector.arena,
                          .newest_ns = detector.newest_ns,
                          .evaluate = true,
                          .as_of_ns = UINT64_MAX};
    batch_append_verdict(&batch, &verdict);
    detector.type->processor.consume(detector.instance, &batch);
    batch.verdicts.items++;
    batch.verdicts.count--;
    detector_lines_reset(&detector);
    detector_keep(&detector, &batch);
    arena_reset(&detector.arena);
}

START_TEST(handed_over_and_back) {
    static const char uid[] = "xid:n1:0000:9b:00:74:1794992500000000000";
    node_xid(&cluster, 100, "n1", "0000:9b:00", 74, "NVLink: fatal error");
    detector_start(&detector);
    detector_feed(&detector, cluster.events, cluster.count);
    judge_behind("other", VERDICT_OPEN);
    says(detector_lines(&detector), "\"state\":\"open\"");
    judge_behind(uid, VERDICT_OPEN);
    says(detector_lines(&detector), "\"state\":\"resolved\",\"severity\":\"info\"");
    schema_check_lines(SCHEMA, detector_lines(&detector));
    judge_behind("other", VERDICT_RESOLVED);
    says(detector_lines(&detector), "\"severity\":\"critical\"");
}
END_TEST

START_TEST(over_a_restart) {
    for (int i = 0; i < 3; i++)
        port(30 * i, "mlx5_3", NULL, 1);
    bounce(10, 4);
    bounce(20, 4);
    detector_start(&detector);
    detector_feed(&detector, cluster.events, cluster.count);
    detector_judge(&detector, UINT64_MAX, false);
    ck_assert_uint_eq(detector.verdict_count, 0);
    struct detector old = detector;
    detector = detector_open(&processor_fabric_link);
    detector_start(&detector);
    detector_move_state(&old, &detector);
    detector_close(&old);
    uint32_t from = cluster.count;
    bounce(90, 4);
    port(100, "mlx5_3", NULL, 0);
    port(130, "mlx5_3", NULL, 0);
    detector_feed(&detector, &cluster.events[from], cluster.count - from);
    detector_finish(&detector);
    ck_assert_uint_eq(detector.verdict_count, 2);
    says(detector_lines(&detector), "\"kind\":\"link_flapping\"");
    says(detector_lines(&detector), "\"kind\":\"link_down\"");
}
END_TEST

START_TEST(any_order) {
    char *first = NULL;
    for (int n = 0; n < 200; n++) {
        port(n * 30, n % 2 == 0 ? "mlx5_0" : "mlx5_1", "symbol_error", n * n);
        port(n * 30 + 1, "mlx5_2", NULL, n % 40 < 30);
    }
    for (int n = 0; n < 9; n++)
        bounce(600 * n, 5 + n);
    sxid(500, KERNEL_FATAL_YES);
    for (uint32_t round = 0; round < 4; round++) {
        if (round > 0)
            node_shuffle(&cluster, round);
        detector_start(&detector);
        for (uint32_t at = 0, size = 1 + 6 * round; at < cluster.count; at += size)
            detector_feed(&detector, &cluster.events[at],
                          cluster.count - at < size ? cluster.count - at : size);
        detector_finish(&detector);
        ck_assert_uint_eq(detector.verdict_count, 5);
        if (first == NULL)
            first = memory_copy_text(detector_lines(&detector), detector.lines.size);
        else
            ck_assert_str_eq(detector_lines(&detector), first);
        detector_close(&detector);
        detector = detector_open(&processor_fabric_link);
    }
    detector_start(&detector);
    memory_give(first);
}
END_TEST

START_TEST(bounded) {
    detector_set(&detector, "max_said", "16");
    detector_set(&detector, "max_ports", "16");
    detector_set(&detector, "max_waiting", "16");
    detector_set(&detector, "max_faults", "16");
    for (int n = 0; n < 300; n++) {
        node_xid(&cluster, n * 200, "n1", "0000:9b:00", 74, "");
        port(n * 200, "mlx5_0", "symbol_error", n);
    }
    detector_start(&detector);
    for (uint32_t at = 0; at < cluster.count; at++) {
        detector_feed(&detector, &cluster.events[at], 1);
        detector_judge(&detector, UINT64_MAX, false);
    }
    // Each is told once; what was forgotten is not told again.
    ck_assert_uint_eq(detector.verdict_count, 300);
}
END_TEST

START_TEST(nothing_is_allocated_once_warm) {
    detector_start(&detector);
    for (int n = 0; n < 60; n++) {
        node_xid(&cluster, n * 200, "n1", n % 2 == 0 ? "0000:9b:00" : "0000:1b:00", 74, "Fatal");
        port(n * 200, "mlx5_0", "symbol_error", 200 * n);
        port(n * 200, "mlx5_0", NULL, n % 2);
        link_line(n * 200, n % 2 == 0 ? "down" : "up");
    }
    for (uint32_t i = 0; i < 3; i++) {
        detector_feed(&detector, cluster.events, cluster.count);
        detector_judge(&detector, UINT64_MAX, false);
    }
    uint64_t before = memory_figures().allocations;
    for (uint32_t i = 0; i < 10; i++) {
        detector_feed(&detector, cluster.events, cluster.count);
        detector_judge(&detector, UINT64_MAX, false);
    }
    ck_assert_uint_eq(memory_figures().allocations, before);
    ck_assert_uint_gt(detector.verdict_count, 1);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("fabric_link");
    TCase *cases = tcase_create("fabric_link");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, an_xid_that_only_a_cleanup_names);
    tcase_add_test(cases, down_and_not_up);
    tcase_add_test(cases, two_ports_of_a_card);
    tcase_add_loop_test(cases, a_short_bounce_is_none, 0, sizeof BOUNCES / sizeof *BOUNCES);
    tcase_add_test(cases, just_gone_down);
    tcase_add_test(cases, state_of_a_port);
    tcase_add_loop_test(cases, a_sample_says_after_when, 0, 3);
    tcase_add_test(cases, lost_while_in_use);
    tcase_add_test(cases, who_cannot_reach_others_is_no_culprit);
    tcase_add_loop_test(cases, card_that_fails, 0, 3);
    tcase_add_loop_test(cases, three_in_an_hour, 0, 3);
    tcase_add_loop_test(cases, sources_are_not_added_up, 0, 2);
    tcase_add_test(cases, flaps_and_then_stays_down);
    tcase_add_loop_test(cases, counters, 0, sizeof RISES / sizeof *RISES);
    tcase_add_test(cases, queue_that_does_not_drain);
    tcase_add_loop_test(cases, modules, 0, 3);
    tcase_add_loop_test(cases, another_monitor, 0, 2);
    tcase_add_test(cases, nvlink_of_a_gpu);
    tcase_add_loop_test(cases, links_of_one_gpu_in_one_moment, 0, 2);
    tcase_add_loop_test(cases, recovered_errors_of_nvlink, 0, 2);
    tcase_add_test(cases, switch_before_gpus);
    tcase_add_test(cases, switch_by_its_code);
    tcase_add_test(cases, switch_says_what_is_harmless);
    tcase_add_test(cases, nvlink_of_the_other_end);
    tcase_add_test(cases, nvlink_of_both_ends);
    tcase_add_test(cases, nvlink_that_ends_programs);
    tcase_add_test(cases, nvlink_that_somebody_took_down);
    tcase_add_loop_test(cases, links_while_a_machine_restarts, 0,
                        sizeof RESTARTS / sizeof *RESTARTS);
    tcase_add_test(cases, links_of_others);
    tcase_add_loop_test(cases, a_driver_that_starts_one_card, 0, 3);
    tcase_add_test(cases, switch_that_recovered);
    tcase_add_loop_test(cases, peers_of_a_lost_gpu, 0, 2);
    tcase_add_test(cases, handed_over_and_back);
    tcase_add_test(cases, over_a_restart);
    tcase_add_test(cases, any_order);
    tcase_add_test(cases, bounded);
    tcase_add_test(cases, nothing_is_allocated_once_warm);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
