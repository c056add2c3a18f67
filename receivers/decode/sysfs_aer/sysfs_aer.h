// SPDX-License-Identifier: Apache-2.0
// The counters of PCI Express errors that Linux keeps for each device: EVENT_AER_COUNTERS.
//
// Source: Linux Documentation/ABI/testing/sysfs-bus-pci-devices-aer (names as documented) and
// drivers/pci/pcie/aer.c (names as printed); names come out as the kernel prints them.
#pragma once

#include "pipeline/component/decoder.h"
#include "pipeline/model/node_event.h"

// One counter file as it stands, aer_dev_correctable, aer_dev_nonfatal or aer_dev_fatal: the whole
// file is a record. Device and kind are told by its path, "…/0000:29:00.0/aer_dev_fatal"; its time
// is when it was read.
extern const struct decoder_type decoder_sysfs_aer;

// The tagged form (`source` "sysfs_aer"): pci_bus_id, and the text of each file under its name.
enum decode_category sysfs_aer_tagged(void *state, struct slice object, struct arena *arena,
                                      struct event *event, struct decode_fault *fault);
