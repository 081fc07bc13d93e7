# SPDX-License-Identifier: BSD-3-Clause
"""Relative links of the pages: what they lead to is there, headings too. Pages for users (docs/, README.md, python/README.md) lead
to nothing below tests/, which is with the source only.
Usage: check_links.py ROOT
"""
import pathlib
import re
import sys

LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)")


def anchors(page):
    """As GitHub names headings."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)
    titles = re.findall(r"^#+ (.*)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", title)).strip().lower().replace(" ", "-")
            for title in titles}


def wrong(root, page):
    for target, anchor in LINK.findall(page.read_text()):
        if re.match(r"[a-z]+:", target):
            continue
        path = (page.parent / target).resolve() if target else page
        if not path.exists():
            yield "%s is not there" % target
        elif root / "tests" in path.parents and not page.is_relative_to(root / "tests"):
            yield "%s is not with what is installed" % target
        elif anchor and path.suffix == ".md" and anchor not in anchors(path):
            yield "%s has no heading #%s" % (path.name, anchor)


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    pages = [page for folder in ("docs", "python", "tests", "examples") for page in sorted((root / folder).rglob("*.md"))]
    pages += [root / "README.md", root / "CONTRIBUTING.md"]
    found = ["%s: %s" % (page.relative_to(root), text) for page in pages for text in wrong(root, page)]
    print("\n".join(found) or "%d pages, each link leads somewhere" % len(pages))
    sys.exit(bool(found))


main()
