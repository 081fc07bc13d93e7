# SPDX-License-Identifier: BSD-3-Clause
"""Every profile in config/ is accepted; those that this machine can run, run. One that names a
ConnectX runs on software ones."""
import os
import pathlib
import re
import subprocess
import tempfile

import e2e
import frames

PROFILES = sorted((e2e.ROOT / "config").glob("*.yaml"))


def interfaces(text):
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    return re.findall(r"iface=([\w.-]+)", "\n".join(lines))


def needs(text):
    """Skips what this machine cannot have, and says so."""
    if re.search(r"^gpu:\s*[\"']?\d", text, re.M) or re.search(r"^memory:\s*device", text, re.M):
        if subprocess.run(["sh", "-c", "command -v nvidia-smi && nvidia-smi -L"],
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode:
            raise e2e.Skip("it asks for a CUDA GPU")


def run_file(path, arguments):
    """A profile that reads frames.pcap from the current directory: gets one."""
    sizes = [64 + 97 * i % 1455 for i in range(200)]
    source = frames.Stream(0, frames.prbs31(sum(sizes)))
    with e2e.Folder() as directory:
        frames.write_pcap(pathlib.Path(directory, "frames.pcap"),
                          [source.frame(size) for size in sizes])
        e2e.check_perfect(e2e.run_json(*arguments, "--frames", "200", cwd=directory), 200)


def run_veth(arguments, names):
    with e2e.VethPair(*names):
        result = e2e.run(*arguments, "--json", expect=None)
    if result.status == 1 and "net_af_xdp" in str(result) and not result.summary["frames"]:
        raise e2e.Skip("no AF_XDP on this kernel: %s" % result.summary["errors"])
    summary = result.summary
    assert result.status in (0, 3), result
    e2e.check_identities(summary)
    assert summary["frames"]["valid"] > 0, summary
    # The kernel may drop frames; it must not change them.
    for key in ("damaged", "duplicate", "reordered"):
        assert summary["frames"][key] == 0, summary


def pci_ports(text):
    """The lines that name a PCI card."""
    return [line for line in text.splitlines()
            if not line.lstrip().startswith("#") and
            re.search(r"\b[0-9a-f]{4}:[0-9a-f]{2}:", line)]


def run_connectx(arguments, text):
    """With the software cards in place of those that the profile names, and without its GPU; slower
    than it says, for a machine that is its own card."""
    if not os.environ.get("SOFTMLX5"):
        raise e2e.Skip("it names a PCI card: %s" % pci_ports(text)[0].strip())
    e2e.check_perfect(e2e.run_json(
        *arguments, "--port", "0000:aa:00.1", "--tx-port", "0000:aa:00.0", "--gpu", "host",
        "--guard", "--pool", "64M", "--rate", "100mbit", "--frames", "5000",
        env=dict(os.environ, LD_PRELOAD=os.environ["SOFTMLX5"])), 5000)


def explain_images(path):
    """A layout of images, for any port: what it comes to is the same again."""
    first = e2e.run("capture", "--image", str(path), "--explain-image")
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(first.out)
        file.flush()
        again = e2e.run("capture", "--config", file.name, "--explain-image")
    assert first.out == again.out, (first.out, again.out)
    assert "  bytes: " in first.out, first.out


def run_profile(path):
    text = path.read_text()
    if path.stem.startswith("image-"):
        return explain_images(path)
    needs(text)
    names = interfaces(text)
    receives_only = not re.search(r"^tx_port:", text, re.M)
    arguments = ["capture" if receives_only else "loopback", "--config", str(path), "--quiet"]
    if pci_ports(text):
        run_connectx(arguments, text)
    elif "rx_pcap=frames.pcap" in text:
        run_file(path, arguments)
    elif names and (receives_only or len(names) != 2):
        raise e2e.Skip("its interfaces %s are the user's" % ", ".join(names))
    elif names:
        run_veth(arguments + ["--frames", "20000"], names)
    else:
        e2e.check_perfect(e2e.run_json(*arguments, "--frames", "20000"), 20000)


def add(path):
    def test():
        run_profile(path)
    globals()["test_" + path.stem.replace("-", "_")] = test


for profile in PROFILES:
    add(profile)


def test_there_are_profiles():
    assert PROFILES, "config/ holds no profile"
