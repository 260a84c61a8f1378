"""Many names: certificates by SNI, map and geo of a million entries."""

import os, socket, ssl

from . import certificates
from .servers import Conf, free_port

CERTIFICATES = [
    ("certificates/start", "10,000 certificates: start", "s", "cost"),
    ("certificates/start-cpu", "  its CPU time", "s", "cost"),
    ("certificates/memory", "  memory after start", "MB", "memory"),
    ("certificates/many", "  handshake, names by chance", "us", "cost"),
    ("certificates/one", "  handshake, one certificate", "us", "cost"),
    ("certificates/more", "  more than one certificate's", "%", "difference"),
    ("certificates/reload", "  HUP, one certificate changed", "s", "cost"),
]
MAPS = [
    ("maps/map-start", "map of 1,000,000 + 10,000: start", "s", "cost"),
    ("maps/map-start-cpu", "  its CPU time", "s", "cost"),
    ("maps/map-memory", "  memory", "MB", "memory"),
    ("maps/map-exact", "  request with an exact name", "us", "cost"),
    ("maps/map-exact-more", "    more than without map", "us", "difference"),
    ("maps/map-wildcard", "  request with a wildcard's name", "us", "cost"),
    ("maps/map-wildcard-more", "    more than without map", "us", "difference"),
    ("maps/geo-start", "geo of 1,000,000: start", "s", "cost"),
    ("maps/geo-start-cpu", "  its CPU time", "s", "cost"),
    ("maps/geo-memory", "  memory", "MB", "memory"),
    ("maps/geo-request", "  request with an address", "us", "cost"),
    ("maps/geo-more", "    more than without geo", "us", "difference"),
]


def name(number):
    return f"s{number:05}.example"


class Names(Conf):
    """A server for each certificate; the one in the midst changes, and a client that asks for its name sees it."""

    def __init__(self, run, server, count):
        super().__init__(self.nginx_text, self.h2o_text)
        self.run, self.count, self.changing = run, count, count // 2
        self.plain = free_port()
        self.directory = f"{run.directory}/certificates-{server.name}-{count}"
        os.makedirs(self.directory, exist_ok=True)
        self.put(range(count), 0)

    def put(self, numbers, offset):
        numbers = list(numbers)
        for number, (certificate, key) in zip(numbers, certificates.make(map(name, numbers), offset)):
            for kind, text in (("crt", certificate), ("key", key)):
                path = f"{self.directory}/{name(number)}.{kind}"
                with open(path + ".new", "w") as out:
                    out.write(text)
                os.replace(path + ".new", path)

    def change(self, generation):
        if generation > 1:
            self.put([self.changing], 1_000_000 + generation)

    def nginx_text(self, _, generation):
        self.change(generation)
        return "server_names_hash_max_size 65536;\n" + "".join(
            f"server {{ listen 127.0.0.1:{self.port} ssl; server_name {name(number)}; root {self.run.site};\n"
            f"ssl_certificate {self.directory}/{name(number)}.crt;\n"
            f"ssl_certificate_key {self.directory}/{name(number)}.key; }}\n" for number in range(self.count))

    def h2o_text(self, _, answer):
        self.change(int(answer.split(".")[-2]))
        return "hosts:\n" + "".join(
            f"  \"{name(number)}:{self.port}\":\n"
            f"    listen: {{host: 127.0.0.1, port: {self.port}, ssl: {{\n"
            f"      certificate-file: {self.directory}/{name(number)}.crt,\n"
            f"      key-file: {self.directory}/{name(number)}.key, ocsp-update-interval: 0}}}}\n"
            f"    paths:\n      /: {{file.dir: {self.run.site}}}\n" for number in range(self.count))

    def answers(self, generation):
        if not hasattr(self, "expected") or self.expected[0] != generation:
            with open(f"{self.directory}/{name(self.changing)}.crt") as text:
                self.expected = generation, ssl.PEM_cert_to_DER_cert(text.read())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with socket.create_connection(("127.0.0.1", self.port), 5) as line:
            with context.wrap_socket(line, server_hostname=name(self.changing)) as secure:
                return secure.getpeercert(binary_form=True) == self.expected[1]


def many_certificates(run):
    # Pairs are short and many: a machine's speed drifts, within a pair less than the 2 % that are looked for.
    count, handshakes, pairs = run.size(10_000, 100), run.size(100, 100), run.size(20, 2)
    ones = {each.name: each for each in run.start_all("certificates", lambda server: Names(run, server, 1))}
    confs = {server.name: Names(run, server, count) for server in run.servers}
    many = run.starts("certificates", lambda server: confs[server.name])
    for turn in range(-1, run.rounds * pairs):
        for each in run.turns([each for each in many if each.name in ones], turn):
            with run.trying("certificates", each):
                cost = {}
                # Who comes first changes with the turn. The turn before the first warms up: the first handshake of a
                # certificate makes what the others use, and of a hundred names one or two are not asked for there.
                number = handshakes if turn >= 0 else 4 * count
                for which, server, modulus in run.turns([("one", ones[each.name], 1), ("many", each, count)], turn):
                    cost[which] = run.spent(server, "probe", "handshakes", server.port, number, "s@.example",
                                            modulus, turn + 2)
                if turn >= 0:
                    run.record("certificates/one", each, cost["one"])
                    run.record("certificates/many", each, cost["many"])
                    run.record("certificates/more", each, (cost["many"] / cost["one"] - 1) * 100)
    run.reloads("certificates/reload", many, run.rounds)


class Table(Conf):
    """One map or one geo, and a location that uses it beside one that does not."""

    def __init__(self, text, h2o_lacks):
        super().__init__(lambda c, generation: (
            f"{text}\nserver {{ listen 127.0.0.1:{c.port};\n"
            f"location = /generation {{ return 200 {generation}; }}\n"
            f"location = /with {{ return 200 \"$arg_k $found\"; }}\n"
            f"location = /without {{ return 200 \"$arg_k 1\"; }} }}"), None, h2o_lacks)


def pairs(run, running, keys):
    """Requests with a look-up beside those without; rows by what keys are asked for."""
    for turn in range(-1, run.rounds * 2):
        for each in run.turns(running, turn):
            for row, more, pattern, modulus in keys:
                with run.trying("maps", each):
                    cost = {}
                    for path in run.turns(["without", "with"], turn):
                        cost[path] = run.cost(each, 64, run.seconds(0.8), f"/{path}?k={pattern}", modulus, turn + 2)
                    if turn >= 0:
                        run.record(row, each, cost["with"])
                        run.record(more, each, cost["with"] - cost["without"])


def maps(run):
    entries, wildcards = run.size(1_000_000, 1000), run.size(10_000, 100)
    names, places = f"{run.directory}/map.txt", f"{run.directory}/geo.txt"
    with open(names, "w") as out:
        out.writelines(f"k{number:05}.example {number};\n" for number in range(entries))
        out.writelines(f"*.w{number:05}.example w{number};\n" for number in range(wildcards))
    with open(places, "w") as out:
        for number in range(entries):
            address = (10 << 24) + (number << 4)
            out.write(f"{address >> 24}.{address >> 16 & 255}.{address >> 8 & 255}.{address & 255}/28 {number};\n")
    running = run.starts("maps", lambda _: Table(
        "map_hash_max_size 4194304; map_hash_bucket_size 128;\n"
        f"map $arg_k $found {{ hostnames; default 0; include {names}; }}", "h2o has no map"),
        only="maps/map", prefix="maps/map-")
    pairs(run, running, [
        ("maps/map-exact", "maps/map-exact-more", "k@.example", entries),
        ("maps/map-wildcard", "maps/map-wildcard-more", "a.w@.example", wildcards),
    ])
    for each in running:
        each.stop()
    running = run.starts("maps", lambda _: Table(
        f"geo $arg_k $found {{ default 0; include {places}; }}", "h2o has no geo"),
        only="maps/geo", prefix="maps/geo-")
    pairs(run, running, [("maps/geo-request", "maps/geo-more", "^", entries)])
