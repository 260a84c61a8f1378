#!/usr/bin/env python3
"""Converts country shapes of world-atlas into world.txt.

usage: npm install world-atlas@2.0.2; apt-get install iso-codes
       convert.py node_modules/world-atlas/countries-50m.json >world.txt

Input: TopoJSON of Natural Earth at 1:50 million (public domain). Its arcs are shared by neighbours, and they are
simplified before shapes are built, so borders stay without gaps. iso-codes gives the alpha-2 code of a numeric one.

Output: a line per country: code, x and y of its marker, area, path; separated by tabs. `-` is an absent path.
Lengths are quarters of a pixel of a map 1,000 pixels wide. The path has relative coordinates.

Projection: Equal Earth, with 11 degrees east in the middle, so the edge is in the Bering Strait and divides no
country.Areas are true to scale. Source: Savric, Patterson, Jenny, "The Equal Earth map projection" (2018), equations 9 and 10.

Codes: territories without a number in Natural Earth follow ISO 3166-1 (Northern Cyprus: CY, Somaliland: SO). Kosovo has
XK, as in databases of addresses. Parts of states with codes of their own are split off (`PARTS`). The Siachen Glacier,
which several states claim, and Antarctica are left out.
"""
import json
import math
import sys

# Pixels of the map, units of a pixel, and degrees of longitude in the middle.
WIDTH, UNITS, MIDDLE = 1000, 4, 11
# Triangles below this area (pixels^2) lose their middle point; islands below it are left out, except the largest.
TRIANGLE, ISLAND = 0.20, 0.35

BY_NAME = {"N. Cyprus": "CY", "Somaliland": "SO", "Kosovo": "XK"}
# Shapes of several codes: name of the shape, code, west, south, east, north.
PARTS = [
    ("France", "GF", -55, 2, -51, 6),
    ("France", "GP", -62, 15.8, -60.9, 16.6),
    ("France", "MQ", -61.3, 14.3, -60.7, 15),
    ("France", "YT", 44.9, -13.1, 45.4, -12.5),
    ("France", "RE", 55, -21.5, 56, -20.7),
    ("Norway", "SJ", 10, 74, 35, 81),
    ("Netherlands", "BQ", -69, 11, -62, 18),
    ("Indian Ocean Ter.", "CX", 105, -11, 106, -10),
    ("Indian Ocean Ter.", "CC", 96, -13, 97, -11),
]
# Countries without a shape at this scale: longitude and latitude.
POINTS = [("BV", 3.4, -54.4), ("GI", -5.35, 36.14), ("TK", -171.8, -9.2), ("TV", 179.2, -8.5), ("UM", 166.6, 19.3)]


def project(lon, lat):
    """Equal Earth with `lon` from the middle of the map; radians, x to the east and y to the south."""
    a1, a2, a3, a4 = 1.340264, -0.081106, 0.000893, 0.003796
    t = math.asin(math.sqrt(3) / 2 * math.sin(math.radians(lat)))
    x = 2 * math.sqrt(3) * math.radians(lon) * math.cos(t)
    x /= 3 * (9 * a4 * t**8 + 7 * a3 * t**6 + 3 * a2 * t**2 + a1)
    return x, -(a4 * t**9 + a3 * t**7 + a2 * t**3 + a1 * t)


SCALE = WIDTH / 2 / project(180, 0)[0]
TOP = project(0, 83.7)[1]


def pixels(line):
    """Projects a line in degrees. One that crosses the edge of the map leaves the map, at the side of its first point."""
    first = (line[0][0] - MIDDLE + 180) % 360 - 180
    found = []
    for lon, lat in line:
        x, y = project(first + (lon - MIDDLE - first + 180) % 360 - 180, lat)
        found.append((x * SCALE + WIDTH / 2, (y - TOP) * SCALE))
    return found


def triangle(a, b, c):
    return abs((b[0] - a[0]) * (c[1] - a[1]) - (c[0] - a[0]) * (b[1] - a[1])) / 2


def simplified(points):
    """Removes points by Visvalingam and Whyatt (1993), both ends stay, and four points of a closed line."""
    points = list(points)
    least = 4 if points[0] == points[-1] else 2
    while len(points) > least:
        areas = [triangle(*points[n - 1 : n + 2]) for n in range(1, len(points) - 1)]
        low = min(areas)
        if low >= TRIANGLE:
            break
        del points[areas.index(low) + 1]
    return points


def area(ring):
    return sum(a[0] * b[1] - b[0] * a[1] for a, b in zip(ring, ring[1:] + ring[:1])) / 2


def centre(ring):
    """Centroid of a ring; its middle if it has no area."""
    total = area(ring)
    if abs(total) < 1e-9:
        return tuple(sum(p[n] for p in ring) / len(ring) for n in (0, 1))
    pairs = list(zip(ring, ring[1:] + ring[:1]))
    return tuple(
        sum((a[n] + b[n]) * (a[0] * b[1] - b[0] * a[1]) for a, b in pairs) / (6 * total) for n in (0, 1)
    )


class Atlas:
    """The TopoJSON: arcs in degrees, and simplified in pixels."""

    def __init__(self, path):
        data = json.load(open(path))
        (sx, sy), (tx, ty) = data["transform"]["scale"], data["transform"]["translate"]
        self.degrees, self.pixels = [], []
        for arc in data["arcs"]:
            x = y = 0
            line = []
            for dx, dy in arc:
                x, y = x + dx, y + dy
                # The South Pole, which is on every meridian, is not drawn.
                line.append((x * sx + tx, max(y * sy + ty, -60)))
            self.degrees.append(line)
            self.pixels.append(simplified(pixels(line)))
        self.countries = data["objects"]["countries"]["geometries"]

    @staticmethod
    def ring(arcs, indices):
        found = []
        for index in indices:
            part = arcs[index] if index >= 0 else arcs[~index][::-1]
            found.extend(part[:-1])
        return found

    def polygons(self, country):
        """Returns the middle in degrees and the rings in pixels of each polygon."""
        all_arcs = country["arcs"] if country["type"] == "MultiPolygon" else [country["arcs"]]
        for polygon in all_arcs:
            outer = self.ring(self.degrees, polygon[0])
            middle = tuple((min(p[n] for p in outer) + max(p[n] for p in outer)) / 2 for n in (0, 1))
            yield middle, [self.ring(self.pixels, ring) for ring in polygon]


def code_of(country, middle, numbers):
    name = country["properties"]["name"]
    for shape, code, west, south, east, north in PARTS:
        if shape == name and west < middle[0] < east and south < middle[1] < north:
            return code
    return numbers.get(country.get("id")) or BY_NAME.get(name)


def path(rings):
    """Relative path of rings in units; points that fall together are written once."""
    out, last = [], (0, 0)
    for ring in rings:
        points = [(round(x * UNITS), round(y * UNITS)) for x, y in ring]
        points = [p for n, p in enumerate(points) if n == 0 or p != points[n - 1]]
        if len(points) < 3:
            continue
        deltas = [(b[0] - a[0], b[1] - a[1]) for a, b in zip([last] + points, points)]
        text = f"m{deltas[0][0]} {deltas[0][1]}l" + " ".join(f"{x} {y}" for x, y in deltas[1:])
        out.append(text.replace(" -", "-") + "z")
        last = points[0]
    return "".join(out)


def main():
    atlas = Atlas(sys.argv[1])
    codes = json.load(open("/usr/share/iso-codes/json/iso_3166-1.json"))["3166-1"]
    numbers = {one["numeric"]: one["alpha_2"] for one in codes}
    shapes = {}
    for country in atlas.countries:
        for middle, rings in atlas.polygons(country):
            code = code_of(country, middle, numbers)
            if code in (None, "AQ"):
                continue
            # A shape as wide as the map would cross its edge.
            assert max(p[0] for p in rings[0]) - min(p[0] for p in rings[0]) < WIDTH / 2, code
            shapes.setdefault(code, []).append((abs(area(rings[0])), rings))
    lines = {}
    for code, polygons in shapes.items():
        # The largest part has the marker of the country.
        polygons.sort(key=lambda polygon: -polygon[0])
        total = sum(size for size, _ in polygons)
        kept = [rings for n, (size, rings) in enumerate(polygons) if n == 0 or size > ISLAND]
        x, y = centre(kept[0][0])
        drawn = path([ring for rings in kept for ring in rings]) or "-"
        lines[code] = f"{code}\t{x * UNITS:.0f}\t{y * UNITS:.0f}\t{total * UNITS**2:.0f}\t{drawn}"
    for code, lon, lat in POINTS:
        [(x, y)] = pixels([(lon, lat)])
        assert code not in lines, code
        lines[code] = f"{code}\t{x * UNITS:.0f}\t{y * UNITS:.0f}\t0\t-"
    missing = {one["alpha_2"] for one in codes} - set(lines)
    assert missing == {"AQ"}, missing
    print("\n".join(lines[code] for code in sorted(lines)))


main()
