# SPDX-License-Identifier: BSD-3-Clause
"""What docs/images.md says of images, once more and as simply as can be: which frame goes where, what becomes
of it, which images are handed out when, and what is counted. One queue, one worker; a burst is placed, then
collected. The frames are of one layout, `parser: fields`, `base: frame`:

    0 kind (0 data, 1 leader, 2 trailer)   1 stream   2-3 number   4-5 place   6-7 length
    8 bit 7: the last one   9 pieces, if it is   10-13 time stamp   14.. payload

As Ethernet frames their sender is bytes 6-11, and a VLAN number where 12-13 are a tag's.

Bytes are as sent but in what is handed out, which is converted: by `convert`, one of CONVERT.
"""
import struct
from collections import deque

STREAMS, RUNS, TURNS = 64, 8, 16
COMPLETE, NEWER, TIMEOUT, STOPPED = range(4)


def swap(bytes_each):
    return bytes_each, bytes_each, lambda group: group[::-1]


def unpack(bits, order):
    """Numbers of so many bits: of one whole number of bytes, its highest or its lowest bits first."""
    count = 4 if bits == 10 else 2

    def numbers(group):
        whole = int.from_bytes(group, order)
        each = [whole >> bits * i & (1 << bits) - 1 for i in range(count)]
        return struct.pack('<%dH' % count, *(each[::-1] if order == 'big' else each))
    return count * bits // 8, count * 2, numbers


def floats(sent, kept):
    return struct.calcsize(sent), struct.calcsize(kept), lambda group: struct.pack(kept, *struct.unpack(sent, group))


# By enum image_convert: a group's bytes as sent and as kept, and how.
CONVERT = ((1, 1, bytes), swap(2), swap(4), swap(8), unpack(10, 'big'), unpack(12, 'big'), unpack(10, 'little'),
           unpack(12, 'little'), floats('<b', '<e'), floats('<b', '<f'), floats('<h', '<e'), floats('<h', '<f'),
           floats('>h', '<e'), floats('>h', '<f'))


class Stream:
    def __init__(self, id):
        self.id, self.newest, self.most, self.window, self.last = id, None, None, None, None
        self.list, self.skipped = [], 0
        self.turns = deque(maxlen=TURNS)  # the last images that came: of those without a buffer the number
        self.runs = []  # numbers without a buffer, the last RUNS, and how many silences were before each
        self.active, self.silences, self.anew = None, 0, False
        self.sender, self.sender_silences = None, 0  # who began its first image since the last silence
        self.counts = dict.fromkeys(COUNTS, 0)


COUNTS = ('placed duplicate second_leg conflict late no_room misfit filtered begun complete newer timeout stopped dropped skipped'
          ' restarts pieces_expected pieces_placed pieces_lost bytes').split()


class Image:
    def __init__(self, stream, wire, number):
        self.stream, self.wire, self.number, self.timestamp = stream, wire, number, 0
        self.data, self.present = {}, set()  # byte: value; pieces
        self.short = None  # the piece that is shorter than others
        self.tail = 0  # its bytes
        self.short_told = False  # as collected: a copy of a piece that is there whole tells nothing
        self.senders = []
        self.begun = self.lost = self.ended = self.end = self.closed = False
        self.open = True
        self.said = self.past = self.received = self.bytes = 0  # as collected


class Model:
    def __init__(self, case):
        self.__dict__.update(case)
        self.now, self.streams, self.known_images = 0, [], {}
        self.free, self.offered = self.ring, deque()
        self.whole = []  # complete, handed out and known until the round's end
        self.counts = dict.fromkeys(COUNTS, 0)
        self.row_pieces = -(-self.row // self.piece)
        self.group, self.kept, self.converted = CONVERT[self.convert]
        self.all_pieces = sum(1 for _ in self.pieces_of(0, self.size))

    def pieces_of(self, place, end):
        """(piece, first byte, bytes) that lie in [place, end)."""
        for row in range(place // self.pitch, -(-end // self.pitch)):
            for i in range(self.row_pieces):
                at = row * self.pitch + i * self.piece
                to = min(at + self.piece, row * self.pitch + self.row, self.size)
                if at < to and at >= place and at < end:
                    yield row * self.row_pieces + i, at, to - at

    # ---- placing ----

    def parse(self, f):
        """'filtered', 'misfit', or what the frame says."""
        if len(f) < 1:
            return 'misfit'
        if f[0] > 2:
            return 'filtered'
        length = int.from_bytes(f[6:8], 'big')
        if f[0] == 0 and (len(f) < 14 or length > len(f) - 14) or len(f) < 4:
            return 'misfit'
        number, ends = int.from_bytes(f[2:4], 'big'), f[0] == 2 or (f[0] == 0 and f[8] >= 128)
        if not self.first <= number < self.first + self.wrap or (ends and len(f) < 10):
            return 'misfit'
        said = f[9] if ends else 0
        if said > self.all_pieces:
            return 'misfit'
        place = int.from_bytes(f[4:6], 'big')
        if f[0] == 0:
            end, in_row = place + length, place % self.pitch
            whole = length % self.piece == 0 or self.partial or in_row + length == self.row or end == self.size
            if length == 0 or end > self.size or in_row + length > self.row or in_row % self.piece or not whole \
                    or length % self.group:
                return 'misfit'
        return f[0], f[1], number, ends, said, place, f[14:14 + length]

    def extend(self, stream, wire):
        if stream.newest is None:
            return wire
        k, newest, wrap = wire - self.first, stream.newest - self.first, self.wrap
        near = [n for n in (newest - newest % wrap + k + d * wrap for d in (-1, 0, 1)) if n >= 0]
        # as near both ways: the one in the newest's own round
        return min(near, key=lambda n: (abs(n - newest), n // wrap != newest // wrap)) + self.first

    def begin(self, id, wire, f, kind):
        """An image, or (outcome, stream, number)."""
        stream = next((s for s in self.streams if s.id == id), None)
        if stream is None:
            if len(self.streams) == STREAMS:
                return 'no_room', None, wire
            stream = Stream(id)
            self.streams.append(stream)
        number = self.extend(stream, wire)
        if number in stream.turns:
            return 'no_room', stream, number
        if stream.most is not None and number <= stream.most and stream.window is not None and \
                0 <= stream.window - number <= self.late:
            return 'late', stream, 0
        stream.most = number if stream.most is None else max(stream.most, number)
        if stream.newest is None or number > stream.newest or stream.newest - number > self.late:
            stream.newest = number
        stream.turns.append(None if self.free else number)
        if not self.free:
            return 'no_room', stream, number
        self.free -= 1
        image = Image(stream, wire, number)
        self.known_images[id, wire] = image
        return image

    def is_short(self, place, length):
        """Ends within a piece, and with no row and no image: only a sender's last packet may."""
        return length % self.piece != 0 and place % self.pitch + length != self.row and place + length != self.size

    def sender_fits(self, image, f):
        """Of `legs` senders, the first that come; legs 0: of any."""
        tagged = f[12:14] in (b'\x81\0', b'\x88\xa8') and len(f) >= 16
        sender = (f[6:12], int.from_bytes(f[14:16], 'big') & 0xfff if tagged else None) if len(f) >= 14 else (bytes(6), None)
        if sender not in image.senders and (len(image.senders) < self.legs or not image.senders):
            image.senders.append(sender)
        return not self.legs or sender in image.senders

    def forget(self, image):
        if self.known_images.get((image.stream.id, image.wire)) is image:
            del self.known_images[image.stream.id, image.wire]

    def place(self, f):
        """(outcome, stream, number, image, pieces, bytes, ends, said, past, whether it is short)"""
        packet = self.parse(f)
        if isinstance(packet, str):
            return packet, None, 0, None, 0, 0, False, 0, 0, False
        kind, id, wire, ends, said, place, payload = packet
        image = self.known_images.get((id, wire)) or self.begin(id, wire, f, kind)
        if isinstance(image, tuple) and image[0] == 'late' and kind != 0:
            return 'placed', image[1], 0, None, 0, 0, False, 0, 0, False
        if isinstance(image, tuple):
            return *image, None, 0, 0, False, 0, 0, False
        if not self.sender_fits(image, f):
            return 'conflict', image.stream, 0, image, 0, 0, False, 0, 0, False
        if kind == 1:
            image.timestamp = int.from_bytes(f[10:14], 'big') if len(f) >= 14 else 0
        pieces = placed = past = 0
        differs = False
        short = kind == 0 and self.is_short(place, len(payload))
        if short:
            last, at, _ = max(self.pieces_of(place, place + len(payload)))
            short = last not in image.present
            if short and image.short is not None:
                return 'misfit', None, 0, None, 0, 0, False, 0, 0, False
            if short:
                image.short, image.tail = last, place + len(payload) - at
        if kind == 0:
            for piece, at, size in self.pieces_of(place, place + len(payload)):
                past = piece + 1
                new = payload[at - place:at - place + size]
                if piece in image.present:
                    differs |= bool(self.differs(image, at, new))
                    continue
                image.present.add(piece)
                image.data.update(enumerate(new, at))
                pieces, placed = pieces + 1, placed + len(new)
            if not pieces:
                return 'conflict' if differs else 'duplicate', image.stream, 0, image, 0, 0, False, 0, 0, False
        return 'conflict' if differs else 'placed', image.stream, 0, image, pieces, placed, ends, said, past, short

    def differs(self, image, at, new):
        """Whether a copy's bytes are others than those placed. None: behind a piece that was short lie an older image's."""
        there = [image.data.get(at + i) for i in range(len(new))]
        known = [one if one is not None else byte for one, byte in zip(there, new)]
        return self.converts(new) != self.converts(bytes(known)) or (None if None in there else False)

    def nobody_knows(self, f):
        """A copy that differs only if it differs from an older image's bytes."""
        packet = self.parse(f)
        image = None if isinstance(packet, str) or packet[0] != 0 else self.known_images.get(packet[1:3])
        if image is None:
            return False
        place, payload = packet[5:]
        found = [self.differs(image, at, payload[at - place:at - place + size])
                 for piece, at, size in self.pieces_of(place, place + len(payload)) if piece in image.present]
        return None in found and True not in found

    def converts(self, data):
        return b''.join(self.converted(data[at:at + self.group]) for at in range(0, len(data), self.group))

    def burst(self, frames):
        """Places them, and collects: neighbours of one image and outcome at once. What became of each, and those of which
        that can be said."""
        done = [(f, self.place(f)) for f in frames if not self.nobody_knows(f)]
        groups, before = [], None
        for f, d in done:
            name = d[:4] + ((f[1], f[2:4]) if d[0] in ('late', 'no_room') else ())
            if name == before:
                groups[-1].append(d)
            else:
                groups.append([d])
            before = name
        for group in groups:
            self.collect(group)
        self.round()
        return ''.join({'placed': 'P', 'duplicate': 'D', 'conflict': 'C', 'late': 'L', 'no_room': 'N', 'misfit': 'M',
                        'filtered': 'F'}[d[0]] for _, d in done), [f for f, _ in done]

    # ---- collecting ----

    def expected(self, image):
        return max(image.said, image.past) if image.said else self.all_pieces if self.known else 0

    @staticmethod
    def holed(image, past):
        """A piece that ends within itself lacks its end, if others follow."""
        return image.short is not None and past > image.short + 1

    def is_alien(self, stream, sender):
        """Another sender than the stream's, which was not silent since that one came."""
        if self.legs != 1:
            return False
        if stream.sender is None or stream.sender_silences != stream.silences:
            stream.sender, stream.sender_silences = sender, stream.silences
        return sender != stream.sender

    def collect(self, group):
        outcome, stream, number, image = group[0][:4]
        counts = stream.counts if stream else self.counts
        if image and not image.begun:
            image.alien = self.is_alien(stream, image.senders[0])
        alien = image and image.alien and outcome in ('placed', 'duplicate')
        counts['conflict' if alien else 'second_leg' if outcome == 'duplicate' and self.legs == 2 else outcome] += len(group)
        if outcome == 'placed' and image or outcome == 'no_room' and stream:
            stream.active = self.now
        if outcome == 'no_room' and stream and self.is_first_without(stream, number):
            counts['begun'] += 1
            counts['dropped'] += 1
        if image is None:
            return
        if not image.begun:
            image.begun, image.first_time, image.last_time = True, self.now, self.now
            counts['begun'] += 1
            image.lost = stream.last is not None and not stream.anew and \
                0 <= stream.last - image.number <= self.late
            at = len(stream.list)
            while at and 0 < stream.list[at - 1].number - image.number <= self.late:
                at -= 1
            stream.list.insert(at, image)
            if image.lost:
                self.close(image, NEWER)
            for old in stream.list[:max(0, len(stream.list) - self.open)]:
                if old.open:
                    self.close(old, NEWER)
        if not image.open:
            return
        for _, _, _, _, pieces, placed, ends, said, past, short in group:
            image.short_told |= short
            image.received, image.bytes = image.received + pieces, image.bytes + placed
            image.said, image.past = max(image.said, said), max(image.past, past)
            if ends and image.ended is False:
                image.ended = self.now
        if outcome == 'placed' or any(one[4] for one in group):
            image.last_time = self.now
        if self.expected(image) and image.received >= self.expected(image) and not (
                image.short_told and self.holed(image, image.past)):
            if self.expected(image) < self.all_pieces or image.short_told:
                self.close(image, COMPLETE)
            else:
                image.open, image.end = False, COMPLETE
            self.hand_out(stream)

    def is_first_without(self, stream, number):
        """A frame of this image found no buffer: of others of it that was not told yet."""
        runs = [entry for entry in stream.runs if entry[1] == stream.silences]
        if max([run[-1] for run, _ in runs], default=number) - number > self.late:  # begins anew
            runs = stream.runs = []
            stream.last = None
            stream.counts['restarts'] += 1
        if any(number in run for run, _ in runs):
            return False
        beside = [entry for entry in runs if number in (entry[0].start - 1, entry[0].stop)]
        if beside:  # one, or the two that it joins
            low = min(beside, key=lambda entry: entry[0].start)
            low[0] = range(min(low[0].start, number), max([number + 1] + [run.stop for run, _ in beside]))
            stream.runs = [entry for entry in stream.runs if entry is low or entry not in beside]
        else:
            stream.runs = stream.runs[-RUNS + 1:] + [[range(number, number + 1), stream.silences]]
        return True

    def window(self, image):
        s, n = image.stream, image.number
        if s.window is None or n > s.window or s.window - n > self.late:
            s.window = n

    def close(self, image, end):
        """What came is known exactly: also of frames that were placed and not collected."""
        self.window(image)
        self.forget(image)
        if self.holed(image, max(image.present, default=-1) + 1) or \
                image.short is not None and self.expected(image) != image.short + 1:
            image.present.discard(image.short)
            _, at, size = next(each for each in self.pieces_of(0, self.size) if each[0] == image.short)
            for i in range(at, at + size):
                image.data.pop(i, None)
            image.short = None
        image.bytes = sum(self.piece_bytes(image, p, n) for p, _, n in self.pieces_of(0, self.size) if p in image.present)
        image.open, image.received = False, len(image.present)
        if image.said:
            image.past = max(image.present, default=-1) + 1
        whole = self.expected(image) and image.received >= self.expected(image)
        image.end = COMPLETE if whole else TIMEOUT if end == COMPLETE else end
        image.closed = True

    def hand_out(self, stream):
        while stream.list and not stream.list[0].open:
            image = stream.list.pop(0)
            self.window(image)
            c, expected = stream.counts, self.expected(image)
            if image.lost:
                c['dropped'] += 1
                self.back(image)
                continue
            self.number(stream, image.number)
            c['bytes'] += image.bytes
            if expected:
                c['pieces_expected'] += expected
                c['pieces_placed'] += image.received
                c['pieces_lost'] += expected - image.received
            if image.end != COMPLETE and self.drop_incomplete:
                c['dropped'] += 1
                self.back(image)
                continue
            c[('complete', 'newer', 'timeout', 'stopped')[image.end]] += 1
            image.skipped, stream.skipped = stream.skipped, 0
            image.told, image.pieces = image.timestamp, expected
            self.offered.append(image)
            if not image.closed:
                self.whole.append(image)

    def number(self, stream, number):
        last, stream.last, stream.anew = stream.last, number, False
        if last is None:
            return
        if number <= last or self.counts_numbers and number - last - 1 > 65536:
            stream.counts['restarts'] += 1
        elif self.counts_numbers:
            no_room = sum(len(range(max(run.start, last + 1), min(run.stop, number))) for run, _ in stream.runs)
            skipped = max(0, number - last - 1 - no_room)
            stream.counts['skipped'] += skipped
            stream.skipped += skipped

    def back(self, image):
        """Its buffer is free."""
        self.free += 1

    def round(self):
        for stream in self.streams:
            for i, image in enumerate(stream.list):
                held = any(not n.open and n.end == COMPLETE and self.now - n.last_time > self.timeout
                           for n in stream.list[i + 1:])
                if not image.open:
                    continue
                if not (self.now - image.last_time > self.timeout or held or
                        image.ended is not False and self.now - image.ended > self.linger):
                    continue
                self.close(image, TIMEOUT)
                stream.active = self.now
            self.hand_out(stream)
            if not stream.list and stream.active is not None and self.now - stream.active > self.timeout:
                stream.window = stream.active = None
                stream.turns.clear()
                stream.silences, stream.anew = stream.silences + 1, True
        while self.whole:
            self.forget(self.whole.pop())
        while self.drop_oldest and not self.free and self.offered:
            image = self.offered.popleft()
            image.stream.counts[('complete', 'newer', 'timeout', 'stopped')[image.end]] -= 1
            image.stream.counts['dropped'] += 1
            image.stream.skipped += image.skipped
            self.back(image)

    def look(self, image):
        """The image's bytes; None: nobody says."""
        data = [None if i % self.pitch < self.row else 0xa5 for i in range(self.size)]
        for piece, at, n in self.pieces_of(0, self.size):
            if image.closed and self.fill >= 0 and piece not in image.present:
                data[at:at + n] = [self.fill] * n
        return [byte for at in range(0, self.size, self.group) for byte in (
            self.converted(bytes(image.data[at + i] for i in range(self.group)))
            if at in image.data else [data[at]] * self.kept)]

    def in_buffer(self, count):
        assert count % self.group == 0
        return count // self.group * self.kept

    def length(self, image):
        if not image.pieces:
            return self.size
        return next(at + self.piece_bytes(image, piece, n) for piece, at, n in self.pieces_of(0, self.size)
                    if piece == image.pieces - 1)

    @staticmethod
    def piece_bytes(image, piece, whole):
        """How many bytes of the piece the sender has, where it is the image's last."""
        return image.tail if piece == image.short else whole

    def take(self):
        return self.offered.popleft() if self.offered else None

    def release(self, image):
        self.back(image)
        self.round()

    def later(self, ticks):
        self.now += ticks
        self.round()

    def finish(self):
        for stream in self.streams:
            for image in stream.list:
                if image.open:
                    self.close(image, STOPPED)
        self.round()
        for stream in self.streams:
            self.rest(stream)

    def rest(self, stream):
        """What is missing between those behind the last image that found no buffer."""
        newest = max([run[-1] for run, silences in stream.runs if silences == stream.silences], default=-1)
        if stream.last is None or stream.anew or not self.counts_numbers or not 0 < newest - stream.last <= 65536:
            return
        no_room = sum(len(range(max(run.start, stream.last + 1), min(run.stop, newest + 1))) for run, _ in stream.runs)
        stream.counts['skipped'] += max(0, newest - stream.last - no_room)
