# SPDX-License-Identifier: BSD-3-Clause
"""gdrcap under test for a long time: every line that it writes is checked as it comes and then forgotten, and what it
has (memory, descriptors, threads) is compared between two moments."""
import collections
import os
import shutil
import signal
import subprocess
import threading
import time

import books
import e2e
import machine

# What a run may have more at its end than once it was warm. The bound does not grow with the time.
# The address sanitizer keeps up to 256 MiB of what was freed.
RSS_BOUND_KB = 16 << 10 if os.environ.get("LIBGDRCAP_SANITIZED") != "1" else (256 + 16) << 10
# With the test its programs end too, however it ends; and a Ctrl-C at the terminal is the test's alone.
PREFIX = ("setpriv", "--pdeathsig", "KILL") if shutil.which("setpriv") else ()
pids = []  # of all programs so far


class Program:
    """Its lines come from standard output, or from `file`, which may be renamed and opened anew."""

    def __init__(self, *arguments, file=None, program=None, env=None, every="0.2"):
        self.arguments = [*arguments, "--json-lines", every, *(("--json-file", str(file)) if file else ())]
        self.book, self.broken, self.begin = books.Book(), None, None
        self.errors = collections.deque(maxlen=100)
        self.said = 0  # lines that a full disk had no room for were told of
        self.reader_left = False
        self.file = file
        if file:
            file.touch()
            self.open_log()
        # Not into what runs it: a library with sanitizers needs a program that has them.
        env = dict(os.environ if env is None else env)
        preload = env.pop("LD_PRELOAD", None)
        loaded = ("env", "LD_PRELOAD=" + preload) if preload else ()
        self.process = subprocess.Popen(
            [*PREFIX, *loaded, program or e2e.PROGRAM, *self.arguments], stdin=subprocess.DEVNULL, env=env,
            stdout=subprocess.DEVNULL if file else subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        pids.append(self.process.pid)
        self.threads = [threading.Thread(target=self.guard, args=(what,), daemon=True)
                        for what in (self.read_errors, self.follow if file else self.read_lines)]
        for thread in self.threads:
            thread.start()

    def guard(self, what):
        try:
            what()
        except Exception as error:
            self.broken = self.broken or error
            # Nobody waits for a reader that has seen enough.
            self.process.kill()

    def read_errors(self):
        for line in self.process.stderr:
            text = line.decode(errors="replace").rstrip()
            self.said += "could not be written" in text
            self.errors.append(text)

    def read_lines(self):
        for line in self.process.stdout:
            if line.endswith(b"\n"):
                self.book.take(line)
            else:
                assert self.reader_left, "half a line at the end: %s" % line

    def follow(self):
        """A line counts once its end is there; one whose end found no room is taken back by the program."""
        at = 0
        while True:
            ended = self.process.poll() is not None
            self.log.seek(at)
            text = self.log.read()
            whole = text.rfind(b"\n") + 1
            for line in text[:whole].splitlines():
                self.book.take(line)
            at += whole
            if whole:
                continue
            if self.renamed():
                self.log.close()
                self.open_log()
                at = 0
            elif ended:
                assert not text, "half a line at the end: %s" % text[-200:]
                return
            else:
                time.sleep(0.02)

    def open_log(self):
        self.log = open(self.file, "rb", buffering=0)
        self.inode = os.fstat(self.log.fileno()).st_ino

    def renamed(self):
        """A new file of that name is there, and with it all lines of the old one are. For any thread."""
        try:
            return os.stat(self.file).st_ino != self.inode
        except FileNotFoundError:
            return False

    def __str__(self):
        return "gdrcap %s (%d): %s\n%s" % (" ".join(map(str, self.arguments)), self.process.pid,
                                           "\n".join(self.errors), str(self.book.last)[:3000])

    __repr__ = __str__  # of an assertion's tuple

    def wait(self, what, text):
        """Until what() is true; fails where the program ends before or a line was wrong."""
        def come():
            if self.broken:
                raise AssertionError("%s: %s" % (self.broken, self)) from self.broken
            if what():
                return True
            assert self.process.poll() is None, "ended before %s: %s" % (text, self)
            return False
        machine.wait_until(come, lambda: "%s: %s" % (text, self))

    def count(self, path):
        return self.book.count(path)

    def grow(self, path, more):
        """Until it counted so many more."""
        until = self.count(path) + more
        self.wait(lambda: self.count(path) >= until, "%s grows to %d" % (path, until))

    # ---- what it has ----

    def usage(self):
        return machine.usage(self.process.pid)

    def note_begin(self):
        self.begin = self.usage()

    def check_flat(self):
        """(as noted, now). Connections that were closed are gone after a moment."""
        self.wait(lambda: self.usage().descriptors <= self.begin.descriptors and
                  self.usage().threads <= self.begin.threads,
                  "as few descriptors and threads as %s, now %s, %s" % (self.begin, self.usage(), self.open_files()))
        now = self.usage()
        assert now.rss_kb <= self.begin.rss_kb + RSS_BOUND_KB, "memory: %s, then %s: %s" % (self.begin, now, self)
        assert now.huge_kb == self.begin.huge_kb, (self.begin, now)
        defunct = machine.defunct_children(self.process.pid)
        assert not defunct, "not waited for: %s" % defunct
        return self.begin, now

    def open_files(self):
        folder = "/proc/%d/fd" % self.process.pid
        return [os.readlink(os.path.join(folder, name)) for name in os.listdir(folder)]

    # ---- what is done to it ----

    def send(self, number):
        self.process.send_signal(number)

    def stand_still(self, seconds):
        self.send(signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WNOWAIT)
        time.sleep(seconds)
        self.send(signal.SIGCONT)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.join()
        for stream in (self.process.stdout, self.process.stderr, self.log if self.file else None):
            if stream:
                stream.close()

    def join(self):
        for thread in self.threads:
            thread.join(e2e.TIMEOUT)

    def finish(self, expect=(0,), number=signal.SIGINT):
        """Its summary, and nothing that is wrong with a line."""
        if number and self.process.poll() is None:
            self.send(number)
        try:
            self.process.wait(e2e.TIMEOUT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise AssertionError("did not end: %s" % self)
        self.join()
        if self.broken:
            raise AssertionError("%s: %s" % (self.broken, self)) from self.broken
        assert self.process.returncode in expect, "exit status %s, not %s: %s" % (
            self.process.returncode, expect, self)
        return self.book.last

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
