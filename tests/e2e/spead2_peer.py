# SPDX-License-Identifier: BSD-3-Clause
"""spead2 as sender, and as reader of captures, for test_images_spead2.py: run by the Python that has it.

  spead2_peer.py version
  spead2_peer.py send ADDRESS PORT JSON    test_images_spead2.send() has the options
  spead2_peer.py read FILE PORT            one line of JSON a heap: {count, items: [[id, bytes, SHA-256]]}
"""
import hashlib
import json
import random
import sys

import numpy
import spead2
import spead2.recv
import spead2.send

TIME, DATA, MORE = 0x1600, 0x1601, 0x1602


def content(number, length):
    return random.Random(number).randbytes(length)


def heaps(options):
    flavour = spead2.Flavour(4, 64, 48, 0)
    group = spead2.send.ItemGroup(flavour=flavour)
    size = options["bytes"]
    group.add_item(TIME, "time", "of the first sample", shape=(), format=[("u", 48)])
    group.add_item(DATA, "data", "samples", shape=(size,), dtype=numpy.uint8)
    if options["more"]:
        group.add_item(MORE, "more", "of another kind", shape=(100,), dtype=numpy.uint8)
    source = spead2.send.HeapGenerator(group, flavour=flavour)
    if options["start"] == "alone":
        yield source.get_start()
    for number in range(options["heaps"]):
        group[TIME].value = options["first"] + number
        group[DATA].value = numpy.frombuffer(content(number, size), numpy.uint8)
        if options["more"]:
            group[MORE].value = numpy.frombuffer(content(number + 1000, 100), numpy.uint8)
        heap = source.get_heap(descriptors=options["descriptors"], data="all")
        heap.repeat_pointers = options["repeat"]
        if options["start"] == "with data" and number == 0:
            heap.add_start()
        yield heap
    yield source.get_end()


def send(address, port, options):
    config = spead2.send.StreamConfig(max_packet_size=options["packet"], rate=20e6, burst_size=20000)
    stream = spead2.send.UdpStream(spead2.ThreadPool(), [(address, port)], config)
    for heap in heaps(options):
        stream.send_heap(heap)


def read(path, port):
    stream = spead2.recv.Stream(spead2.ThreadPool(), spead2.recv.StreamConfig(stop_on_stop_item=False))
    stream.add_udp_pcap_file_reader(path, "udp port %d" % port)
    for heap in stream:
        if isinstance(heap, spead2.recv.IncompleteHeap):
            print(json.dumps({"count": heap.cnt, "incomplete": True}))
            continue
        items = []
        for item in heap.get_items():
            if item.is_immediate:
                items.append([item.id, None, item.immediate_value])
            else:
                data = bytes(item)
                items.append([item.id, len(data), hashlib.sha256(data).hexdigest()])
        print(json.dumps({"count": heap.cnt, "incomplete": False, "items": items}))


if __name__ == "__main__":
    if sys.argv[1] == "send":
        send(sys.argv[2], int(sys.argv[3]), json.loads(sys.argv[4]))
    elif sys.argv[1] == "read":
        read(sys.argv[2], int(sys.argv[3]))
    else:
        print(spead2.__version__)
