#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Defects planted in the product: each must be caught by the test that is named for it.

usage: planted.py BUILD [DEFECT...]

For each, one source file is copied, changed, compiled as BUILD compiles it and linked before the
rest of tests/gdrcap-faulty, and of the same without tests/faults, which stands for gdrcap in the
test; or before the rest of the test itself, where that is a program. BUILD must be up to date; nothing in it or in the sources is changed. Takes some seconds a
defect. Exit status 1: a defect was not seen, or does not fit the sources any more.
"""
import collections
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = "tests/gdrcap-faulty"
ARCHIVES = ("lib/libgdrcap_core.a", "kernels/libgdrcap_kernels.a", "app/libgdrcap_app.a", "lib/libgdrcap_test.so")

Defect = collections.namedtuple("Defect", "what source old new test")

DEFECTS = {
    "duplicates": Defect(
        "a second copy of a frame is not counted", "lib/verdict/verdict.c",
        "q->duplicate += duplicate;", "", "faults test_duplicate"),
    "holes": Defect(
        "an image is complete with a piece too few", "lib/image/assembler.c",
        "entry->pieces += record->pieces;", "entry->pieces += record->pieces + (entry->pieces == 0);",
        "images test_holes"),
    "length": Defect(
        "a saved frame has been a byte longer", "lib/save/pcapng.c",
        "block.at = put32(block.at, frame->length);", "block.at = put32(block.at, frame->length + 1);", "save test_save_all"),
    "kilo": Defect(
        "a rate of kpps is of 1,024 frames", "lib/replay/pacing.c",
        '{ "kpps", PACING_FRAMES, 1e3 }', '{ "kpps", PACING_FRAMES, 1024 }', "replay test_rates_of_frames"),
    "exit": Defect(
        "images that are incomplete do not fail a run", "lib/summary/reasons.c",
        'add_count(reasons, total.incomplete, "image", "incomplete");', ";", "images test_holes"),
    "end-count": Defect(
        "a stream's end says one frame too few", "lib/replay/tx_end.c",
        ".sequence = atomic_load_explicit(&worker->streams[s].sent, memory_order_relaxed),",
        ".sequence = atomic_load_explicit(&worker->streams[s].sent, memory_order_relaxed) - 1,", "replay test_pattern"),
    "inline": Defect(
        "frames are copied into descriptors by the CPU", "lib/port/connectx.c",
        '{ "txq_inline_max", "0",', '{ "txq_inline_max", "290,txqs_min_inline=0",',
        "connectx test_few_frames"),
    "isolate": Defect(
        "the port is not isolated", "lib/port/steering.c",
        "const int ret = rte_flow_isolate(port, 1, &told);", "const int ret = 0;",
        "connectx_steering test_capture_among_others"),
    "ethertype": Defect(
        "rules do not compare the EtherType in full", "lib/port/steering_pattern.c",
        "mask->hdr.ether_type = RTE_BE16(0xffff);", "mask->hdr.ether_type = RTE_BE16(0xf000);",
        "connectx_steering test_match_devx"),
    "stash": Defect(
        "polls with room for less than the driver's vectors", "lib/capture/rx_worker.c",
        "unlikely(room < RX_LEAST || worker->pending_count)", "unlikely(worker->pending_count)",
        "connectx test_rings_and_bursts"),
    "flush": Defect(
        "frames are published without a flush", "lib/capture/rx_worker.c",
        "rx_loops[extra][worker->config.accounted][worker->config.flush != NULL](worker);",
        "rx_loops[extra][worker->config.accounted][0](worker);",
        "connectx_faults test_flush_comes_before_publish"),
    "generation": Defect(
        "a slot's poison is not counted", "kernels/host/host_burst.c",
        "ring->generation[frame->desc.slot] = area.generation + 1;", ";",
        "connectx_faults test_stale_is_told_from_damage"),
    "poison": Defect(
        "slots are not poisoned", "kernels/host/host_burst.c",
        "stale_poison(&area, k);", ";",
        "connectx_faults test_stale_is_told_from_damage"),
    "dmabuf": Defect(
        "memory is never exported as a dma-buf", "lib/memory/dmabuf.c",
        "fd = entry->memory.export_fd\n", "fd = entry->memory.export_fd && !entry\n",
        "connectx_stages test_through_dma_buf"),
    "split": Defect(
        "a split frame's rest is looked for a byte too far", "lib/capture/rx_worker.c",
        "bytes += m->data_len;\n\t}\n\treturn bytes;\n}\n\n/* The frames' times",
        "bytes += m->data_len;\n\t\tdesc[i].offset++;\n\t}\n\treturn bytes;\n}\n\n"
        "/* The frames' times",
        "connectx test_split"),
    "restart": Defect(
        "a port that was started again gets no rules", "lib/session/recover_ports.c",
        "ret = session_rules_create(session, pair, error);", "ret = 0;",
        "connectx_faults test_receive_error"),
    "own-slot": Defect(
        "an own queue's slots are those of the first one", "lib/port/own_rx.c",
        "((uint64_t)(config->first_slot + i) << config->slot_shift)",
        "((uint64_t)i << config->slot_shift)", "test_softmlx5_own_rx"),
    "own-room": Defect(
        "an own queue's work entries have room beyond the slot", "lib/port/own_rx.c",
        "htobe32(1u << (config->slot_shift + strides))", "htobe32(2u << (config->slot_shift + strides))",
        "test_softmlx5_own_rx"),
    "own-stride-room": Defect(
        "a work entry of strides has room for one", "lib/port/own_rx.c",
        "htobe32(1u << (config->slot_shift + strides))", "htobe32(1u << config->slot_shift)",
        "test_softmlx5_own_strides"),
    "own-stride-link": Defect(
        "a work entry of strides has its memory where its link is", "lib/port/own_rx.c",
        "(void *)place)[-1]", "(void *)place)[strides ? -2 : -1]", "test_softmlx5_own_strides"),
    "own-stride-count": Defect(
        "the card has twice as many strides a work entry", "lib/port/devx_objects.c",
        "config->log_strides - PRM_WQ_LOG_STRIDES_ZERO", "config->log_strides + 1 - PRM_WQ_LOG_STRIDES_ZERO",
        "test_softmlx5_own_strides"),
    "own-preset": Defect(
        "an own completion queue is not preset", "lib/port/own_rx.c",
        "completions_fill(rx, 0, OWN_RX_PRESET, cq_bytes(rx), error);", "0;",
        "test_softmlx5_own_rx"),
    "own-record": Defect(
        "a reset leaves the record", "lib/port/own_rx.c",
        "return ret < 0 ? ret : record_reset(rx, error);", "return ret;",
        "test_softmlx5_own_rx"),
    "own-error": Defect(
        "a reset does not give back what was posted", "lib/port/own_rx.c",
        "if (ret == 0 && state == PRM_STATE_READY) {", "if (false) {",
        "test_softmlx5_own_rx"),
    "own-unmap": Defect(
        "an own queue that is gone stays in the driver's table", "lib/port/own_rx.c",
        "	if (!rx->mapped)\n		return 0;\n", "	if (rx->mapped)\n		return 0;\n",
        "test_softmlx5_own_rx"),
    "own-counter": Defect(
        "an own queue names no counter", "lib/port/devx_objects.c",
        "prm_set(context, PRM_RQC_COUNTER, config->counter->number);", ";",
        "test_softmlx5_own_rx"),
    "own-flush": Defect(
        "a queue in error does not flush", "lib/port/devx_objects.c",
        "prm_set(context, PRM_RQC_FLUSH_IN_ERROR, 1);", ";", "test_softmlx5_own_rx"),
    "own-overrun": Defect(
        "the card looks at the completion queue's record", "lib/port/devx_objects.c",
        "prm_set(context, PRM_CQC_OVERRUN_IGNORE, 1);", ";", "test_softmlx5_own_rx"),
    "own-domain": Defect(
        "the driver is handed no context", "lib/port/devx.c",
        '"%s,cmd_fd=%d,pd_handle=%u", opened, card->fd,\n			   card->pd->handle);',
        '"%s", opened);', "test_softmlx5_own_rx"),
    "own-close": Defect(
        "a descriptor that no driver took stays open", "lib/port/devx.c",
        "	if (!opened &&\n", "	if (opened &&\n", "test_softmlx5_own_refused devx"),
    "own-address": Defect(
        "rings in GPU memory are tried as a dma-buf only", "lib/port/devx.c",
        "	if (!umem->handle) {\n		errno = 0;", "	if (!umem->handle && !memory->export_fd) {\n		errno = 0;",
        "test_softmlx5_own_rx"),
    "own-first": Defect(
        "rules lead to the driver's queues", "lib/port/steering.c",
        "(uint16_t)(config->first_queue + work->rule % config->queues);",
        "(uint16_t)(work->rule % config->queues);", "test_softmlx5_own_rx"),
    "room": Defect(
        "slots go back before the card has sent them", "lib/replay/tx_own.c",
        "own->front.queue = own->tx.queue;\n",
        "own->front.queue = own->tx.queue;\n\town->slot_count *= 2;\n\town->slot = "
        "realloc(own->slot, own->slot_count * 4);\n\tmemcpy(own->slot + own->slot_count / 2, "
        "own->slot, own->slot_count * 2);\n", "connectx_own_send test_queues_and_bursts"),
    "reset": Defect(
        "a queue that was reset is not made ready", "lib/replay/tx_own.c",
        "return own_tx_start(&own->tx, NULL);", "return 0;",
        "connectx_own_send test_send_error"),
    "skip": Defect(
        "completions of before a reset are left there", "lib/replay/tx_own.c",
        "\tsq_skip(front);\n", "", "connectx_own_send test_send_error"),
    "overrun": Defect(
        "the completion queue is made to stop when it is not read", "lib/port/devx_objects.c",
        "prm_set(context, PRM_CQC_OVERRUN_IGNORE, 1);", ";", "connectx_own_send test_small_frames"),
}


def words(build, target):
    """The command that makes `target`."""
    text = subprocess.run(["ninja", "-C", build, "-t", "commands", "-s", target], check=True,
                          stdout=subprocess.PIPE, text=True).stdout
    return shlex.split(text.strip().splitlines()[-1])


def compile_words(build, source):
    for entry in json.loads((pathlib.Path(build) / "compile_commands.json").read_text()):
        path = (pathlib.Path(entry["directory"]) / entry["file"]).resolve()
        if path == ROOT / source and "gdrcap" in entry["output"].split("/")[1]:
            return shlex.split(entry["command"]), entry["file"]
    raise SystemExit("%s is compiled by no target of %s" % (source, build))


def without_output(command):
    """A compile command less -o, -c, -MF and the like."""
    kept, skip = [], False
    for word in command:
        if skip:
            skip = False
        elif word in ("-o", "-MF", "-MQ"):
            skip = True
        elif word not in ("-c", "-MD"):
            kept.append(word)
    return kept


def changed(defect):
    text = (ROOT / defect.source).read_text(encoding="utf-8")
    if text.count(defect.old) != 1:
        raise SystemExit("%s: \"%s\" is there %d times" % (
            defect.source, defect.old, text.count(defect.old)))
    return text.replace(defect.old, defect.new)


def program_of(test):
    """What the defect is linked into."""
    return "tests/" + test.split()[0] if test.startswith("test_") else PROGRAM


def without_faults(build, link):
    """What makes gdrcap-faulty, less what makes it out of gdrcap."""
    own = words(build, "app/gdrcap")
    return [word for word in link if ".p/faults_" not in word and (not word.startswith("-Wl,--wrap=") or word in own)]


def make(build, defect, directory):
    """The two programs with the defect."""
    source = pathlib.Path(directory) / pathlib.Path(defect.source).name
    source.write_text(changed(defect), encoding="utf-8")
    command, named = compile_words(build, defect.source)
    command = [word for word in without_output(command) if word != named]
    compiled = source.with_suffix(".o")
    # A changed line may leave something unused.
    subprocess.run([*command, "-Wno-error", "-w", "-I", str((ROOT / defect.source).parent), "-c",
                    str(source), "-o", str(compiled)], cwd=build, check=True)
    programs = []
    target = program_of(defect.test)
    for name in ("gdrcap", "gdrcap-faulty") if target == PROGRAM else ("test",):
        link = words(build, target)
        if name == "gdrcap":
            link = without_faults(build, link)
        programs.append(str(pathlib.Path(directory) / name))
        link[link.index("-o") + 1] = programs[-1]
        link.insert(min(link.index(word) for word in link if word in ARCHIVES), str(compiled))
        subprocess.run(link, cwd=build, check=True)
    return programs


def run_program(build, command):
    """The same of a test that is a program; one that ends by a signal has seen it, too."""
    done = subprocess.run(command, env=dict(
        os.environ, SOFTMLX5_DEVICES="4", LD_LIBRARY_PATH=str(pathlib.Path(build).resolve() / "lib")), timeout=240,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode == 127:
        raise SystemExit("%s could not be run: %s" % (command, done.stdout))
    causes = [line for line in done.stdout.splitlines() if "FAILED  ] " in line]
    if done.returncode == 0:
        return None
    return (causes or ["it ended with %d" % done.returncode])[-1][:110]


def run(build, programs, test):
    """What the test says, or None when it passed."""
    name, *functions = test.split()
    if program_of(test) != PROGRAM:
        return run_program(build, [*programs, *functions])
    environment = dict(os.environ, GDRCAP=programs[0], GDRCAP_FAULTY=programs[1],
                       E2E_TIMEOUT="60", PYTHONDONTWRITEBYTECODE="1")
    done = subprocess.run([str(pathlib.Path(build).resolve() / "venv" / "bin" / "python3"), "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider",
                           "--build=%s" % pathlib.Path(build).resolve(), "-k", " or ".join(functions),
                           str(ROOT / "tests/e2e" / ("test_%s.py" % name))], env=environment,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode == 0:
        return None
    if done.returncode != 1 or "FAILED" not in done.stdout:
        raise SystemExit("%s could not be run: %s" % (test, done.stdout[-2000:]))
    causes = [line for line in done.stdout.splitlines() if "Error: " in line]
    return (causes or ["it failed"])[-1][:110]


def main():
    if len(sys.argv) < 2 or set(sys.argv[2:]) - set(DEFECTS):
        raise SystemExit(__doc__)
    build = sys.argv[1]
    if not (pathlib.Path(build) / "venv" / "complete").exists():
        print("scripts/test-python.sh has not made %s/venv" % build)
        sys.exit(77)
    missed = 0
    for name in sys.argv[2:] or DEFECTS:
        defect = DEFECTS[name]
        with tempfile.TemporaryDirectory(prefix="gdrcap-mutant-") as directory:
            os.chmod(directory, 0o755)
            why = run(build, make(build, defect, directory), defect.test)
        missed += why is None
        print("%-10s %-52s %-50s %s" % (name, defect.what, defect.test, why or "NOT SEEN"),
              flush=True)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
