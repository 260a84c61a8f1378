"""What applications cost that are not asked over HTTP: FastCGI, SCGI, uwsgi, memcached."""

import os, socket

from .servers import CLIENT_CPU, Cannot, Conf, free_port

GATEWAYS = [
    ("gateways/fastcgi", "1 KB over FastCGI", "us", "cost"),
    ("gateways/fastcgi-keep", "  fastcgi_keep_conn", "us", "cost"),
    ("gateways/scgi", "1 KB over SCGI", "us", "cost"),
    ("gateways/uwsgi", "1 KB over uwsgi", "us", "cost"),
    ("gateways/memcached", "1 KB of memcached", "us", "cost"),
    ("gateways/upload", "100 MB to FastCGI", "ms", "cost"),
]
UPLOAD, PIECE = 100 << 20, 256 << 10
KINDS = ("fastcgi", "scgi", "uwsgi", "memcached")
# Half a second, three times a round. A connection for each request leaves its port in TIME_WAIT, and Linux takes one again
# after a second: with the 14,000 that it tries first all younger than that, the search for a port is what a longer turn
# measures, the more the faster the server is.
TURN_S, TURNS = 0.5, 3
# Parameters are those of the package.
CONF = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "conf")


def conf(run, ports):
    def nginx(c, generation):
        upstreams = "".join(f"upstream {kind} {{ server 127.0.0.1:{ports[kind]}; keepalive 256; }}\n" for kind in KINDS)
        locations = "".join(f"location /{kind} {{ {kind}_pass {kind}; include {CONF}/{kind}_params; }}\n"
                            for kind in ("scgi", "uwsgi"))
        return (f"{upstreams}server {{ listen 127.0.0.1:{c.port} backlog=4096; root {run.site};\n"
                f"client_max_body_size 0; {locations}"
                f"location /fastcgi {{ fastcgi_pass 127.0.0.1:{ports['fastcgi']};\n"
                f"include {CONF}/fastcgi_params; }}\n"
                f"location /fastcgi-keep {{ fastcgi_pass fastcgi; fastcgi_keep_conn on;\n"
                f"include {CONF}/fastcgi_params; }}\n"
                f"location /memcached {{ set $memcached_key $uri; memcached_pass memcached; }}\n"
                f"location = /generation {{ return 200 {generation}; }} }}")

    def h2o(c, generation):
        to = f"fastcgi.connect: {{host: 127.0.0.1, port: {ports['fastcgi']}, type: tcp}}"
        return (f"listen: {{host: 127.0.0.1, port: {c.port}}}\nhosts:\n  default:\n    paths:\n"
                f"      /generation: {{file.file: {generation}}}\n"
                f"      /fastcgi: {{{to}}}\n"
                f"      /fastcgi-keep: {{{to}, fastcgi.timeout.keepalive: 60000}}\n")
    return Conf(nginx, h2o)


def gateways(run):
    ports = {kind: free_port() for kind in KINDS}
    os.sched_setaffinity(0, {CLIENT_CPU})
    for kind in KINDS:
        run.first_line(run.begin("respond", kind, ports[kind]))
    running = run.start_all("gateways", lambda _: conf(run, ports))
    for turn in range(run.rounds * TURNS):
        for each in run.turns(running, turn):
            with run.trying("gateways/upload", each):
                run.record("gateways/upload", each, upload(each, run.size(UPLOAD, 1 << 20)))
            for row, *_ in GATEWAYS[:-1]:
                path = row.removeprefix("gateways")
                if each.server.kind == "h2o" and not path.startswith("/fastcgi"):
                    run.cannot(row, each, "h2o speaks FastCGI alone")
                    continue
                with run.trying(row, each):
                    run.record(row, each, run.cost(each, 64, run.seconds(TURN_S), path))


def upload(each, size):
    """CPU time of a server for one request with a body, ms."""
    before = each.cpu_us()
    piece = bytes(PIECE)
    with socket.create_connection(("127.0.0.1", each.port), 60) as line:
        line.sendall(f"POST /fastcgi HTTP/1.1\r\nHost: localhost\r\nContent-Length: {size}\r\n\r\n".encode())
        for _ in range(size // PIECE):
            line.sendall(piece)
        status = line.recv(65536)[9:12]
    if status != b"200":
        raise Cannot(f"an upload of {size:,} bytes: {status.decode(errors='replace')}")
    return (each.cpu_us() - before) / 1000
