# SPDX-License-Identifier: BSD-3-Clause
"""scripts/dpdk-archives.sh, with a distribution played by two scripts: it takes the package of dpdk.wrap's release, once,
and fails with a reason, leaving nothing, where it cannot have that one.

usage: check_dpdk_archives.py dpdk-archives.sh
"""
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

WRAP = "[wrap-file]\ndirectory = dpdk-stable-22.11.11\n"
APT_CACHE = """#!/bin/sh
case $1 in
madison) cat %(root)s/madison ;;
show) printf 'Package: libdpdk-dev\\nSHA256: '; cat %(root)s/hash; echo ;;
esac
"""
APT_GET = """#!/bin/sh
for package; do :; done
echo "$package" >>%(root)s/fetched
test -f %(root)s/package.deb && cp %(root)s/package.deb libdpdk-dev_of_a_mirror.deb
"""


class Distribution:
    def __init__(self, root, script):
        self.root = root
        for folder in ("bin", "scripts", "subprojects"):
            (root / folder).mkdir()
        (root / "subprojects" / "dpdk.wrap").write_text(WRAP)
        self.script = shutil.copy(script, root / "scripts")
        for name, text in (("apt-cache", APT_CACHE), ("apt-get", APT_GET)):
            (root / "bin" / name).write_text(text % {"root": root})
            (root / "bin" / name).chmod(0o755)
        files = root / "package"
        libraries = files / "usr/lib/some-triplet"
        config = files / "usr/include/some-triplet/dpdk"
        for folder in (libraries, config, files / "DEBIAN"):
            folder.mkdir(parents=True)
        (libraries / "librte_eal.a").write_text("archive")
        (libraries / "librte_eal.so").write_text("shared")
        (config / "rte_build_config.h").write_text("#define RTE_ARCH 1\n")
        (files / "DEBIAN/control").write_text("Package: libdpdk-dev\nVersion: 22.11.11-0+deb12u1\nArchitecture: all\n"
                                              "Maintainer: n <n@example.com>\nDescription: played\n")
        self.package = root / "package.deb"
        subprocess.run(["dpkg-deb", "--build", "--root-owner-group", files, self.package], check=True, stdout=subprocess.DEVNULL)
        self.offers("22.11.11-0+deb12u1")
        self.signed(self.package.read_bytes())

    def offers(self, *versions):
        (self.root / "madison").write_text("".join(
            " libdpdk-dev | %s | http://example.com/debian some/main amd64 Packages\n" % version for version in versions))

    def signed(self, data):
        (self.root / "hash").write_text(hashlib.sha256(data).hexdigest())

    def fetched(self):
        """Versions that were asked for since the last call."""
        file = self.root / "fetched"
        lines = file.read_text().split() if file.exists() else []
        file.unlink(missing_ok=True)
        return lines

    def run(self, right):
        folder = self.root / "archives"
        shutil.rmtree(folder, ignore_errors=True)
        environment = dict(os.environ, PATH="%s:%s" % (self.root / "bin", os.environ["PATH"]))
        run = subprocess.run([self.script, folder], env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert (run.returncode == 0) == right, run
        assert folder.exists() == right, run
        left = {file.name for file in (self.root / "subprojects" / "packagecache").glob("*")}
        assert left <= {"libdpdk-dev_22.11.11-0+deb12u1_%s.deb" % ARCHITECTURE}, left
        if right:
            assert {file.name for file in folder.iterdir()} == {"librte_eal.a", "rte_build_config.h"}
        else:
            assert run.stdout.endswith(": compiling DPDK\n"), run
            assert not left, left
        return run.stdout


def check(root, script):
    distribution = Distribution(root, script)
    wanted = ["libdpdk-dev=22.11.11-0+deb12u1"]

    # Other releases, older and newer, and one that only begins alike.
    for versions in ((), ("22.11.7-1~deb12u1",), ("22.11.110-1", "24.11.1-1", "2:22.11.11-1")):
        distribution.offers(*versions)
        assert "no libdpdk-dev 22.11.11" in distribution.run(False)
        assert distribution.fetched() == []
    # Two of the same release: the newer one, which is named first.
    distribution.offers("24.11.1-1", "22.11.11-0+deb12u1", "22.11.11-0", "22.11.7-1~deb12u1")

    data = distribution.package.read_bytes()
    distribution.package.unlink()
    assert "could not fetch" in distribution.run(False)
    distribution.package.write_bytes(data[:-1])
    assert "wrong SHA-256" in distribution.run(False)
    (root / "hash").write_text("")
    distribution.package.write_bytes(data)
    assert "wrong SHA-256" in distribution.run(False)
    assert distribution.fetched() == 3 * wanted

    distribution.signed(data)
    distribution.run(True)
    distribution.run(True)
    assert distribution.fetched() == wanted, "fetched again"
    # What lies here is looked at each time.
    kept = next((root / "subprojects" / "packagecache").iterdir())
    kept.write_bytes(data[:-1])
    distribution.run(True)
    assert distribution.fetched() == wanted, "a damaged one was taken"


if __name__ == "__main__":
    if not shutil.which("dpkg-deb"):
        print("this is not Debian or Ubuntu: there is no dpkg-deb")
        sys.exit(77)
    ARCHITECTURE = subprocess.run(["dpkg", "--print-architecture"], check=True, capture_output=True, text=True).stdout.strip()
    with tempfile.TemporaryDirectory() as scratch:
        check(pathlib.Path(scratch), os.path.abspath(sys.argv[1]))
