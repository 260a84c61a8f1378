#!/usr/bin/env python3
"""Holds a frozen tree to the tree it was made of: frozen.py BEFORE AFTER MANIFEST [--quick]

Reads both trees with a reader of its own (Python's html.parser, regular expressions for CSS and JavaScript) and checks
that

- every reference that met a file before meets the same file after, under the name that the manifest says;
- a file without the hashes in it is byte for byte what it was;
- sizes and hashes of the manifest are those on the disk, and compressed copies unpack to their originals
  (zstd and brotli only where their commands are installed, and not with --quick);
- the frozen tree has no file that the manifest does not know.
"""
import gzip
import hashlib
import html.parser
import json
import os
import re
import shutil
import subprocess
import sys
import urllib.parse

before, after, manifest_path = sys.argv[1:4]
with open(manifest_path, encoding="utf-8") as file:
    manifest = json.load(file)["files"]
failures = []


def fail(text):
    failures.append(text)


class Page(html.parser.HTMLParser):
    """The references of a page, in order."""

    SINGLE = {"href", "src", "poster", "background", "xlink:href"}

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.found = []
        self.base = ""
        self.raw = None

    def handle_starttag(self, tag, attrs):
        if tag in ("style", "script"):
            self.raw = tag
        for name, value in attrs:
            if not value:
                continue
            if tag == "base" and name == "href":
                self.base = value
            elif name in self.SINGLE or (tag == "object" and name == "data"):
                self.found.append((self.base, value))
            elif name in ("srcset", "imagesrcset"):
                for candidate in re.findall(r"[^\s,]\S*[^\s,](?:\s+[\d.]+[wxh])?", value):
                    self.found.append((self.base, candidate.split()[0]))
            elif name == "style":
                self.found += [(self.base, url) for url in css(value)]

    handle_startendtag = handle_starttag

    def handle_endtag(self, tag):
        self.raw = None

    def handle_data(self, data):
        if self.raw == "style":
            self.found += [(self.base, url) for url in css(data)]


def css(text):
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    found = re.findall(r"""url\(\s*(?:"([^"]*)"|'([^']*)'|([^"')\s]+))\s*\)|@import\s+(?:"([^"]*)"|'([^']*)')""", text)
    return [next((part for part in parts if part), "") for parts in found]


def js(text):
    found = re.findall(r"""\b(?:import|from)\s*\(?\s*["'](\.{0,2}/[^"']*)["']""", text)
    return found + re.findall(r"""new URL\(\s*["']([^"']*)["']\s*,\s*import\.meta\.url""", text)


def references(path, data):
    text = data.decode("utf-8", "surrogateescape")
    end = path.rsplit(".", 1)[-1].lower()
    if end in ("html", "htm", "xhtml", "svg"):
        page = Page()
        page.feed(text)
        page.close()
        return page.found
    if end == "css":
        return [("", url) for url in css(text)]
    if end in ("js", "mjs"):
        return [("", url) for url in js(text)]
    return []


def resolve(path, base, url):
    """A path in the tree; None for what is out of it."""
    root = "http://tree.invalid/"
    own = root + urllib.parse.quote(path)
    try:
        whole = urllib.parse.urljoin(urllib.parse.urljoin(own, base), url.strip().replace("\\", "/"))
        parts = urllib.parse.urlsplit(whole)
    except ValueError:
        return None
    if parts.netloc != "tree.invalid" or parts.scheme != "http":
        return None
    return urllib.parse.unquote(parts.path.lstrip("/"))


count = met = 0
known = set()
hashes = set()
for path, entry in manifest.items():
    known.add(entry["path"])
    known.update(entry["path"] + "." + coding for coding in entry.get("encodings", {}))
    if path != entry["path"]:
        hashes.add(re.search(r"\.([0-9a-f]{12})(?:\.[^./]*)?$", entry["path"]).group(1).encode())
strip = re.compile(rb"\.(?:" + b"|".join(sorted(hashes)) + rb")(?![0-9a-f])") if hashes else None

for path, entry in manifest.items():
    with open(os.path.join(before, path), "rb") as file:
        old = file.read()
    place = os.path.join(after, entry["path"])
    with open(place, "rb") as file:
        new = file.read()
    if len(new) != entry["size"] or hashlib.sha256(new).hexdigest() != entry["hash"]:
        fail(f"{path}: not as the manifest says")
    for coding, sibling in entry.get("encodings", {}).items():
        with open(f"{place}.{coding}", "rb") as file:
            packed = file.read()
        if len(packed) != sibling["size"] or hashlib.sha256(packed).hexdigest() != sibling["hash"]:
            fail(f"{path}.{coding}: not as the manifest says")
        if coding == "gz":
            unpacked = gzip.decompress(packed)
        else:
            tool = {"br": "brotli", "zst": "zstd"}[coding]
            if not shutil.which(tool) or "--quick" in sys.argv:
                continue
            unpacked = subprocess.run([tool, "-dc"], input=packed, stdout=subprocess.PIPE, check=True).stdout
        if unpacked != new:
            fail(f"{path}.{coding}: unpacks to something else")
    bare = strip.sub(b"", new) if strip and new != old else new
    if bare != old and b"integrity" not in old:
        fail(f"{path}: has changed in more than hashes")
    was, now = references(path, old), references(path, new)
    if len(was) != len(now):
        fail(f"{path}: {len(was)} references before, {len(now)} after")
    for (base, url), (new_base, new_url) in zip(was, now):
        target = resolve(path, base, url)
        if target is None:
            continue
        count += 1
        if os.path.isfile(os.path.join(before, target)):
            met += 1
            found = resolve(entry["path"], new_base, new_url)
            meant = manifest.get(target, {}).get("path")
            if found != meant or not os.path.isfile(os.path.join(after, found)):
                fail(f"{path}: {url} met {target} and is {new_url} now, which should be {meant}")
        elif os.path.isdir(os.path.join(before, target)) and not os.path.isdir(os.path.join(after, target)):
            fail(f"{path}: {url} met a directory")

for directory, _, names in os.walk(after):
    for name in names:
        path = os.path.relpath(os.path.join(directory, name), after)
        if path not in known:
            fail(f"{path}: the manifest does not know it")

print(f"{len(manifest)} files, {count} references in the tree, {met} of them to files, {len(failures)} failures")
for text in failures[:50]:
    print(text)
sys.exit(1 if failures else 0)
