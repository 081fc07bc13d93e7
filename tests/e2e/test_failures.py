# SPDX-License-Identifier: BSD-3-Clause
"""What goes wrong in a run is said, in `errors` and in the exit status, and never waited out."""
import contextlib
import json
import os
import re
import resource
import select
import signal
import subprocess
import time

import pytest

import e2e
import pcapfile
import processes
import test_save

pytestmark = pytest.mark.sanitized


def errors(summary):
    return "\n".join(summary["errors"])


def memif(directory, role):
    return "net_memif0,role=%s,id=0,socket=%s" % (role, os.path.join(directory, "memif.sock"))


def check_missing(summary, asked):
    """Not all was sent that was asked for, and both numbers are said."""
    sent = summary["sender"]["frames"]
    assert summary["sender"]["asked"]["frames"] == asked, summary["sender"]
    assert 0 <= sent < asked, summary["sender"]
    words = "%s of %s frames not sent" % (format(asked - sent, ","), format(asked, ","))
    assert words in errors(summary), "not '%s': %s" % (words, summary["errors"])


# ---- an interface is deleted ----

def interface_deleted(driver, *arguments):
    """(capture's summary, replay's), of a run in which their wire went away."""
    with e2e.VethPair() as pair:
        with processes.Running("capture", "--port", "net_%s0,iface=%s" % (driver, pair.right)
                               ) as receiver:
            receiver.wait_until_running_on(driver)
            with processes.Running("replay", "--tx-port", "net_%s0,iface=%s" % (driver, pair.left),
                                   "--rate", "5kpps", *arguments) as sender:
                receiver.wait_for_frames("received", 2000)
                pair.ip("link", "del", pair.left)
                sent = sender.finish(expect=3 if arguments else 1)
            # Frames that were on the way are lost.
            received = receiver.finish(expect=(1, 3))
    for summary in (sent, received):
        assert re.search(r"interface is gone", errors(summary)), processes.text_of(summary)
        assert summary["result"] == "fail", summary["result"]
    # How many is not known, of a ring that had room for so many.
    lost = "up to 512 of" if driver == "af_packet" else "some of"
    assert "; %s the last frames that it took may be lost" % lost in errors(sent), errors(sent)
    assert "may be lost" not in errors(received), errors(received)
    return sent, received


def test_interface_deleted():
    sent, received = interface_deleted("af_packet", "--frames", "4000000")
    check_missing(sent, 4000000)
    assert received["frames"]["valid"] >= 2000, received["frames"]
    # Of one who sends until he is stopped nothing is missing; all the same he was not stopped.
    sent, _ = interface_deleted("af_packet")
    assert sent["sender"]["asked"]["frames"] is None, sent["sender"]


def test_interface_deleted_af_xdp():
    sent, _ = interface_deleted("af_xdp", "--frames", "4000000")
    check_missing(sent, 4000000)


def test_interface_of_the_same_name():
    """A new one takes the name at once: it is not the one that frames came from."""
    with e2e.VethPair() as pair:
        with processes.Running("capture", "--port", "net_af_packet0,iface=%s" % pair.right
                               ) as receiver:
            receiver.wait_until_running()
            pair.ip("link", "del", pair.left)
            pair.ip("link", "add", pair.left, "type", "veth", "peer", "name", pair.right)
            summary = receiver.finish(expect=1)
    assert "interface is gone" in errors(summary), summary["errors"]


# ---- an interface goes down ----

def interface_down(*arguments):
    """A capture whose interface went down and, unless that ends it, came up again: its summary."""
    with e2e.VethPair() as pair:
        receiver_port = "net_af_packet0,iface=%s" % pair.right
        with processes.Running("capture", "--port", receiver_port, *arguments) as receiver:
            receiver.wait_until_running()
            with processes.Running("replay", "--tx-port", "net_af_packet0,iface=%s" % pair.left,
                                   "--rate", "5kpps") as sender:
                receiver.wait_for_frames("received", 1000)
                pair.ip("link", "set", pair.right, "down")
                if arguments:
                    return receiver.finish(expect=(1, 3))
                for program in (receiver, sender):
                    program.wait_until(lambda: any("the link is down" in line
                                                   for line in program.err))
                pair.ip("link", "set", pair.right, "up")
                sender.wait_until(lambda: any("the link is up again" in line
                                              for line in sender.err))
                before = json.loads(receiver.out[-1])["frames"]["received"]
                receiver.wait_for_frames("received", before + 1000)
                sender.signal(signal.SIGTERM)
                sender.finish()
            return receiver.finish(expect=(0, 3))


def test_interface_down():
    """It is waited for. Frames that were on the way are lost."""
    summary = interface_down()
    assert not errors(summary) or "lost" in errors(summary), summary["errors"]
    assert summary["ended_by_sender"], summary


def test_interface_down_ends():
    summary = interface_down("--link-down", "end")
    assert "its link is down" in errors(summary), summary["errors"]


# ---- a sender does not send all ----

def test_receiver_leaves_and_the_sender_is_interrupted():
    with processes.folder() as directory:
        with processes.Running("capture", "--port", memif(directory, "server")) as receiver:
            receiver.wait_until_running()
            with processes.Running("replay", "--tx-port", memif(directory, "client"), "--rate",
                                   "5kpps", "--frames", "4000000") as sender:
                receiver.wait_for_frames("received", 1000)
                receiver.kill()
                sender.wait_until(lambda: any("the link is down" in line for line in sender.err))
                sender.signal(signal.SIGTERM)
                sent = sender.finish(expect=3)
    check_missing(sent, 4000000)
    assert "the port's link was down" in processes.messages(sent), sent["messages"]


def test_interrupted_before_all_was_sent():
    """In a loopback too, where all that was sent arrived; by a file's loops as by --frames."""
    with processes.folder() as directory:
        path = pcapfile.write_pcap(os.path.join(directory, "in.pcap"), test_save.own_frames(100))
        for asked, arguments in (
                (4000000, ("loopback", "--frames", "4000000", "--rate", "5kpps")),
                (300000000, ("replay", "--tx-port", "net_null0", "--pcap", path, "--rate", "5kpps",
                             "--loops", "3000000"))):
            with processes.Running(*arguments) as sender:
                sender.wait_for_frames("sent", 100)
                sender.signal(signal.SIGINT)
                check_missing(sender.finish(expect=3), asked)


def test_time_was_over_first():
    """Two ends were asked for, and one came first: said, and no failure."""
    summary = processes.run_json("replay", "--quiet", "--tx-port", "net_null0", "--frames",
                                 "4000000", "--rate", "5kpps", "--seconds", "3")
    assert summary["sender"]["asked"]["frames"] == 4000000, summary["sender"]
    assert "the time to run was over first" in processes.messages(summary), summary["messages"]


def test_receiver_leaves_and_the_sender_gives_up():
    """What it was to send is missing; one who sends until he is stopped could not go on."""
    for arguments, status in ((("--frames", "4000000"), 3), ((), 1)):
        with processes.folder() as directory:
            with processes.Running("capture", "--port", memif(directory, "server")) as receiver:
                receiver.wait_until_running()
                with processes.Running("replay", "--tx-port", memif(directory, "client"), "--rate",
                                       "5kpps", "--give-up", "1", *arguments) as sender:
                    receiver.wait_for_frames("received", 1000)
                    receiver.kill()
                    sent = sender.finish(expect=status)
        assert "took nothing for 1.0 s" in errors(sent), sent["errors"]
        if arguments:
            check_missing(sent, 4000000)


def test_receiver_never_comes():
    with processes.folder() as directory:
        summary = processes.run_json("replay", "--quiet", "--tx-port", memif(directory, "server"),
                                     "--frames", "1000", "--give-up", "0.5", expect=3)
    assert "took nothing for 0.5 s" in errors(summary), summary["errors"]
    check_missing(summary, 1000)


def test_sender_with_nothing_to_send_does_not_give_up():
    """Frames that are not due are none that a port does not take."""
    times = [pcapfile.START_NS, pcapfile.START_NS + 3 * 10**9]
    with processes.folder() as directory:
        path = pcapfile.write_pcap(os.path.join(directory, "in.pcap"), test_save.own_frames(2),
                                   times_ns=times)
        summary = processes.run_json("replay", "--quiet", "--tx-port", "net_null0", "--pcap", path,
                                     "--give-up", "0.5")
    processes.check_sender(summary, 2)


# ---- files that are none ----

def test_fifos_are_refused():
    """At once, and not when somebody writes to them: nothing holds the program."""
    frames = test_save.own_frames(10)
    with processes.folder() as directory:
        path = os.path.join(directory, "fifo")
        os.mkfifo(path)
        source = pcapfile.write_pcap(os.path.join(directory, "in.pcap"), frames)
        capture = ("capture", "--port", "net_pcap0,rx_pcap=%s" % source, "--frames", "10")
        for arguments in (("replay", "--tx-port", "net_null0", "--pcap", path),
                          (*capture, "--expect", path),
                          (*capture, "--pattern", "file", "--pattern-file", path),
                          (*capture, "--config", path)):
            for name in (path, directory):
                here = [name if argument == path else argument for argument in arguments]
                result = e2e.run(*here, expect=None)
                assert result.status in (1, 2), result
                assert re.search(r"no(t a)? regular file", result.err), result
                assert name in result.err, result


def test_port_of_a_broken_file():
    """What is before counts, and the run is no pass."""
    frames, others = test_save.own_frames(10), test_save.own_frames(10, 1)
    whole = pcapfile.pcap_bytes(frames)
    for count, data, words in (
            (1, whole[:-1], "in the middle of frame 10"),
            (2, pcapfile.pcapng_bytes(frames)[:-40], "in the middle of frame 10"),
            (1, pcapfile.pcap_bytes(frames, link=113), "not Ethernet"),
            (1, whole + pcapfile.pcap_record(frames[0], 0, length=2**31), "frame 11"),
            (1, b"GET / HTTP/1.0\r\n\r\n" * 4, "not a pcap or pcapng file")):
        with processes.folder() as directory:
            good, bad = (os.path.join(directory, name) for name in ("good", "bad"))
            for path, content in ((good, pcapfile.pcap_bytes(others)), (bad, data)):
                with open(path, "wb") as file:
                    file.write(content)
            files = [good] * (count - 1) + [bad]
            summary = e2e.run_json("capture", "--queues", str(count), "--port",
                                   ",".join(["net_pcap0"] + ["rx_pcap=" + f for f in files]),
                                   "--seconds", "60", expect=1)
        assert words in errors(summary) and bad in errors(summary), (words, summary["errors"])


def test_inputs_are_not_saved_to():
    """Neither the second queue's file nor the configuration, by whatever name."""
    content = pcapfile.pcap_bytes(test_save.own_frames(10))
    with processes.folder() as directory:
        one, two, link, config = (os.path.join(directory, name) for name in "abcd")
        for path, data in ((one, content), (two, content), (config, b"seconds: 60\n")):
            with open(path, "wb") as file:
                file.write(data)
        os.link(two, link)
        for target in (two, link, config):
            for option in ("--save", "--save-damaged"):
                e2e.run("capture", "--config", config, "--queues", "2", "--port",
                        "net_pcap0,rx_pcap=%s,rx_pcap=%s" % (one, two), option, target,
                        expect=2)
        with open(two, "rb") as file:
            assert file.read() == content
        with open(config, "rb") as file:
            assert file.read() == b"seconds: 60\n"


# ---- frames are not saved ----

def check_unsaved(summary, count, *words):
    saved = summary["saved"]
    assert saved["frames"] + saved["missed"] == count and saved["missed"] > 0, saved
    for word in ("%s frames not saved" % format(saved["missed"], ","), *words):
        assert word in errors(summary), "not '%s': %s" % (word, summary["errors"])
    processes.check_counts(summary, received=count, valid=count, damaged=0, lost=0)


def test_reader_of_saved_frames_dies():
    frames = test_save.own_frames(3000)
    with processes.folder() as directory:
        path = os.path.join(directory, "fifo")
        os.mkfifo(path)
        reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        source = pcapfile.write_pcap(os.path.join(directory, "in.pcap"), frames)
        with processes.Running("capture", "--port", "net_pcap0,rx_pcap=%s" % source, "--frames",
                               "3000", "--save", path) as receiver:
            # The file's head comes before the run begins.
            select.select([reader], [], [], e2e.TIMEOUT)
            os.close(reader)
            summary = receiver.finish(expect=3)
    check_unsaved(summary, 3000, "keep its reader running")


def test_file_may_not_grow():
    """The limit of a file's size (ulimit -f), where the disk has room."""
    with processes.folder() as directory:
        path = os.path.join(directory, "large.pcapng")
        with processes.Running("capture", "--port", memif(directory, "server"), "--frames", "3000",
                               "--save", path) as receiver:
            receiver.wait_until_running()
            resource.prlimit(receiver.process.pid, resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
            with processes.Running("replay", "--tx-port", memif(directory, "client"), "--frames",
                                   "3000", "--end", "never") as sender:
                sender.finish()
                summary = receiver.finish(expect=3)
        assert len(pcapfile.read_capture(path).frames) == summary["saved"]["frames"]
    check_unsaved(summary, 3000, "large.pcapng", "File too large")


def test_no_file_may_grow():
    """From the start: an error where there is one, and not the end of the program."""
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))

    e2e.run("loopback", "--quiet", "--frames", "100", expect=None, preexec_fn=limit)


# ---- the end by force ----

def full_pipe():
    """(read, write) of a pipe without room for a byte."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    for piece in (1 << 16, 1):
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(write, bytes(piece))
    os.set_blocking(write, True)
    return read, write


def two_signals_end(number, *arguments, after=0):
    """A loopback whose standard error is a pipe that is full, so that it waits in a write to it."""
    read, write = full_pipe()
    with subprocess.Popen([e2e.PROGRAM, "loopback", "--seconds", "0", *arguments], stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=write) as process:
        try:
            until = time.monotonic() + e2e.TIMEOUT
            while not caught(process.pid) & 1 << number - 1:
                assert process.poll() is None and time.monotonic() < until
                time.sleep(0.01)
            time.sleep(after)
            # Two within 250 ms count as one.
            while process.poll() is None and time.monotonic() < until:
                process.send_signal(number)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(0.3)
            # Without --verbose it has nothing to write, and may end by the first: with 3, if no frame came yet.
            assert process.poll() in (128 + number, *(() if "--verbose" in arguments else (0, 3))), process.returncode
        finally:
            process.kill()
            os.close(read)
            os.close(write)


def test_two_signals_end_it():
    two_signals_end(signal.SIGINT, "--verbose")


def caught(pid):
    """Signals that have a handler."""
    with open("/proc/%d/status" % pid) as status:
        return int(re.search(r"SigCgt:\s*(\w+)", status.read())[1], 16)


# ---- what others may read ----

def bytes_left_out_of_dumps(pid):
    with open("/proc/%d/smaps" % pid) as maps:
        text = maps.read()
    return sum(1024 * int(size) for size, flags in re.findall(
        r"^Size: +(\d+) kB\n(?:[^V].*\n)*VmFlags:(.*)$", text, re.M) if " dd" in flags)


def test_core_dumps_have_no_frames():
    """Nor the slots, nor what waits to be written, nor what a file's sender has."""
    left_out = []
    for option in ((), ("--dump-frames",)):
        with processes.folder() as directory:
            path = pcapfile.write_pcap(os.path.join(directory, "in.pcap"), test_save.own_frames(8))
            with processes.Running("loopback", "--pcap", path, "--loops", "forever", "--rate",
                                   "100pps", "--save", os.path.join(directory, "all.pcapng"),
                                   *option) as runner:
                runner.wait_for_frames("received", 10)
                left_out.append(bytes_left_out_of_dumps(runner.process.pid))
                runner.signal(signal.SIGINT)
                summary = runner.finish()
    # Others leave memory out too: the kernel its vDSO, a sanitizer its shadow.
    frames = summary["memory"]["region_bytes"] + (64 << 20)
    assert frames < left_out[0] - left_out[1] < frames + (1 << 20), (left_out, frames)


# ---- what the program may do ----

def test_capabilities_are_dropped():
    """In every thread, DPDK's own and the file's writer's too; and all ends as it should."""
    if processes.capabilities(os.getpid())[0][0] & 1 << 12 == 0:
        raise e2e.Skip("this needs capabilities to drop")
    with processes.folder() as directory:
        path = os.path.join(directory, "all.pcapng")
        for ports, permitted in (
                ((), 0),
                (("net_af_packet0,iface=%s", "net_af_packet1,iface=%s"), 0),
                (("net_af_xdp0,iface=%s", "net_af_xdp1,iface=%s"), 1 << 12 | 1 << 39)):
            with e2e.VethPair() as pair:
                names = [port % name for port, name in zip(ports, (pair.left, pair.right))]
                arguments = ("--tx-port", names[0], "--port", names[1]) if ports else ()
                with processes.Running("loopback", "--rate", "1kpps", "--seconds", "3600", "--save", path,
                                       *arguments) as runner:
                    runner.wait_for_frames("received", 100)
                    processes.check_dropped(runner, permitted)
                    runner.signal(signal.SIGINT)
                    # A sender that had no core catches up, and a socket of the kernel's drops some of that.
                    assert runner.finish(None if ports else 0)["saved"]["frames"] >= 100
                # Its program is off the interface again.
                assert "xdp" not in pair.ip("link", "show", pair.right), pair.ip("link")
        ends = [memif(directory, role) for role in ("server", "client")]
        with processes.Running("capture", "--port", ends[0]) as receiver:
            receiver.wait_until_running()
            processes.check_dropped(receiver, 0)
            with processes.Running("replay", "--tx-port", ends[1], "--frames", "1000") as sender:
                sender.finish()
            receiver.finish()


def test_socket_in_somebody_elses_folder():
    """What is needed to remove it stays, and so it can be made again."""
    if os.geteuid():
        raise e2e.Skip("this needs root")
    with processes.folder() as directory:
        os.chown(directory, 65534, 65534)
        os.chmod(directory, 0o755)
        port = memif(directory, "server") + ",socket-abstract=no"
        with processes.Running("capture", "--port", port) as receiver:
            receiver.wait_until_running()
            processes.check_dropped(receiver, 1 << 1)
            receiver.signal(signal.SIGINT)
            receiver.finish(expect=3)
        assert not os.listdir(directory), os.listdir(directory)


def test_no_room_for_what_a_signal_says():
    """Where RLIMIT_SIGPENDING is used up a signal arrives without its sender. The program goes on: only SYS_SECCOMP is a filter's."""
    for room in (0, 2):
        result = e2e.run("replay", "--tx-port", "net_null0", "--frames", "100", "--json", "--quiet", expect=0,
                         prefix=("prlimit", "--sigpending=%d:%d" % (room, room)))
        assert result.summary["frames"]["sent"] == 100, result
