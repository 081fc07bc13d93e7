# SPDX-License-Identifier: BSD-3-Clause
"""Network namespaces as machines: programs that see each other through their interfaces alone."""
import os
import subprocess
import time

import e2e
import processes


class Machines:
    """So many receivers, each with a cable to each of `senders_each` senders, for a `with` block. Receiver r has
    the interfaces from0, from1, ...; sender s has out, and its cable leads to receiver s // senders_each."""

    def __init__(self, receivers, senders_each):
        self.receivers, self.senders_each = receivers, senders_each
        self.senders = receivers * senders_each
        self.holders = {}

    @staticmethod
    def receiver_name(number):
        return "rx%d" % number

    @staticmethod
    def sender_name(number):
        return "tx%d" % number

    def make(self, name):
        """A process that does nothing holds the namespace, and takes it along when it ends."""
        holder = subprocess.Popen(["unshare", "--net", "sleep", "infinity"], stdin=subprocess.DEVNULL)
        self.holders[name] = holder
        own = os.readlink("/proc/self/ns/net")
        if not processes.wait_until(lambda: os.readlink("/proc/%d/ns/net" % holder.pid) != own and
                                    open("/proc/%d/comm" % holder.pid).read() == "sleep\n"):
            raise e2e.Skip("unshare made no network namespace")

    def inside(self, name):
        """Words before a command that is to run there."""
        return ["nsenter", "--net", "--target", str(self.holders[name].pid)]

    def ip(self, name, *arguments):
        done = subprocess.run([*self.inside(name), "ip", *arguments], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            raise e2e.Skip("ip %s: %s" % (" ".join(arguments), done.stdout.strip()))
        return done.stdout

    def connect(self, sender):
        receiver, number = divmod(sender, self.senders_each)
        ends = ((self.sender_name(sender), "out"), (self.receiver_name(receiver), "from%d" % number))
        e2e.VethPair.ip("link", "add", "out", "netns", str(self.holders[ends[0][0]].pid), "type", "veth",
                        "peer", "name", ends[1][1], "netns", str(self.holders[ends[1][0]].pid))
        for name, interface in ends:
            # No IPv6 there: its chatter would be frames too.
            subprocess.run([*self.inside(name), "sh", "-c", "echo 1 > "
                            "/proc/sys/net/ipv6/conf/%s/disable_ipv6" % interface],
                           stderr=subprocess.DEVNULL)
            self.ip(name, "link", "set", interface, "up")

    def wait_for_carriers(self):
        for sender in range(self.senders):
            for _ in range(500):
                if "state UP" in self.ip(self.sender_name(sender), "link", "show", "out"):
                    break
                time.sleep(0.01)
            else:
                raise e2e.Skip("a veth pair did not come up")

    def __enter__(self):
        e2e.enter_network()
        processes.tool("nsenter", "util-linux")
        # Who starts the programs may want an interface here, too: mpirun does.
        e2e.VethPair.ip("link", "set", "lo", "up")
        try:
            for number in range(self.receivers):
                self.make(self.receiver_name(number))
            for number in range(self.senders):
                self.make(self.sender_name(number))
                self.connect(number)
            self.wait_for_carriers()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for holder in self.holders.values():
            holder.kill()
            holder.wait()

    # ---- what runs there ----

    def ports(self):
        """A receiver's."""
        return [word for number in range(self.senders_each)
                for word in ("--port", "net_af_packet%d,iface=from%d" % (number, number))]

    @staticmethod
    def out():
        return ["--tx-port", "net_af_packet0,iface=out"]
