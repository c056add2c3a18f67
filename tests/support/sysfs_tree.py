# SPDX-License-Identifier: Apache-2.0
"""A made-up /sys with cards of InfiniBand and PCI devices; the names are those of mlx5."""
import os

COUNTERS = ("VL15_dropped", "excessive_buffer_overrun_errors", "link_downed",
            "link_error_recovery", "local_link_integrity_errors", "multicast_rcv_packets",
            "multicast_xmit_packets", "port_rcv_constraint_errors", "port_rcv_data",
            "port_rcv_errors", "port_rcv_packets", "port_rcv_remote_physical_errors",
            "port_rcv_switch_relay_errors", "port_xmit_constraint_errors", "port_xmit_data",
            "port_xmit_discards", "port_xmit_packets", "port_xmit_wait", "symbol_error",
            "unicast_rcv_packets", "unicast_xmit_packets")
HW_COUNTERS = ("duplicate_request", "implied_nak_seq_err", "lifespan", "local_ack_timeout_err",
               "np_cnp_sent", "np_ecn_marked_roce_packets", "out_of_buffer", "out_of_sequence",
               "packet_seq_err", "req_cqe_error", "req_cqe_flush_error",
               "req_remote_access_errors", "req_remote_invalid_request", "resp_cqe_error",
               "resp_cqe_flush_error", "resp_local_length_error", "resp_remote_access_errors",
               "rnr_nak_retry_err", "roce_adp_retrans", "roce_adp_retrans_to",
               "roce_slow_restart", "rp_cnp_handled", "rp_cnp_ignored", "rx_atomic_requests",
               "rx_icrc_encapsulated", "rx_read_requests", "rx_write_requests")
CORRECTABLE = ("RxErr", "BadTLP", "BadDLLP", "Rollover", "Timeout", "NonFatalErr", "CorrIntErr",
               "HeaderOF", "TOTAL_ERR_COR")
UNCORRECTABLE = ("Undefined", "DLP", "SDES", "TLP", "FCP", "CmpltTO", "CmpltAbrt", "UnxCmplt",
                 "RxOF", "MalfTLP", "ECRC", "UnsupReq", "ACSViol", "UncorrIntErr", "BlockedTLP",
                 "AtomicOpBlocked", "TLPBlockedErr", "PoisonTLPBlocked")


class SysfsTree:
    def __init__(self, root):
        self.root = root
        os.makedirs(os.path.join(root, "class", "infiniband"))
        os.makedirs(os.path.join(root, "bus", "pci", "devices"))

    def write(self, path, text):
        """In place, as the kernel's files stay what they are."""
        path = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text + "\n")

    @staticmethod
    def port(card, number=1):
        return "class/infiniband/%s/ports/%d/" % (card, number)

    def add_card(self, card, address):
        port = self.port(card)
        self.state(card, "4: ACTIVE", "5: LinkUp")
        self.write(port + "link_layer", "InfiniBand")
        self.write(port + "rate", "400 Gb/sec (4X NDR)")
        for name in COUNTERS:
            self.write(port + "counters/" + name, "0")
        for name in HW_COUNTERS:
            self.write(port + "hw_counters/" + name, "12" if name == "lifespan" else "0")
        device = os.path.join(self.root, "devices", address)
        os.makedirs(device, exist_ok=True)
        os.symlink("../../../devices/" + address,
                   os.path.join(self.root, "class", "infiniband", card, "device"))

    def state(self, card, state, phys_state):
        self.write(self.port(card) + "phys_state", phys_state)
        self.write(self.port(card) + "state", state)

    def count(self, card, counter, value):
        folder = "hw_counters/" if counter in HW_COUNTERS else "counters/"
        self.write(self.port(card) + folder + counter, str(value))

    def add_pci(self, address, **counts):
        """Writes the files of a device; counts by name, as in fatal_DLP=1."""
        for kind, names in (("correctable", CORRECTABLE), ("nonfatal", UNCORRECTABLE),
                            ("fatal", UNCORRECTABLE)):
            lines = ["%s %d" % (name, counts.get(kind + "_" + name, 0)) for name in names]
            self.write("bus/pci/devices/%s/aer_dev_%s" % (address, kind), "\n".join(lines))
