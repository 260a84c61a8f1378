"""Large files: 1 MB and 1 GB, and one that is not in the page cache."""

import os, time

from .run import TAILS
from .servers import Cannot, Conf, free_port

KINDS = {"h1": "plain", "h1s": "TLS", "h2": "HTTP/2"}
LARGE = [
    *((f"large/1m-{kind}", f"1 MB, {said}", "us", "cost") for kind, said in KINDS.items()),
    *((f"large/1g-{kind}", f"1 GB, {said}", "ms", "cost") for kind, said in KINDS.items()),
]
COLD = [
    ("cold/p99", "p99 beside a cold read", "ms", "tail"),
    ("cold/aio", "  with aio threads", "ms", "tail"),
    ("cold/quiet", "  without the cold read", "ms", "tail"),
    ("cold/slowest", "slowest beside a cold read", "ms", "most"),
    ("cold/aio-slowest", "  with aio threads", "ms", "most"),
    ("cold/quiet-slowest", "  without the cold read", "ms", "most"),
    ("cold/read", "megabytes of it a second", "MB", "rate"),
]


def write(path, size):
    """A file of bytes that do not repeat within 8 MB, on the disk when this returns."""
    piece = os.urandom(min(size, 8 << 20))
    with open(path, "wb") as out:
        for at in range(0, size, len(piece)):
            out.write(piece[:size - at])
        out.flush()
        os.fsync(out.fileno())


def conf(run, aio=""):
    secure = free_port()
    made = Conf(
        lambda c, n: f"server {{ listen 127.0.0.1:{c.port}; listen 127.0.0.1:{secure} ssl; http2 on; root {run.site};\n"
                     f"ssl_certificate {run.certificate}; ssl_certificate_key {run.key}; {aio}\n"
                     f"location = /generation {{ return 200 {n}; }} }}",
        lambda c, n: f"listen: {{host: 127.0.0.1, port: {c.port}}}\n"
                     f"listen: {{host: 127.0.0.1, port: {secure}, ssl: {{certificate-file: {run.certificate}, "
                     f"key-file: {run.key}, ocsp-update-interval: 0}}}}\nhosts:\n  default:\n    paths:\n"
                     f"      /generation: {{file.file: {n}}}\n      /: {{file.dir: {run.site}}}\n")
    made.secure = secure
    return made


def bench(run, each, kind, name, *more):
    """CPU time of a response, loaded by `firstbyte bench`."""
    if not run.bench:
        raise Cannot("no `firstbyte bench`: --bench says where it is")
    port = each.port if kind == "h1" else each.conf.secure
    url = f"http{'' if kind == 'h1' else 's'}://127.0.0.1:{port}/{name}"
    before = each.cpu_us()
    said = run.bench_run(url, "-k", "--protocol", kind.rstrip("s"), *more)
    if said["errors"] or list(said["statuses"]) != ["2xx"]:
        raise Cannot(f"{name}: {said['errors']} {said['statuses']}")
    return (each.cpu_us() - before) / said["done"]


def large(run):
    write(f"{run.site}/1m.bin", 1 << 20)
    write(f"{run.site}/1g.bin", run.size(1 << 30, 1 << 24))
    running = run.start_all("large", lambda _: conf(run))
    for turn in range(run.rounds):
        for kind in KINDS:
            streams = ("--connections", "4", "--streams", "4") if kind == "h2" else ("--connections", "8")
            for each in run.turns(running, turn):
                with run.trying("large", each):
                    run.record(f"large/1m-{kind}", each,
                               bench(run, each, kind, "1m.bin", *streams, "--duration", str(run.seconds(1))))
                    run.record(f"large/1g-{kind}", each,
                               bench(run, each, kind, "1g.bin", "--connections", "1", "--requests", "1") / 1000)
    os.remove(f"{run.site}/1g.bin")


def drop(path):
    """Takes a file out of the page cache."""
    file = os.open(path, os.O_RDONLY)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(file)


def small_requests(run, each, path, seconds):
    """Times of small requests, beside a read of a file that is not in the page cache, or without one."""
    if path:
        # What has just been written is in the page cache, and to drop 10 GB takes the clients' CPU for 0.4 s.
        drop(path)
    probe = run.begin("probe", "rate", "h1", each.port, 8, 1000, "/small.txt")
    time.sleep(0.6)
    read = 0
    if path:
        rate = run.options.cold_rate
        asked = run.client("load", "read", each.port, seconds, "/" + os.path.basename(path), rate)
        read = asked["bytes"] / 1e6 / asked["seconds"]
    else:
        time.sleep(seconds)
    return run.end(probe), read


def cold(run):
    path = f"{run.site}/cold.bin"
    size = int(run.options.cold_gb * (1 << 30)) if not run.options.quick else 1 << 26
    write(path, size)
    plain = run.start_all("cold", lambda _: conf(run))
    of_nginx = [server for server in run.servers if server.kind == "nginx"]
    with_aio = run.start_all("cold", lambda _: conf(run, "aio threads;"), only="cold/aio", servers=of_nginx)
    for server in run.servers:
        if server.kind != "nginx":
            run.cannot("cold/aio", server, "h2o has no aio threads")
            run.cannot("cold/aio-slowest", server, "h2o has no aio threads")
    for turn in range(run.rounds * TAILS):
        for rows, running, read in (("", plain, path), ("aio", with_aio, path), ("quiet", plain, None)):
            for each in run.turns(running, turn):
                with run.trying("cold", each):
                    said, rate = small_requests(run, each, read, run.seconds(2))
                    run.record(f"cold/{rows or 'p99'}", each, said["p99_us"] / 1000)
                    run.record(f"cold/{rows + '-' if rows else ''}slowest", each, said["max_us"] / 1000)
                    if not rows:
                        run.record("cold/read", each, rate)
    os.remove(path)
