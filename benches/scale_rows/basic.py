"""What most sites do most: small files over each protocol, requests that are passed on, idle connections."""

import time

from .large import bench
from .servers import CLIENT_CPU, Conf, Running, free_port

IDLE = 10_000
BASIC = [
    ("basic/small", "100 bytes, HTTP/1.1", "us", "cost"),
    ("basic/10k", "10 KB, HTTP/1.1", "us", "cost"),
    ("basic/tls", "100 bytes, HTTP/1.1 over TLS", "us", "cost"),
    ("basic/h2", "100 bytes, HTTP/2 over TLS", "us", "cost"),
    ("basic/proxied", "100 bytes proxied, HTTP/1.1", "us", "cost"),
    ("basic/proxied-tls", "100 bytes proxied over TLS", "us", "cost"),
    ("basic/idle", "an idle connection", "B", "memory"),
]


def conf(run, behind, behind_tls):
    """A site over HTTP/1.1, TLS and HTTP/2; requests below /behind/ and /behind-tls/ are passed on to another server."""
    secure = free_port()
    made = Conf(
        lambda c, n: f"upstream behind {{ server 127.0.0.1:{behind}; keepalive 256; }}\n"
                     f"upstream behind_tls {{ server 127.0.0.1:{behind_tls}; keepalive 256; }}\n"
                     f"server {{ listen 127.0.0.1:{c.port} backlog=4096; listen 127.0.0.1:{secure} ssl; http2 on;\n"
                     f"root {run.site}; ssl_certificate {run.certificate}; ssl_certificate_key {run.key};\n"
                     f"location /behind/ {{ proxy_pass http://behind/; proxy_http_version 1.1;\n"
                     f"proxy_set_header Connection \"\"; }}\n"
                     f"location /behind-tls/ {{ proxy_pass https://behind_tls/; proxy_http_version 1.1;\n"
                     f"proxy_set_header Connection \"\"; }}\n"
                     f"location = /generation {{ return 200 {n}; }} }}",
        lambda c, n: f"listen: {{host: 127.0.0.1, port: {c.port}}}\n"
                     f"listen: {{host: 127.0.0.1, port: {secure}, ssl: {{certificate-file: {run.certificate}, "
                     f"key-file: {run.key}, ocsp-update-interval: 0}}}}\nhosts:\n  default:\n    paths:\n"
                     f"      /generation: {{file.file: {n}}}\n"
                     f"      /behind/: {{proxy.reverse.url: \"http://127.0.0.1:{behind}/\"}}\n"
                     f"      /behind-tls/: {{proxy.reverse.url: \"https://127.0.0.1:{behind_tls}/\", "
                     f"proxy.ssl.verify-peer: OFF}}\n"
                     f"      /: {{file.dir: {run.site}}}\n")
    made.secure = secure
    return made


def basic(run):
    with open(f"{run.site}/10k.bin", "wb") as out:
        out.write(bytes(10 << 10))
    # The same server is behind all of them, on the client's CPU.
    nginx = next((server for server in run.servers if server.kind == "nginx"), None)
    behind_tls = free_port()
    behind = Conf(lambda c, n: f"server {{ listen 127.0.0.1:{c.port} backlog=4096; root {run.site};\n"
                               f"listen 127.0.0.1:{behind_tls} ssl; ssl_certificate {run.certificate};\n"
                               f"ssl_certificate_key {run.key};\n"
                               f"location = /generation {{ return 200 {n}; }} }}")
    if nginx:
        Running(run, nginx, behind, cpus={CLIENT_CPU})
    running = run.start_all("basic", lambda _: conf(run, behind.port, behind_tls))
    seconds = run.seconds(1.5)
    for turn in range(run.rounds):
        for each in run.turns(running, turn):
            for row, path in (("small", "/small.txt"), ("10k", "/10k.bin"), ("proxied", "/behind/small.txt"),
                              ("proxied-tls", "/behind-tls/small.txt")):
                with run.trying(f"basic/{row}", each):
                    run.record(f"basic/{row}", each, run.cost(each, 64, seconds, path))
            for row, kind, more in (("tls", "h1s", ["64"]), ("h2", "h2", ["16", "--streams", "32"])):
                with run.trying(f"basic/{row}", each):
                    arguments = ["--duration", str(seconds), "--connections", *more]
                    run.record(f"basic/{row}", each, bench(run, each, kind, "small.txt", *arguments))
    for each in running:
        with run.trying("basic/idle", each):
            before = each.pss()
            opened = run.begin("load", "open", each.port, run.size(IDLE, 200), 0, 256, "/small.txt")
            done = run.first_line(opened)["done"]
            time.sleep(0.5)
            run.record("basic/idle", each, (each.pss() - before) / max(done, 1))
            run.end(opened)
