# SPDX-License-Identifier: BSD-3-Clause
"""Who keeps what: buffers go back with the last that looks at them, sessions with the last of these; 10,000 objects
leave no reference behind; ends in mid-run, by exceptions, signals, exit and fork, are clean."""
import gc
import os
import pathlib
import sys
import threading
import weakref

import harness
import gdrcap


def wait_until(true, what):
    """Other threads' work, looked at until it is there."""
    for _ in range(int(harness.TIMEOUT * 100)):
        if true():
            return
        threading.Event().wait(0.01)
    raise AssertionError(what)


def test_release():
    """Twice, and use afterwards: refused; what was known before still is. What others hold stays."""
    numpy = harness.need_numpy()
    with gdrcap.Session(harness.loopback(2)) as session:
        images = session.images(timeout=harness.TIMEOUT)
        image = next(images)
        before, array, view, present = image.copy(), numpy.from_dlpack(image), image.view(), image.present
        assert not image.released
        image.release()
        assert image.released and image.number == 0 and image.complete and "released" in repr(image)
        for use in (image.release, image.copy, image.view, image.missing, image.__dlpack__, image.__dlpack_device__,
                    image.__enter__, lambda: memoryview(image), lambda: image.present, lambda: image.address,
                    lambda: image.device, lambda: image.__cuda_array_interface__):
            harness.refused(ValueError, "image 0 was released", use)
        with next(images) as other:
            assert other.number == 1
        assert other.released
        assert array.tobytes() == bytes(memoryview(view)) == before and all(present)


def test_buffers_go_back():
    """With fewer buffers than are kept nothing comes; each reference that goes frees one."""
    numpy = harness.need_numpy()
    with harness.Folder() as folder:
        text = pathlib.Path(harness.LAYOUT).read_text().replace("image:\n", "image:\n  ring: 4\n  full: drop_oldest\n")
        layout = os.path.join(folder, "layout.yaml")
        with open(layout, "w") as file:
            file.write(text)
        with gdrcap.Session(harness.loopback(frames=None, image=layout)) as session:
            images = session.images()
            kept = []
            # Each is kept by another kind of reference.
            for keep in (lambda image: image, lambda image: numpy.from_dlpack(image), lambda image: image.view(),
                         memoryview):
                kept.append(keep(images.wait(harness.TIMEOUT)))
            assert not any(thing is None for thing in kept)
            data = [bytes(memoryview(thing)) for thing in kept]
            dropped = session.summary()["images"][0]["frames"]["no_room"]
            wait_until(lambda: session.summary()["images"][0]["frames"]["no_room"] > dropped + 3000,
                       "images come though no buffer is free")
            assert images.poll() is None
            assert [bytes(memoryview(thing)) for thing in kept] == data, "a buffer that is looked at was used again"
            taken = []  # and kept, so that each of the others has to free one
            while kept:
                kept.pop()
                taken.append(images.wait(harness.TIMEOUT))
                assert taken[-1] is not None, "a buffer did not go back"
            taken[0].release()
            assert images.wait(harness.TIMEOUT) is not None


def test_session_ends_first():
    """A session that is left while tensors live: they keep it, and its end comes with the last of them."""
    numpy = harness.need_numpy()
    with gdrcap.Session(harness.loopback(3)) as session:
        descriptor = session.event_fd()  # is the session's, and closed with it
        images = [image for image in session.images(timeout=harness.TIMEOUT)]
        copies = [image.copy() for image in images]
        arrays = [numpy.from_dlpack(image) for image in images[:2]]
        iterator = session.images()
    assert session.closed and session.summary()["result"] == "pass"
    for use in (session.start, session.images, session.batches, session.wait, lambda: session.option("port"),
                session.event, session.selftest, iterator.poll, iterator.wait, iterator.fileno):
        harness.refused(ValueError, "the session is closed", use)
    assert list(iterator) == []
    session.close()
    session.stop()
    del session
    gc.collect()
    assert [array.tobytes() for array in arrays] == copies[:2] and images[2].copy() == copies[2]
    images[0].release()
    del images
    assert [array.tobytes() for array in arrays] == copies[:2]
    os.fstat(descriptor)
    del arrays
    harness.refused(OSError, "", os.fstat, descriptor)


def test_10000_objects():
    """References and memory of 10,000 images' worth of objects."""
    numpy = harness.need_numpy()

    def use(image):
        for _ in range(250):
            array = numpy.from_dlpack(image)
            image.view("uint16", (-1, 4))
            memoryview(image)
            image.present[0]
            image.__dlpack__(max_version=(1, 0))
            try:
                image.view("no")
            except TypeError:
                pass
            del array

    with gdrcap.Session(harness.loopback(frames=None)) as session:
        types = [gdrcap.Image, gdrcap.Array, gdrcap.Present]
        images = session.images(timeout=harness.TIMEOUT)
        use(next(images))
        gc.collect()
        before, blocks = [sys.getrefcount(kind) for kind in types], sys.getallocatedblocks()
        count = 0
        for image in images:
            use(image)
            count += 1
            if count == 40:
                break
        del image
        gc.collect()
        assert [sys.getrefcount(kind) for kind in types] == before, "types are kept"
        assert sys.getallocatedblocks() - blocks < 500, sys.getallocatedblocks() - blocks
        assert count * 250 == 10000, count


def test_sessions_leave_nothing():
    """30 sessions one after the other, on one wire: each one's end is complete, and its Python object goes."""
    name = harness.wire()
    gone = []
    for _ in range(30):
        with gdrcap.Session(harness.loopback(1, port=name, tx_port=name, rate=None)) as session:
            for image in session.images(timeout=harness.TIMEOUT):
                assert image.complete
        gone.append(weakref.ref(session))
    del session, image
    gc.collect()
    assert not any(ref() for ref in gone)


def test_exception_in_loop():
    """It comes out, the session is closed, the rest of the process goes on."""
    session = gdrcap.Session(harness.loopback(frames=None))
    try:
        with session:
            for image in session.images(timeout=harness.TIMEOUT):
                raise KeyError(image.number)
    except KeyError as error:
        assert error.args == (0,)
    assert session.closed and image.copy()
    image.release()


def test_threads():
    """One thread at a time in a source; a stop from another thread ends the loop."""
    with gdrcap.Session(harness.silence()) as session:
        images, started, seen = session.images(), threading.Event(), []

        def wait():
            started.set()
            seen.append(list(images))

        thread = threading.Thread(target=wait)
        thread.start()
        started.wait()

        def busy():
            try:
                images.poll()
                return False
            except RuntimeError as error:
                return "another thread" in str(error)

        wait_until(busy, "two threads may wait in one source")
        session.stop()
        thread.join(harness.TIMEOUT)
        assert seen == [[]] and not thread.is_alive()


def test_copies_by_threads():
    """Copies at the same time, of an image that is released meanwhile."""
    with gdrcap.Session(harness.loopback(2)) as session:
        image = next(session.images(timeout=harness.TIMEOUT))
        expected, seen, ready = image.copy(), [], threading.Barrier(5)

        def copy():
            ready.wait()
            try:
                while True:
                    seen.append(image.copy() == expected)
            except ValueError as error:
                seen.append("was released" in str(error))

        threads = [threading.Thread(target=copy) for _ in range(4)]
        for thread in threads:
            thread.start()
        ready.wait()
        wait_until(lambda: len(seen) > 20, "no copy is made")
        image.release()
        for thread in threads:
            thread.join(harness.TIMEOUT)
        assert all(seen), "a copy is wrong"


def test_timeout():
    with gdrcap.Session(harness.silence()) as session:
        assert session.images().wait(0) is None and session.images().wait(0.01) is None
        assert session.images().poll() is None and not session.wait(0.01)
        harness.refused(TimeoutError, "nothing came for 0.01 s", next, session.images(timeout=0.01))
        for bad in (-1, float("nan")):
            harness.refused(ValueError, "0 or more", session.images().wait, bad)
        harness.refused(TypeError, "", session.images().wait, "a")


RUNNING = """
import os, signal, sys, threading
import harness, gdrcap
session = gdrcap.Session(harness.%s)
session.start()
images = session.images()
"""
SENDING, SILENT = RUNNING % "loopback(frames=None)", RUNNING % "silence()"


def test_interrupt():
    """Ctrl-C comes out of each wait."""
    for wait in ("next(images)", "images.wait()", "session.wait()", "for image in images: pass"):
        harness.program(SILENT + """
try:
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    %s
except KeyboardInterrupt:
    session.close()
    print("interrupted")
    sys.exit(5)
""" % wait, status=5)


def test_exit():
    """The interpreter ends in mid-run: with images, tensors and threads alive. In `make check` each end and each that is
    alive once, in `make check-long` each with each."""
    alive = ("image = next(images)", "image = next(images); view = memoryview(image)",
             "image = next(images); keep = image.view(); sys.modules['keep'] = keep",
             "threading.Thread(target=lambda: list(images), daemon=True).start()")
    for i, (end, status) in enumerate((
            ("sys.exit(3)", 3), ("raise SystemExit(4)", 4), ("1 / 0", 1), ("os._exit(6)", 6), ("", 0))):
        for held in harness.e2e.some(alive, i % len(alive)):
            done = harness.program(SENDING + held + "\n" + end, status=status, flags=("-X", "dev"))
            words = [line for line in done.stderr.splitlines() if "the rate was not reached" not in line]
            assert not words or words[-1].startswith("ZeroDivisionError"), done.stderr


def test_log_and_exit():
    """Lines of threads of the library's, at every level, while the interpreter ends."""
    for _ in range(5 if harness.e2e.LONG else 2):
        harness.program("import logging\nlogging.basicConfig(level=logging.DEBUG)\n" + SENDING + "next(images)")


def test_fork():
    """A child that uses its parent's session is told why not; the parent goes on."""
    harness.program(SENDING + """
image = next(images)
pid = os.fork()
if pid == 0:
    told = 0
    for use in (images.poll, images.wait, images.fileno, session.wait, session.images, session.summary, session.stop,
                lambda: gdrcap.Session(harness.loopback())):
        try:
            use()
        except gdrcap.Error as error:
            told += "child" in str(error) or "fork" in str(error)
    image.release()
    os._exit(told)
told = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
assert told == 8, told
assert next(images).copy()
session.close()
""")


def test_two_interpreters():
    """A second interpreter in the process is refused, and nothing crashes."""
    done = harness.program("""
import harness, gdrcap
try:
    import _xxsubinterpreters as inner
except ImportError:
    print("skip")
    raise SystemExit
import sys
number = inner.create()
try:
    inner.run_string(number, "import sys; sys.path[:] = %r; import gdrcap" % (sys.path,))
    print("loaded")
except Exception as error:
    print(error)
gdrcap.Session(harness.loopback()).close()
""")
    assert "another interpreter" in done.stdout or "skip" in done.stdout, done.stdout
