# SPDX-License-Identifier: BSD-3-Clause
"""deploy/image: the image is made, is small, and what it starts runs in it as its ordinary user, on a root that is read only."""
import atexit
import functools
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile

import pytest

import e2e
import processes

pytestmark = pytest.mark.long

BUILD = e2e.ROOT / "deploy" / "image" / "build.sh"
MAX_BYTES = 150_000_000
NO_MIRROR = re.compile("Could not resolve|Could not connect|Failed to fetch|Temporary failure|apt-get update failed", re.I)
# As a container's runtime does: file systems, then the user's rights and no way to more.
START = """
set -eu
root=$1 user=$2
shift 2
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
mount -t tmpfs -o mode=1777,size=16m tmpfs "$root/tmp"
mount -o remount,bind,ro "$root"
exec setpriv --no-new-privs chroot --groups= --userspec="$user" "$root" /usr/bin/env -i "$@"
"""
# By podman, as root without the right to raise limits, and where cgroups are mixed, which crun refuses. It asks for one only
# to limit what is in it.
PODMAN = """
set -eu
storage=$1
shift
if test "$(stat -f -c %T /sys/fs/cgroup)" != cgroup2fs; then
	umount -R /sys/fs/cgroup
	mount -t cgroup2 cgroup2 /sys/fs/cgroup
fi
exec podman --root "$storage/root" --runroot "$storage/run" --tmpdir "$storage/tmp" --storage-driver vfs \\
	--cgroup-manager cgroupfs --events-backend none run --rm --read-only --tmpfs /tmp --network none \\
	--cgroups disabled --ulimit nofile=1024:1024 --ulimit nproc=1024:1024 "$@"
"""


def run(command, **options):
    """Its exit status, standard output and standard error."""
    process = subprocess.Popen(list(map(str, command)), text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, start_new_session=True, **options)
    try:
        out, err = process.communicate(timeout=e2e.TIMEOUT)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGTERM)
        process.communicate()
        raise
    return process.returncode, out, err


def build(program, folder):
    with e2e.Folder() as installed:
        place = pathlib.Path(installed) / "usr" / "bin"
        place.mkdir(parents=True)
        shutil.copy(program, place / "gdrcap")
        try:
            status, out, err = run([BUILD, installed, folder])
        except subprocess.TimeoutExpired:
            raise e2e.Skip("Debian's packages did not come in %d s" % e2e.TIMEOUT)
    if status and NO_MIRROR.search(err):
        raise e2e.Skip("Debian's mirror cannot be reached: %s" % err.strip().splitlines()[-1])
    assert status == 0, out + err


class Image:
    """The layout that build.sh left, and its files unpacked."""

    def __init__(self, folder):
        self.layout = folder / "gdrcap"
        [entry] = json.loads((self.layout / "index.json").read_text())["manifests"]
        self.tag = entry["annotations"]["org.opencontainers.image.ref.name"]
        self.manifest = self.blob(entry["digest"])
        self.config = self.blob(self.manifest["config"]["digest"])["config"]
        self.root = folder / "bundle" / "rootfs"
        processes.output("umoci", "unpack", "--image", "%s:%s" % (self.layout, self.tag), str(self.root.parent))

    def blob(self, digest):
        return json.loads((self.layout / "blobs" / digest.replace(":", "/")).read_text())

    def start(self, *arguments):
        """Its entry point with these arguments."""
        return self.inside(*self.config["Entrypoint"], *arguments)

    def inside(self, *command):
        return run(["unshare", "--mount", "--pid", "--fork", "--net", "--ipc", "sh", "-c", START, "sh", self.root,
                    self.config["User"], *self.config["Env"], *command])

    def podman(self, *arguments):
        """Its entry point with these arguments, as podman starts it."""
        storage = self.layout.parent / "podman"
        return run(["unshare", "--mount", "sh", "-c", PODMAN, "sh", storage, "oci:%s:%s" % (self.layout, self.tag), *arguments])


def make():
    for name, package in (("mmdebstrap", "mmdebstrap"), ("umoci", "umoci"), ("dpkg-shlibdeps", "dpkg-dev")):
        processes.tool(name, package)
    if os.geteuid():
        raise e2e.Skip("file systems for the image's root need root")
    folder = tempfile.mkdtemp(prefix="gdrcap-image-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    build(e2e.PROGRAM, pathlib.Path(folder) / "out")
    return Image(pathlib.Path(folder) / "out")


@functools.lru_cache(maxsize=None)
def made_once():
    """The image, or why there is none: it takes a minute to know."""
    try:
        return make(), None
    except (e2e.Skip, AssertionError) as reason:
        return None, reason


def image():
    made, reason = made_once()
    if reason:
        raise reason
    return made


def version():
    return re.search(r'^#define GDRCAP_VERSION "(.*)"$', (e2e.ROOT / "lib/include/gdrcap.h").read_text(), re.M).group(1)


def test_config():
    made = image()
    assert made.tag == version() == made.config["Labels"]["org.opencontainers.image.version"], made.config
    assert made.config["Entrypoint"] == ["gdrcap"] and made.config["User"] == "65532:65532", made.config
    # Or each pod would see each GPU, whatever it asks for.
    assert not any(entry.startswith("NVIDIA_VISIBLE_DEVICES=") for entry in made.config["Env"]), made.config


def test_size():
    bytes_of = [layer["size"] for layer in image().manifest["layers"]]
    assert len(bytes_of) == 1 and 0 < bytes_of[0] <= MAX_BYTES, bytes_of


def test_files():
    """Nothing gives rights; each package is named, and its licence there."""
    root = image().root
    for path in root.rglob("*"):
        if path.is_file() and not path.is_symlink():
            assert not path.stat().st_mode & 0o6000, path
    packages = {path.name for path in (root / "var/lib/dpkg/status.d").iterdir()}
    assert {"libc6", "libibverbs1", "ibverbs-providers", "libmicrohttpd12"} <= packages, packages
    for name in packages | {"gdrcap"}:
        assert (root / "usr/share/doc" / name / "copyright").exists(), name
    bill = json.loads((root / "usr/share/doc/gdrcap/gdrcap.spdx.json").read_text())
    assert packages >= {entry["name"] for entry in bill["packages"] if "sourceInfo" in entry}, (packages, bill)


def check_loopback(start):
    status, out, err = start("loopback", "--frames", "100000", "--gpu", "host", "--json", "--quiet")
    assert status == 0, (status, out, err)
    summary = json.loads(out)
    e2e.check_summary(summary, err)
    e2e.check_perfect(summary, 100000)


def check_doctor(start):
    """It looks at the machine, and says what is missing; here that is a card, at least."""
    status, out, err = start("doctor", "--json")
    assert status in (0, 3), (status, out, err)
    said = json.loads(out)
    assert said["schema"].startswith("gdrcap.doctor/") and said["checks"], said


def test_loopback():
    check_loopback(image().start)


def test_doctor():
    check_doctor(image().start)


def test_podman():
    """The same by a container runtime, where it can start anything here."""
    processes.tool("podman", "podman")
    status, out, err = image().podman("--version")
    if status:
        raise e2e.Skip("podman starts nothing here: %s" % (err.strip().splitlines() or [status])[-1])
    assert out.startswith("gdrcap %s " % version()), out
    check_loopback(image().podman)
    check_doctor(image().podman)


def test_rank():
    """What deploy/machines/rank.sh runs beside gdrcap is there, and who runs it has no rights."""
    script = "for tool in mkdir mv sed sleep test uname; do command -v $tool; done; sed -n 's/^CapPrm:.//p' /proc/self/status"
    status, out, err = image().inside("sh", "-euc", script)
    assert status == 0 and len(out.split()) == 7, (status, out, err)
    assert out.split()[-1] == "0" * 16, out
    status, out, err = image().inside("sh", "-c", "echo > /etc/passwd")
    assert status != 0 and re.search("Read-only|Permission", err), (status, out, err)
