#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Random cases of order, loss, second copies, wraps, restarts and rubbish: the placer of the CPU backend and
the assembler (image_play) do, frame by frame and image by image, what image_model.py says.

PLACE_CASES: how many; 100000 with TEST_LONG=1, else 600. PLACE_SEED: the first one's.
"""
import os
import random
import struct
import subprocess
import sys

from image_model import CONVERT, COUNTS, Model

SILENCE = None
END, FRAME, BURST, LATER, TAKE, RELEASE = range(6)
KEYS = ('size row pitch piece partial known late first wrap counts_numbers ring open timeout linger fill'
        ' drop_incomplete drop_oldest convert legs').split()


def layout(r):
    convert = r.choice((0, r.randrange(len(CONVERT))))
    group = CONVERT[convert][0]
    piece = r.choice((1, 3, 4, 10)) * group
    rows = r.choice((1, 1, 1, 2, 5))
    row = r.randint(1, 60 // group) * group
    pitch = row + (r.choice((0, 0, 7, 16)) * group if rows > 1 else 0)
    size = pitch * (rows - 1) + r.randint(1, row // group) * group if rows > 1 else row
    wrap = r.choice((20, 25, 100, 65529))
    ring = r.randint(2, 6)
    return {'size': size, 'row': row, 'pitch': pitch, 'piece': piece, 'partial': int(r.random() < 0.3),
            'known': int(r.random() < 0.7), 'late': r.choice((1, 4, wrap // 4)), 'first': r.choice((0, 1, 7)),
            'wrap': wrap, 'counts_numbers': r.randint(0, 1), 'ring': ring, 'open': r.randint(1, ring - 1),
            'timeout': 10, 'linger': 3, 'fill': r.choice((-1, 0, 255)), 'drop_incomplete': int(r.random() < 0.2),
            'drop_oldest': int(r.random() < 0.3), 'convert': convert, 'legs': r.choice((0, 0, 1, 2))}


def image_frames(r, case, stream, number):
    """Of one image, in order: leader, data in packets of one or several pieces, trailer or an end mark."""
    head = struct.pack('>BH', stream, number)
    frames, said = [], min(255, sum(1 for _ in Model(case).pieces_of(0, case['size'])))
    leaders, trailers = r.random() < 0.5, r.random() < 0.5
    if leaders:
        frames.append(b'\x01' + head + bytes(7) + struct.pack('>I', r.getrandbits(32)))
    length = case['piece'] * r.choice((1, 2, 5))
    for row in range(0, case['size'], case['pitch']):
        end = min(row + case['row'], case['size'])
        for at in range(row, end, length):
            n = min(length, end - at)
            last = not trailers and at + n == case['size']
            frames.append(b'\0' + head + struct.pack('>HHBBI', at, n, 0x80 * last, said, 5) + r.randbytes(n))
    if trailers:
        frames.append(b'\x02' + head + bytes(5) + bytes([said if r.random() < 0.9 else r.randrange(256)]))
    return frames


def spoil(r, frame):
    frame = bytearray(frame)
    for _ in range(r.randint(1, 3)):
        frame[r.randrange(min(len(frame), 14))] = r.choice((0, 1, 255, r.randrange(256)))
    return bytes(frame[:r.randint(0, len(frame))] if r.random() < 0.3 else frame)


def stream_frames(r, case):
    """What senders send, and what a wire makes of it."""
    frames, number = [], {}
    streams = r.sample(range(256), r.choice((1, 1, 2, 3)))
    for _ in range(r.randint(1, 25)):
        stream = r.choice(streams)
        n = number.get(stream, r.randrange(case['wrap']))
        number[stream] = (n + 1) % case['wrap']
        if r.random() < 0.04:
            number[stream] = r.choice((0, r.randrange(case['wrap'])))
        if r.random() < 0.04:  # begins anew a few numbers back, at once or after a silence
            number[stream] = max(0, n - r.randint(0, case['late']))
            frames += [SILENCE] * r.choice((0, 1, 1))
        frames += image_frames(r, case, stream, case['first'] + n)
    loss, twice, rubbish = r.choice((0, 0.02, 0.2)), r.choice((0, 0.02, 0.2)), r.choice((0, 0.02, 0.1))
    reach = r.choice((0, 0, 3, 30))
    out = []
    for i, frame in enumerate(frames):
        if frame is SILENCE:
            out.append((i, frame))
            continue
        for _ in range(0 if r.random() < loss else 2 if r.random() < twice else 1):
            out.append((i + r.uniform(0, reach), spoil(r, frame) if r.random() < rubbish else frame))
    return [frame for _, frame in sorted(out, key=lambda item: item[0])]


class Case:
    def __init__(self, seed):
        r = random.Random(seed)
        self.seed, self.case = seed, layout(r)
        self.model, self.want, self.input = Model(self.case), [], []
        self.word(*(self.case[key] for key in KEYS))
        frames, held = stream_frames(r, self.case), []
        burst, patience = r.choice((1, 5, 40)), r.choice((0.1, 0.5, 0.9))
        while frames:
            count = r.randint(1, burst)
            now, frames = frames[:count], frames[count:]
            self.burst([frame for frame in now if frame is not SILENCE])
            if SILENCE in now:
                self.pass_time(12)
                self.pass_time(12)
            if r.random() < 0.1:
                self.pass_time(r.choice((1, 4, 11)))
            while r.random() < patience and len(held) < 10:
                image = self.take()
                if image is None:
                    break
                held.append(image)
            while held and r.random() < patience:
                which = r.randrange(len(held))
                self.word(RELEASE, which)
                self.model.release(held.pop(which))
        self.word(END)
        self.model.finish()
        total = {key: sum(s.counts[key] for s in self.model.streams) + self.model.counts[key] for key in COUNTS}
        self.want.append('counts ' + ' '.join(str(total[key]) for key in COUNTS))
        check_identities(total, self.model)

    def pass_time(self, ticks):
        self.word(LATER, ticks)
        self.model.later(ticks)

    def word(self, *words):
        self.input.append(struct.pack('<%dI' % len(words), *(w & 0xffffffff for w in words)))

    def burst(self, frames):
        became, frames = self.model.burst(frames)
        for frame in frames:
            self.word(FRAME, len(frame))
            self.input.append(frame)
        self.word(BURST)
        self.want.append('burst ' + became)

    def take(self):
        self.word(TAKE)
        image = self.model.take()
        if image is None:
            self.want.append('none')
            return None
        text = ' '.join(str(x) for x in (
            image.number, image.stream.id, image.end, self.model.in_buffer(self.model.length(image)),
            self.model.in_buffer(image.bytes), image.pieces, image.received, image.skipped, image.first_time, image.last_time, image.told))
        present = ''.join('01'[p in image.present] for p in range(self.model.all_pieces))
        self.want.append(('image %s %s ' % (text, present), self.model.look(image)))
        return image


def check_identities(c, model):
    assert c['begun'] == c['complete'] + c['newer'] + c['timeout'] + c['stopped'] + c['dropped'], c
    assert c['pieces_expected'] == c['pieces_placed'] + c['pieces_lost'], c


def differs(want, got):
    if isinstance(want, str):
        return want != got
    text, data = want
    if not got.startswith(text):
        return True
    data_got = bytes.fromhex(got[len(text):])
    return len(data_got) != len(data) or any(w is not None and w != g for w, g in zip(data, data_got))


def main():
    some = '100000' if os.environ.get('TEST_LONG') == '1' else '600'
    cases, first = int(os.environ.get('PLACE_CASES', some)), int(os.environ.get('PLACE_SEED', '1'))
    seen = dict.fromkeys('PDCLNMF', 0)
    for start in range(first, first + cases, 500):
        batch = [Case(seed) for seed in range(start, min(start + 500, first + cases))]
        play = subprocess.run(sys.argv[1:], input=b''.join(b''.join(c.input) for c in batch), stdout=subprocess.PIPE)
        got = iter(play.stdout.decode().splitlines())
        for case in batch:
            for n, want in enumerate(case.want):
                line = next(got, '(it ended with %d)' % play.returncode)
                if differs(want, line):
                    print('seed %d, line %d: %s\n want %s\n got  %s' % (case.seed, n, case.case, want, line))
                    return 1
                if line.startswith('burst '):
                    for outcome in line[6:]:
                        seen[outcome] += 1
    print('%d cases; frames: %s' % (cases, seen))
    return 0 if play.returncode == 0 and all(seen.values()) else 1


if __name__ == '__main__':
    sys.exit(main())
