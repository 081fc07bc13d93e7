# SPDX-License-Identifier: BSD-3-Clause
"""Sessions: options of every kind, refusals, log lines, events, async iteration, the README's example."""
import asyncio
import copy
import logging
import pathlib
import pickle
import re

import harness
import gdrcap
import e2e
import test_images as truth


def test_options():
    """The same options as a nested map, keys with dots, flags, keywords, a file, and what is written over what."""
    name = harness.wire()
    with harness.Folder() as folder:
        path = pathlib.Path(folder, "gdrcap.yaml")
        path.write_text("port: [%s]\ntx_port: %s\ngpu: host\nframe: {size: 512}\nmatch: [\"vlan=5\", \"vlan=6\"]\n"
                        "seconds: 0.5\n" % (name, name))
        same = {"port": [name], "tx_port": name, "gpu": "host", "match": ("vlan=5", "vlan=6"), "seconds": 0.5}
        for config, options in ((path, {}), (str(path), {}), ({**same, "frame": {"size": 512}}, {}),
                                ({**same, "frame.size": "512"}, {}), ({**same, "frame-size": 512}, {}),
                                (None, {**same, "frame__size": 512}), ({**same, "frame.size": 64}, {"frame__size": 512}),
                                (path, {"pattern__restart": False, "queues": None})):
            session = gdrcap.Session(config, **options)
            assert session.option("port") == name and session.option("frame.size") == "512"
            assert session.option("match", 1) == "vlan=6" and session.option("match", 2) is None
            assert float(session.option("seconds")) == 0.5 and session.option("consumer") == "validate"
            assert session.option("no such") is None
            session.close()
    rows = gdrcap.options()
    assert {row["key"] for row in rows} >= {"port", "image", "frame.size"} and all(row["help"] for row in rows)
    assert gdrcap.__version__ in gdrcap.version()


def test_numbers():
    """Those of numpy are numbers."""
    numpy = harness.need_numpy()
    session = gdrcap.Session(harness.loopback(numpy.int64(3), image=None), frame__size=numpy.uint16(512), seconds=numpy.float32(0.5),
                             pattern__restart=numpy.bool_(False), queues=numpy.array(1))
    assert [session.option(key) for key in ("frames", "frame.size", "queues", "pattern.restart")] == [
        "3072", "512", "1", "false"]
    assert float(session.option("seconds")) == 0.5
    session.close()
    harness.refused(gdrcap.ConfigError, "no value", gdrcap.Session, queues=numpy.arange(3))


def test_left():
    """A port that a left session's image still holds: the error says so."""
    with e2e.VethPair() as pair:
        options = {"port": "net_af_packet0,iface=" + pair.right, "tx_port": "net_af_packet1,iface=" + pair.left, "gpu": "host",
                   "sender": "host", "consumer": "host"}
        with gdrcap.Session(options) as session:
            slot, = session.senders[0].reserve()
        # Another test's may wait for the garbage collector.
        left = gdrcap._native.left()
        assert left >= 1
        error = harness.refused(gdrcap.Error, "sessions that were left and still have their ports: %d" % left, gdrcap.Session, options)
        assert error.errno == 16
        slot.release()
        gdrcap.Session(options).close()


def test_layouts():
    """Layouts of images as maps, alone and several, and as texts."""
    udp = {"base": "udp", "number": {"at": 0, "bytes": 8}, "place": [{"at": 8, "bytes": 2, "times": 1000}],
           "data": {"payload": 11}, "piece": 1000, "bytes": 15700, "name": "one", "match": ["dst_port=5000"]}
    other = dict(udp, name="two", match=["dst_port=5001"])
    with harness.Folder() as folder:
        sender = truth.Sender(range(4))
        path = truth.write_pcap(folder, "in.pcap", sender.frames())
        for image in (udp, [udp, other], {**udp, "incomplete": "drop"}):
            with gdrcap.Session({"port": "net_pcap0,rx_pcap=" + path, "gpu": "host", "frames": 64, "image": image}) as session:
                assert session.image_names[0] == "one" and session.option("consumer") == "host"
                assert [image.copy() for image in session.images(timeout=harness.TIMEOUT)] == [
                    sender.expected(0, number) for number in range(4)]
    session = gdrcap.Session(harness.loopback(image=["gvsp,bytes=307200,piece=1364", "spead,bytes=1M,match=dst_port=7"][:1]))
    harness.refused(IndexError, "there are fewer", session._native.source, True, 1)
    session.close()
    harness.refused(gdrcap.ConfigError, "cannot be mixed", gdrcap.Session, harness.loopback(image=[udp, "gvsp"]))


def test_refused():
    """What is wrong with options says so, as an exception that is several things at once."""
    error = harness.refused(gdrcap.ConfigError, "unknown option", gdrcap.Session, {"prot": "ring:x"})
    assert isinstance(error, (ValueError, OSError, gdrcap.Error)) and error.errno == 22 and error.strerror == str(error)
    harness.refused(ValueError, "unknown option", gdrcap.Session, frame={"sise": 3})
    harness.refused(gdrcap.ConfigError, "frame.size", gdrcap.Session, frame__size="")
    harness.refused(gdrcap.ConfigError, "no value", gdrcap.Session, port=object())
    harness.refused(gdrcap.ConfigError, "no value", gdrcap.Session, port=[["a"]])
    harness.refused(gdrcap.ConfigError, "queues", gdrcap.Session, queues=3.5)
    harness.refused(gdrcap.ConfigError, "queues", gdrcap.Session, queues=1e300)
    harness.refused(gdrcap.ConfigError, "", gdrcap.Session, {"image": {"base": "udp\n\"]: {"}})
    harness.refused(gdrcap.Error, "nowhere.yaml", gdrcap.Session, "nowhere.yaml")
    harness.refused(gdrcap.Error, "", gdrcap.Session, port="net_af_packet0,iface=no-such0")
    harness.refused(ValueError, "null character", gdrcap.Session, port="a\0b")
    harness.refused(TypeError, "", gdrcap.Session, 5)
    for log in (5, object(), print, ["gdrcap"]):
        harness.refused(TypeError, "allowed: a logging.Logger", gdrcap.Session, harness.loopback(), log=log)
    session = gdrcap.Session(harness.loopback())
    harness.refused(ValueError, "not started", session.images)
    harness.refused(ValueError, "not started", session.wait, 0)
    for copying in (copy.copy, copy.deepcopy, pickle.dumps):
        harness.refused(TypeError, "a Session cannot be copied", copying, session)
    with session:
        harness.refused(gdrcap.Error, "", session.start)
        harness.refused(TypeError, "Images cannot be copied", copy.copy, session.images())
        harness.refused(IndexError, "there are fewer", session.images, 1)
        harness.refused(IndexError, "there are fewer", session.batches, 99)
        harness.refused(IndexError, "there are fewer", session.images, 1 << 40)
        harness.refused(IndexError, "there are fewer", session.images, -1)
        harness.refused(OverflowError, "", session.images, 1 << 70)
        harness.refused(gdrcap.Error, "consumer: host", session.batches().poll)
        harness.refused(gdrcap.Error, "", session.selftest)
        harness.refused(gdrcap.Error, "", session.__enter__)
        assert not session.closed
    for kind in (gdrcap.Image, gdrcap.Array, gdrcap.Frame, gdrcap.Batch, gdrcap.Present):
        harness.refused(TypeError, "cannot create", kind)


def test_log():
    """Each session's lines go to its own logger, in order, on Python's threads; a handler that fails harms nobody."""
    seen = {"one": [], "two": []}

    class Keep(logging.Handler):
        def emit(self, record):
            seen[record.name].append((record.levelno, record.getMessage()))
            if len(seen["two"]) == 2:
                raise RuntimeError("a handler's own")

    for name in seen:
        logger = logging.getLogger(name)
        logger.setLevel(logging.DEBUG)
        logger.propagate = False
        logger.addHandler(Keep())
    left, right = (gdrcap.Session(harness.loopback(1), log=log) for log in ("one", logging.getLogger("two")))
    try:
        with left:
            assert any("memory:" in text for _, text in seen["one"]), seen
            list(left.images(timeout=harness.TIMEOUT))
    finally:
        right.close()
    assert {level for level, _ in seen["one"]} <= {logging.DEBUG, logging.INFO, logging.WARNING}, seen
    assert len(seen["two"]) > 2, "the handler's exception ended the lines"


def test_events():
    with gdrcap.Session(harness.loopback(2)) as session:
        assert session.event_fd() >= 0
        list(session.images(timeout=harness.TIMEOUT))
        session.stop()
        names = []
        while (event := session.event()) is not None:
            names.append(event["name"])
            assert event["time_ns"] > 10**18 and event["text"], event
        assert "first_frame" in names and names[-1] == "end", names


def test_async():
    """Images by the event loop, beside another task; a time-out, a stop and a close while it waits."""
    async def take(session, images):
        count = 0
        async for image in images:
            assert image.complete
            count += 1
            image.release()
        return count

    async def all_of_it():
        with gdrcap.Session(harness.loopback(5)) as session:
            ticks = 0
            task = asyncio.ensure_future(take(session, session.images()))
            while not task.done():
                await asyncio.sleep(0.001)
                ticks += 1
            assert await task == 5 and ticks > 1
        for end in ("stop", "close"):
            with gdrcap.Session(harness.silence()) as session:
                try:
                    await session.images(timeout=0.01).__anext__()
                    raise AssertionError("it came")
                except TimeoutError:
                    pass
                images = session.images()
                task = asyncio.ensure_future(take(session, images))
                await asyncio.sleep(0)
                await asyncio.sleep(0.01)
                getattr(session, end)()
                assert await asyncio.wait_for(task, harness.TIMEOUT) == 0
                cancelled = gdrcap.Session(harness.silence())
                with cancelled:
                    task = asyncio.ensure_future(take(cancelled, cancelled.images()))
                    await asyncio.sleep(0.01)
                    task.cancel()
                    try:
                        await task
                    except asyncio.CancelledError:
                        pass

    asyncio.run(all_of_it())


def test_readme():
    """The example of the README and those of the guide that are marked so, as they stand."""
    for page in ("README.md", "docs/python.md"):
        text = (harness.ROOT / page).read_text()
        programs = re.findall(r"^```python\n(# runs\n.*?)^```$", text, re.S | re.M)
        assert programs, page
        harness.need_numpy()
        for source in programs:
            done = harness.program("import os\nos.chdir(%r)\n" % str(harness.ROOT) + source)
            assert done.stdout, source
