#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A software bill of materials, SPDX 2.3 in JSON: what is linked into gdrcap's program or library, and what it needs.

usage: sbom.py [--sources] FILE... >gdrcap.spdx.json      --sources: the tree's files too, as reuse(1) sees them

Of FILE itself: gdrcap, DPDK and the CUDA Runtime, in the versions that its own text of gdrcap_version() names; of the shared
libraries that it is linked with, and of those that these need, the packages of this machine (dpkg). The same FILE on the same
machine gives the same text; the time is SOURCE_DATE_EPOCH, else the commit's.
"""
import functools
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time
import urllib.parse
import uuid

ROOT = pathlib.Path(__file__).resolve().parent.parent
WRAP = ROOT / "subprojects" / "dpdk.wrap"
VERSION = re.compile(rb"gdrcap (\d[\w.]*) \(DPDK ([\w.]+), (?:CUDA Runtime ([\w.]+)|built without CUDA)\)")
ARCHITECTURES = {"Advanced Micro Devices X86-64": "amd64", "AArch64": "arm64"}
TRIPLETS = {"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}
OPENED = ("libcuda.so.1", "libgdrapi.so.2", "libnvidia-ml.so.1")
NONE = "NOASSERTION"
LARGEST = 1 << 30  # bytes of a program or library, which is read whole


def output(*command, **options):
    return subprocess.run(command, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, **options).stdout


@functools.lru_cache(maxsize=None)
def elf(path):
    """Its architecture, as dpkg names it, and the libraries that it is linked with."""
    try:
        said = output("readelf", "--wide", "--file-header", "--dynamic", path, stderr=subprocess.DEVNULL,
                      env={**os.environ, "LC_ALL": "C"})
    except FileNotFoundError:
        sys.exit("sbom: readelf is not installed: sudo apt-get install binutils")
    machine = re.search(r"^ *Machine: *(.*)$", said, re.M)
    if not machine:
        sys.exit("sbom: %s is no program and no shared library" % path)
    return ARCHITECTURES.get(machine.group(1)), re.findall(r"\(NEEDED\).*\[(.*)\]", said)


def find_libraries(names, architecture):
    """By name, those and all that they need in turn: where each lies on this machine, or None, and what it is linked with."""
    triplet = TRIPLETS.get(architecture, "")
    folders = ["/usr/local/lib", "/usr/lib/" + triplet, "/lib/" + triplet, "/usr/lib64", "/lib64", "/usr/lib", "/lib"]
    found = {}
    todo = set(names)
    while todo:
        for name in sorted(todo):
            paths = (os.path.join(folder, name) for folder in folders)
            path = next((path for path in paths if os.path.exists(path) and elf(path)[0] == architecture), None)
            found[name] = (path, elf(path)[1] if path else [])
        todo = {needed for name in todo for needed in found[name][1]} - found.keys()
    return found


def packages_of(libraries):
    """The entry of each library's package; of what no package of dpkg's has, the library's."""
    entries = {name: package(name, NONE) for name in libraries}
    # With /lib a link to /usr/lib, a package may have it by either path.
    paths = {}
    for name, (path, _) in libraries.items():
        if path:
            paths[path] = paths[path.removeprefix("/usr") if path.startswith("/usr/") else "/usr" + path] = name
    if not paths:
        return entries
    try:
        listed = output("dpkg-query", "--search", *sorted(paths), stderr=subprocess.DEVNULL)
    except FileNotFoundError:
        return entries
    keys = {}
    for line in sorted(listed.splitlines()):
        key, _, path = line.partition(": ")
        if path in paths:
            keys[paths[path]] = key
    of_keys = debian_packages(set(keys.values()))
    entries.update((name, of_keys[key]) for name, key in keys.items())
    return entries


def licences(name):
    """What Debian's file about it says, of all of the source package."""
    try:
        text = pathlib.Path("/usr/share/doc", name, "copyright").read_text(errors="replace")
    except OSError:
        return []
    return sorted(set(re.findall(r"^License: *(\S.*)$", text, re.M))) if text.startswith("Format:") else []


def identifier(*words):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.]", "-", "-".join(words))


def package(name, version, **more):
    return {"SPDXID": identifier("Package", name), "name": name, "versionInfo": version, "downloadLocation": NONE,
            "filesAnalyzed": False, "licenseConcluded": NONE, "licenseDeclared": NONE, "copyrightText": NONE, **more}


def purl(text):
    return {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": text}


def debian_packages(keys):
    """By key, which is dpkg's name and architecture."""
    about = dict(re.findall(r'^(\w+)="?(.*?)"?$', pathlib.Path("/etc/os-release").read_text(), re.M))
    vendor = about.get("ID", "debian")
    entries = {}
    if not keys:
        return entries
    shown = output("dpkg-query", "--show", "--showformat", "${binary:Package}\t${Package}\t${Version}\t${Architecture}\t"
                   "${source:Package} ${source:Version}\t${Maintainer}\n", *sorted(keys), check=True)
    for line in shown.splitlines():
        key, name, version, architecture, source, maintainer = line.split("\t")
        locator = "pkg:deb/%s/%s@%s?arch=%s&distro=%s-%s" % (vendor, urllib.parse.quote(name), urllib.parse.quote(version),
                                                         architecture, vendor, about.get("VERSION_ID", "sid"))
        more = {"supplier": "Organization: " + maintainer.replace("<", "(").replace(">", ")"),
                "primaryPackagePurpose": "LIBRARY", "externalRefs": [purl(locator)], "sourceInfo": "source package " + source}
        if licences(name):
            more["licenseComments"] = "debian/copyright of the source package has: " + "; ".join(licences(name))
        entries[key] = package(name, version, **more)
    return entries


def dpdk(version):
    """Only of the version that the tree names is it known where it came from."""
    wrap = dict(re.findall(r"^(\w+) *= *(.*)$", WRAP.read_text(), re.M))
    more = {"licenseDeclared": "BSD-3-Clause", "supplier": "Organization: DPDK Project", "primaryPackagePurpose": "LIBRARY",
            "externalRefs": [purl("pkg:generic/dpdk@" + version), {
                "referenceCategory": "SECURITY", "referenceType": "cpe23Type",
                "referenceLocator": "cpe:2.3:a:dpdk:data_plane_development_kit:%s:*:*:*:*:*:*:*" % version}]}
    if wrap["source_filename"] == "dpdk-%s.tar.xz" % version:
        more.update(downloadLocation=wrap["source_url"], packageFileName=wrap["source_filename"],
                    checksums=[{"algorithm": "SHA256", "checksumValue": wrap["source_hash"]}])
    return package("dpdk", version, **more)


class Document:
    def __init__(self):
        self.packages, self.relationships, self.files = {}, [], []

    def add(self, entry):
        return self.packages.setdefault(entry["SPDXID"], entry)["SPDXID"]

    def relate(self, left, how, right, comment=None):
        entry = {"spdxElementId": left, "relationshipType": how, "relatedSpdxElement": right}
        if comment:
            entry["comment"] = comment
        if entry not in self.relationships:
            self.relationships.append(entry)

    def add_libraries(self, user, names, architecture):
        """What USER is linked with, and what that is linked with."""
        libraries = find_libraries(names, architecture)
        entries = packages_of(libraries)
        for name in names:
            self.relate(user, "DYNAMIC_LINK", self.add(entries[name]), name)
        for name, (_, needs) in sorted(libraries.items()):
            for needed in needs:
                left, right = self.add(entries[name]), self.add(entries[needed])
                if left != right:
                    self.relate(left, "DYNAMIC_LINK", right, needed)

    def add_built(self, path):
        try:
            if not path.is_file() or path.stat().st_size > LARGEST:
                sys.exit("sbom: %s is no file of at most %d MiB" % (path, LARGEST >> 20))
            contents = path.read_bytes()
        except OSError as error:
            sys.exit("sbom: %s cannot be read: %s" % (path, error.strerror))
        versions = VERSION.search(contents)
        if not versions:
            sys.exit("sbom: %s is not gdrcap's program and not its library: it does not name its version" % path)
        own, dpdk_version, cuda_version = (text.decode() if text else None for text in versions.groups())
        architecture, needed = elf(path)
        built = self.add(package(path.name, own, licenseDeclared="BSD-3-Clause", packageFileName=path.name,
                                 supplier="Organization: The gdrcap authors", copyrightText="2026 The gdrcap authors",
                                 primaryPackagePurpose="LIBRARY" if ".so" in path.name else "APPLICATION",
                                 checksums=[{"algorithm": "SHA256", "checksumValue": hashlib.sha256(contents).hexdigest()}]))
        self.relate("SPDXRef-DOCUMENT", "DESCRIBES", built)
        self.relate(built, "STATIC_LINK", self.add(dpdk(dpdk_version)))
        if cuda_version:
            cuda = package("cuda-cudart", cuda_version, supplier="Organization: NVIDIA Corporation",
                           primaryPackagePurpose="LIBRARY", licenseComments="NVIDIA CUDA Toolkit End User License Agreement")
            self.relate(built, "STATIC_LINK", self.add(cuda))
        self.add_libraries(built, needed, architecture)
        for name in OPENED:
            if name.encode() + b"\0" in contents:
                self.relate(self.add(package(name, NONE)), "OPTIONAL_DEPENDENCY_OF", built, "opened where it is installed")
        return built

    def add_sources(self, users):
        """The tree's files, from the tag-value text of reuse."""
        try:
            said = output("reuse", "--root", str(ROOT), "spdx", check=True, stderr=subprocess.DEVNULL)
        except FileNotFoundError:
            sys.exit("sbom: --sources needs reuse: sudo apt-get install reuse")
        for part in re.split(r"^(?=FileName: )", said, flags=re.M)[1:]:
            tags = dict(reversed(re.findall(r"^(\w+): (?:<text>)?(.*?)(?:</text>)?$", part, re.M)))
            found = sorted(set(re.findall(r"^LicenseInfoInFile: (.*)$", part, re.M)))
            name = tags["FileName"]
            entry = {"SPDXID": "SPDXRef-File-" + hashlib.sha1(name.encode()).hexdigest(), "fileName": name,
                     "checksums": [{"algorithm": "SHA1", "checksumValue": tags["FileChecksum"].partition(" ")[2]}],
                     "licenseConcluded": NONE, "licenseInfoInFiles": found or [NONE],
                     "copyrightText": tags.get("FileCopyrightText", NONE)}
            self.files.append(entry)
            for user in users:
                self.relate(user, "GENERATED_FROM", entry["SPDXID"])

    def text(self, created):
        document = {
            "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": "gdrcap",
            "creationInfo": {"created": created, "creators": ["Organization: The gdrcap authors", "Tool: gdrcap-sbom.py"]},
            "packages": sorted(self.packages.values(), key=lambda entry: entry["SPDXID"]),
            "relationships": self.relationships}
        if self.files:
            document["files"] = sorted(self.files, key=lambda entry: entry["fileName"])
        # A name of its own for each document that differs, which the same one gets again.
        unique = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(document, sort_keys=True))
        document["documentNamespace"] = "https://gdrcap.invalid/spdx/gdrcap-%s" % unique
        return json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False)


def created():
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    if not epoch:
        try:
            epoch = output("git", "-C", str(ROOT), "log", "-1", "--format=%ct", stderr=subprocess.DEVNULL)
        except FileNotFoundError:
            epoch = ""
    try:
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(epoch.strip() or time.time())))
    except (ValueError, OverflowError, OSError):
        sys.exit("sbom: SOURCE_DATE_EPOCH is %r, and not seconds since 1970" % epoch)


def main(arguments):
    names = [word for word in arguments if word != "--sources"]
    if {"--help", "-h"} & set(names):
        print(__doc__)
        return
    if not names or names[0].startswith("-"):
        print(__doc__.split("\n\n")[1], file=sys.stderr)
        sys.exit(2)
    document = Document()
    built = [document.add_built(pathlib.Path(name)) for name in names]
    if "--sources" in arguments:
        document.add_sources(built)
    print(document.text(created()))


if __name__ == "__main__":
    main(sys.argv[1:])
