"""Many connections, and the lines of a busy access log."""

import time

from .files import conf
from .run import TAILS
from .servers import CONNECTIONS, Conf

MANY, BUSY, BURST = 18_000, 5_000, 5_000
CONNECTIONS_ROWS = [
    ("connections/refused", "18,000 connections: refused", "", "most"),
    ("connections/idle", "  bytes of an idle one", "B", "memory"),
    ("connections/busy", "5,000 busy ones, one file", "us", "cost"),
    ("connections/burst", "p99 beside 5,000 new ones", "ms", "tail"),
    ("connections/no-burst", "  without them", "ms", "tail"),
    ("connections/burst-lost", "  of the new ones refused", "", "most"),
]
LOG = [
    ("log/on", "request with an access_log line", "us", "cost"),
    ("log/off", "  without", "us", "cost"),
    ("log/line", "  a line, buffer=64k", "us", "difference"),
]


def connections(run):
    spare = 1_500
    many = min(run.size(MANY, 400), run.descriptors - spare, CONNECTIONS - 100)
    busy, burst = min(run.size(BUSY, 200), many), min(run.size(BURST, 200), many)
    if many < MANY:
        run.note(f"{many:,} connections in place of {MANY:,}"
                 + ("" if run.options.quick else f": RLIMIT_NOFILE is {run.descriptors:,}"))
    running = run.start_all("connections", lambda _: conf(run.site))
    for each in running:
        with run.trying("connections", each):
            run.load(each, 64, 0.3, "/small.txt")
            before = each.pss()
            opened = run.begin("load", "open", each.port, many, 0, 256, "/small.txt")
            line = run.first_line(opened)
            after = each.pss()
            run.end(opened)
            run.record("connections/refused", each, line["failed"] + line["other"])
            run.record("connections/idle", each, (after - before) / max(line["done"], 1))
            time.sleep(0.5)
    for turn in range(run.rounds * TAILS):
        for each in run.turns(running, turn):
            with run.trying("connections", each):
                run.record("connections/busy", each, run.cost(each, busy, run.seconds(2), "/small.txt"))
                time.sleep(0.3)
                for with_burst in run.turns([False, True], turn):
                    probe = run.begin("probe", "rate", "h1", each.port, 8, 1000, "/small.txt")
                    time.sleep(0.6)
                    if with_burst:
                        # Both have one CPU: the wait for the other client is none for the server.
                        opened = run.begin("load", "open", each.port, burst, burst, 4096, "/small.txt", yielding=True)
                        line = run.first_line(opened)
                        run.record("connections/burst-lost", each, line["failed"] + line["other"])
                        run.record("connections/burst", each, run.end(probe)["p99_us"] / 1000)
                        run.end(opened)
                    else:
                        time.sleep(1)
                        run.record("connections/no-burst", each, run.end(probe)["p99_us"] / 1000)


def log(run):
    def make(server):
        return Conf(
            lambda c, generation: (
                f"server {{ listen 127.0.0.1:{c.port};\n"
                f"location = /generation {{ return 200 {generation}; }}\n"
                f"location = /with {{ access_log {run.directory}/{server.name}-access.log combined buffer=64k;\n"
                f"return 200 ok; }}\nlocation = /without {{ return 200 ok; }} }}"),
            None, "h2o's access log has no buffer")
    running = run.start_all("log", make)
    for turn in range(-1, run.rounds * 2):
        for each in run.turns(running, turn):
            with run.trying("log", each):
                cost = {}
                for path in run.turns(["without", "with"], turn):
                    cost[path] = run.cost(each, 64, run.seconds(1), f"/{path}")
                if turn >= 0:
                    run.record("log/on", each, cost["with"])
                    run.record("log/off", each, cost["without"])
                    run.record("log/line", each, cost["with"] - cost["without"])
