#!/usr/bin/env python3
"""Makes access.log.gz: a made-up access log of visitors from 65 countries of a server in Frankfurt.

usage: apt-get install tor-geoipdb; generate.py >access.log.gz

The log has the format `min_rtt` of docs/map.md. A round trip takes the great-circle distance of the capital at two
thirds of the speed of light, with a detour of half the way, plus an access delay with a log-normal distribution.
Addresses are networks of the country by Tor's lists, with the host part zero, so they are nobody's. The output depends
on the version of these lists; the one here is of tor-geoipdb 0.4.9.11.
"""
import bisect
import gzip
import ipaddress
import math
import random
import sys
import time

LISTS = ["/usr/share/tor/geoip", "/usr/share/tor/geoip6"]
FRANKFURT = (50.11, 8.68)
CONNECTIONS = 4000
BEGIN, SECONDS = 1767225600, 30 * 86400
# Code, weight, latitude and longitude of the capital, or of the middle of the population.
COUNTRIES = """
DE 420 52.5 13.4|FR 190 48.9 2.4|GB 210 51.5 -0.1|NL 110 52.4 4.9|PL 110 52.2 21.0|AT 70 48.2 16.4|CH 75 46.9 7.4
BE 55 50.8 4.4|IT 110 41.9 12.5|ES 100 40.4 -3.7|PT 40 38.7 -9.1|SE 60 59.3 18.1|NO 40 59.9 10.8|DK 40 55.7 12.6
FI 40 60.2 24.9|CZ 50 50.1 14.4|HU 44 47.5 19.0|RO 45 44.4 26.1|BG 26 42.7 23.3|GR 32 38.0 23.7|IE 32 53.3 -6.3
UA 60 50.5 30.5|RU 90 55.8 37.6|TR 70 39.9 32.9|RS 24 44.8 20.5|LT 36 54.7 25.3|LU 34 49.6 6.1|MT 50 35.9 14.5
IS 34 64.1 -21.9|US 430 39.0 -95.0|CA 90 45.4 -75.7|MX 50 19.4 -99.1|BR 120 -15.8 -47.9|AR 45 -34.6 -58.4
CL 32 -33.4 -70.7|CO 32 4.7 -74.1|PE 36 -12.0 -77.0|IN 160 22.0 79.0|PK 40 33.7 73.1|BD 26 23.8 90.4|CN 100 34.0 112.0
JP 110 35.7 139.7|KR 60 37.6 127.0|TW 34 25.0 121.6|HK 34 22.3 114.2|SG 50 1.3 103.8|MY 30 3.1 101.7|TH 34 13.8 100.5
VN 34 21.0 105.8|ID 60 -6.2 106.8|PH 40 14.6 121.0|AU 70 -33.9 151.2|NZ 34 -41.3 174.8|ZA 40 -25.7 28.2
NG 32 9.1 7.4|KE 26 -1.3 36.8|EG 36 30.0 31.2|MA 36 34.0 -6.8|DZ 36 36.8 3.1|SA 32 24.7 46.7|AE 30 24.5 54.4
IL 32 32.1 34.8|IR 30 35.7 51.4|KZ 10 51.1 71.4|MN 6 47.9 106.9
"""
PATHS = ["/", "/docs/", "/style.css", "/blog/first-byte", "/download", "/app.js"]
AGENTS = [
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:146.0) Gecko/20100101 Firefox/146.0",
    "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/143.0.0.0 Mobile Safari/537.36",
    "curl/8.17.0",
]


def networks():
    """Returns the first addresses of ranges by country: /24 of IPv4 and /48 of IPv6."""
    found = {}
    for path in LISTS:
        for line in open(path):
            if line.startswith("#"):
                continue
            first, last, code = line.strip().split(",")
            is_v4 = ":" not in first
            first, last = (int(one) if is_v4 else int(ipaddress.ip_address(one)) for one in (first, last))
            size = 256 if is_v4 else 1 << 80
            first += -first % size
            if first + size <= last + 1:
                version = ipaddress.IPv4Address if is_v4 else ipaddress.IPv6Address
                found.setdefault(code, ([], []))[0 if is_v4 else 1].append(str(version(first)))
    return found


def distance_km(a, b):
    """Great-circle distance by the haversine formula."""
    (lat, lon), (other_lat, other_lon) = (map(math.radians, one) for one in (a, b))
    half = math.sin((other_lat - lat) / 2) ** 2
    half += math.cos(lat) * math.cos(other_lat) * math.sin((other_lon - lon) / 2) ** 2
    return 2 * 6371 * math.asin(math.sqrt(half))


def main():
    chance = random.Random(46)
    places = []
    for word in COUNTRIES.replace("\n", "|").split("|"):
        if word:
            code, weight, lat, lon = word.split()
            # 200 km a millisecond, there and back, and half as far again.
            places.append((code, int(weight), distance_km(FRANKFURT, (float(lat), float(lon))) / 100 * 1.5))
    sums = [sum(weight for _, weight, _ in places[: n + 1]) for n in range(len(places))]
    known = networks()
    lines = []
    for _ in range(CONNECTIONS):
        code, _, least_ms = places[bisect.bisect(sums, chance.random() * sums[-1])]
        v4, v6 = known[code]
        address = chance.choice(v6 if v6 and chance.random() < 0.2 else v4[:: max(1, len(v4) // 40)])
        rtt_us = round((least_ms + chance.lognormvariate(math.log(9), 0.6)) * 1000)
        start, agent = BEGIN + chance.randrange(SECONDS), chance.choice(AGENTS)
        for request in range(1, 2 + (chance.random() < 0.4)):
            stamp = time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime(start + request - 1))
            path = chance.choice(PATHS)
            lines.append((start + request, f'{address} - - [{stamp}] "GET {path} HTTP/2.0" 200 {len(path) * 517} "-" '
                          f'"{agent}" min_rtt={rtt_us} requests={request}\n'))
    text = "".join(line for _, line in sorted(lines))
    sys.stdout.buffer.write(gzip.compress(text.encode(), 9, mtime=0))


main()
