# SPDX-License-Identifier: BSD-3-Clause
"""The software bill of materials: each library that FILE is linked with is in it, with DPDK and CUDA as FILE names them.

usage: check_sbom.py SBOM.py DPDK_WRAP FILE...
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

ENVIRONMENT = {**os.environ, "LC_ALL": "C", "SOURCE_DATE_EPOCH": "86400"}
REQUIRED = {"SPDXID", "name", "downloadLocation", "versionInfo", "filesAnalyzed", "licenseConcluded", "licenseDeclared"}


def output(*command):
    return subprocess.run(command, text=True, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          env=ENVIRONMENT).stdout


def check_schema(document):
    """What SPDX 2.3 asks of any document: all that it must have, names that are there once, and references to them."""
    assert document["spdxVersion"] == "SPDX-2.3" and document["dataLicense"] == "CC0-1.0", document["spdxVersion"]
    assert document["creationInfo"]["created"] == "1970-01-02T00:00:00Z" and document["creationInfo"]["creators"]
    assert re.fullmatch(r"https://[^#\s]+", document["documentNamespace"]), document["documentNamespace"]
    names = [document["SPDXID"]] + [entry["SPDXID"] for entry in document["packages"]]
    assert len(names) == len(set(names)), names
    assert all(re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", name) for name in names), names
    for entry in document["packages"]:
        assert REQUIRED <= entry.keys() and entry["versionInfo"], entry
        for reference in entry.get("externalRefs", []):
            assert reference.keys() == {"referenceCategory", "referenceType", "referenceLocator"}, entry
    for relationship in document["relationships"]:
        assert relationship["spdxElementId"] in names and relationship["relatedSpdxElement"] in names, relationship


def related(document, left, how):
    """By comment, the packages that LEFT has to do with."""
    packages = {entry["SPDXID"]: entry for entry in document["packages"]}
    return [(entry.get("comment"), packages[entry["relatedSpdxElement"]]) for entry in document["relationships"]
            if entry["spdxElementId"] == left and entry["relationshipType"] == how]


def check_built(document, path, entry, wrap):
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-dW", str(path)))
    linked = related(document, entry["SPDXID"], "DYNAMIC_LINK")
    assert needed and sorted(needed) == sorted(comment for comment, _ in linked), (needed, linked)
    own, dpdk, cuda = re.search(rb"gdrcap (\S+) \(DPDK (\S+), (?:CUDA Runtime (\S+)|built without CUDA)\)",
                                path.read_bytes()).groups()
    inside = {package["name"]: package for _, package in related(document, entry["SPDXID"], "STATIC_LINK")}
    assert entry["versionInfo"] == own.decode() and inside["dpdk"]["versionInfo"] == dpdk.decode(), (entry, inside)
    assert ("cuda-cudart" in inside) == (cuda is not None), inside
    if wrap["source_filename"] == "dpdk-%s.tar.xz" % dpdk.decode():
        assert inside["dpdk"]["checksums"][0]["checksumValue"] == wrap["source_hash"], inside["dpdk"]
    if pathlib.Path("/var/lib/dpkg/status").exists():
        [libc] = {package["name"]: package for comment, package in linked if comment == "libc.so.6"}.values()
        assert libc["name"].startswith("libc6") and libc["externalRefs"][0]["referenceLocator"].startswith("pkg:deb/"), libc


def main(sbom, wrap, *files):
    if not shutil.which("readelf"):
        print("readelf is not installed (Debian's package binutils)")
        return 77
    wrap = dict(re.findall(r"^(\w+) *= *(.*)$", pathlib.Path(wrap).read_text(), re.M))
    text = output(sys.executable, sbom, *files)
    assert output(sys.executable, sbom, *files) == text, "a second time it is another one"
    document = json.loads(text)
    check_schema(document)
    described = {package["name"]: package for _, package in related(document, "SPDXRef-DOCUMENT", "DESCRIBES")}
    assert described.keys() == {os.path.basename(file) for file in files}, described.keys()
    for file in files:
        check_built(document, pathlib.Path(file), described[os.path.basename(file)], wrap)
    # What is none of gdrcap's says so.
    refused = subprocess.run([sys.executable, sbom, sys.executable], text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
    assert refused.returncode == 1 and not refused.stdout and "does not name its version" in refused.stderr, refused
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
