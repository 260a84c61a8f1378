"""10,000 server blocks: start, reload, memory, and what requests see of a reload."""

import os, subprocess, time

from .servers import SERVER_CPU, Cannot, Conf, free_port

PROTOCOLS = {"h1": "HTTP/1", "h1s": "TLS", "h2": "HTTP/2"}


def slowest(prefix, threads):
    rows = []
    for protocol, said in PROTOCOLS.items():
        for key, by in (("client", ""), ("bench", ", bench")):
            rows.append((f"{prefix}/{protocol}-{key}", f"slowest, {said}{by}{threads}", "ms", "most"))
            rows.append((f"{prefix}/{protocol}-{key}-quiet", "  without reload", "ms", "most"))
    return rows + [(f"{prefix}/lost", f"lost in a reload{threads}", "", "most")]


SERVERS = [
    ("servers/start", "10,000 servers: start", "s", "cost"),
    ("servers/start-cpu", "  its CPU time", "s", "cost"),
    ("servers/memory", "  memory after start", "MB", "memory"),
    ("servers/memory-3", "  after three reloads", "MB", "memory"),
    ("servers/memory-10", "  after ten reloads", "MB", "memory"),
    ("servers/reload", "  HUP to new answers", "s", "cost"),
    ("servers/reload-loaded", "  the same under load", "s", "cost"),
    ("servers/memory-loaded", "  memory after those as well", "MB", "memory"),
    *slowest("servers", ""),
]
TWO = [
    ("two/start", "10,000 servers, 2 thr.: start", "s", "cost"),
    ("two/memory", "  memory after start", "MB", "memory"),
    ("two/reload-loaded", "  HUP to new answers, load", "s", "cost"),
    ("two/memory-loaded", "  memory after ten of them", "MB", "memory"),
    *slowest("two", ", 2 thr."),
]
SPLIT = [
    ("split/start", "10,000 included files: start", "s", "cost"),
    ("split/memory", "  memory after start", "MB", "memory"),
    ("split/reload", "  HUP, one file changed", "s", "cost"),
    ("split/memory-after", "  memory after the reloads", "MB", "memory"),
]
CHECK = [
    ("check/wall", "-t of 10,000 servers", "s", "cost"),
    ("check/cpu", "  its CPU time", "s", "cost"),
]


def name(number):
    return f"s{number:05}.example"


class Hosts(Conf):
    """10,000 servers, one of which has `/generation`; one more speaks TLS. What changes is one number in the midst."""

    def __init__(self, run, directory=None):
        super().__init__(self.nginx_text, self.h2o_text, main="")
        self.run, self.secure, self.count, self.directory = run, free_port(), run.size(10_000, 100), directory
        self.changing = self.count // 2
        self.host, self.texts = name(self.changing), {}

    def server(self, number, generation=0):
        return (f"server {{ listen 127.0.0.1:{self.port}; server_name {name(number)} www.{name(number)};\n"
                f"    root {self.run.site};\n"
                f"    location / {{ index index.html; }}\n"
                f"    location /assets/ {{ expires 30d; }}\n"
                f"    location = /generation {{ return 200 {generation}; }} }}\n")

    def nginx_text(self, _, generation):
        tls = (f"server {{ listen 127.0.0.1:{self.secure} ssl; http2 on; root {self.run.site};\n"
               f"    ssl_certificate {self.run.certificate}; ssl_certificate_key {self.run.key}; }}\n")
        head = f"server_names_hash_max_size 65536;\n{tls}"
        if self.directory:
            return head + self.files(generation)
        if "nginx" not in self.texts:
            every = [self.server(number) for number in range(self.count)]
            self.texts["nginx"] = "".join(every[:self.changing]), "".join(every[self.changing + 1:])
        before, after = self.texts["nginx"]
        return head + before + self.server(self.changing, generation) + after

    def files(self, generation):
        """Each server in a file; of them one changes."""
        os.makedirs(self.directory, exist_ok=True)
        for number in range(self.count) if generation == 1 else [self.changing]:
            path = f"{self.directory}/{name(number)}.conf"
            with open(path + ".new", "w") as out:
                out.write(self.server(number, generation))
            os.replace(path + ".new", path)
        return f"include {self.directory}/*.conf;\n"

    def h2o_text(self, _, answer):
        if self.directory:
            raise Cannot("h2o's configuration is one file")
        site = self.run.site
        if "h2o" not in self.texts:
            every = [f"  {name(number)}:\n    paths:\n      /: {{file.dir: {site}}}\n"
                     f"      /assets: {{file.dir: {site}, header.set: \"cache-control: max-age=2592000\"}}\n"
                     f"      /generation: {{file.file: {site}/small.txt}}\n" for number in range(self.count)]
            self.texts["h2o"] = every
        every = list(self.texts["h2o"])
        every[self.changing] = every[self.changing].replace(f"{site}/small.txt", answer)
        return (f"listen: {{host: 127.0.0.1, port: {self.port}}}\n"
                f"listen: {{host: 127.0.0.1, port: {self.secure}, ssl: {{certificate-file: {self.run.certificate}, "
                f"key-file: {self.run.key}, ocsp-update-interval: 0}}}}\nhosts:\n" + "".join(every))


class Session:
    """Load from clients of two makes over three protocols, at a rate that leaves a server most of its time."""

    def __init__(self, run, running):
        self.run, self.probes, self.benches = run, {}, {}
        for protocol in PROTOCOLS:
            port = running.port if protocol == "h1" else running.conf.secure
            if protocol == "h1" or run.tls:
                self.probes[protocol] = run.begin("probe", "rate", protocol, port, 16, 400, "/small.txt")
            if run.bench:
                self.benches[protocol] = self.begin_bench(protocol, port)
        # Clients connect, and gather what TLS needs by chance; they begin to measure half a second or a second later.
        time.sleep(1.5)

    def begin_bench(self, protocol, port):
        url = f"http{'' if protocol == 'h1' else 's'}://127.0.0.1:{port}/small.txt"
        return self.run.begin_bench(url, "-k", "--protocol", protocol.rstrip("s"), "--rate", "200", "--connections", "8",
                                    "--duration", "120", "--warm-up", "1")

    def end(self):
        """The slowest request of each client in ms, and how many requests were lost."""
        most, lost = {}, 0
        for protocol, probe in self.probes.items():
            said = self.run.end(probe)
            most[f"{protocol}-client"] = said["max_us"] / 1000
            lost += said["failed"] + said["other"]
        for protocol, bench in self.benches.items():
            said = self.run.end_bench(bench)
            if said and "response" in said["times"]:
                most[f"{protocol}-bench"] = said["times"]["response"]["max_ms"]
                lost += sum(said["errors"].values())
        return most, lost


def slowest_requests(run, prefix, running, reloads):
    """Sessions with a reload and without, server by server, then memory; a value of a row is the slowest request of a session."""
    lasts = {each.name: 1.0 for each in running}
    for turn in range(reloads):
        for each in run.turns(running, turn):
            with run.trying(prefix, each):
                session = Session(run, each)
                try:
                    took = each.reload()
                    # What a server does with the old configuration belongs to the reload.
                    time.sleep(1)
                finally:
                    most, lost = session.end()
                lasts[each.name] = took
                run.record(f"{prefix}/reload-loaded", each, took)
                run.record(f"{prefix}/lost", each, lost)
                for key, value in most.items():
                    run.record(f"{prefix}/{key}", each, value)
                if turn % 2 == 0:
                    session = Session(run, each)
                    time.sleep(1 + lasts[each.name])
                    for key, value in session.end()[0].items():
                        run.record(f"{prefix}/{key}-quiet", each, value)
    for each in running:
        with run.trying(prefix, each):
            run.record(f"{prefix}/memory-loaded", each, each.settled_pss() / 1e6)


def servers(run):
    running = run.starts("servers", lambda _: Hosts(run))
    for reloads, row in ((3, "memory-3"), (run.size(7, 1), "memory-10")):
        run.reloads("servers/reload", running, reloads)
        for each in running:
            with run.trying("servers", each):
                run.record(f"servers/{row}", each, each.settled_pss() / 1e6)
    slowest_requests(run, "servers", running, run.size(10, 2))


def two(run):
    running = run.start_all("two", lambda _: Hosts(run), 2)
    for each in running:
        with run.trying("two", each):
            run.record("two/start", each, each.start_s)
            run.record("two/memory", each, each.settled_pss() / 1e6)
    slowest_requests(run, "two", running, run.size(10, 2))


def split(run):
    running = run.start_all("split", lambda server: Hosts(run, f"{run.directory}/split-{server.name}"))
    for each in running:
        with run.trying("split", each):
            run.record("split/start", each, each.start_s)
            run.record("split/memory", each, each.settled_pss() / 1e6)
    run.reloads("split/reload", running, run.rounds + 2)
    for each in running:
        with run.trying("split", each):
            run.record("split/memory-after", each, each.settled_pss() / 1e6)


def check(run):
    paths = {}
    for server in run.servers:
        with run.trying("check", server):
            path = f"{run.directory}/{server.name}-check.conf"
            Hosts(run).write(server, path, 1, 1)
            paths[server] = path
    for turn in range(run.rounds):
        for server in run.turns(list(paths), turn):
            with run.trying("check", server):
                began = time.perf_counter()
                tested = subprocess.Popen([server.path, "-t", "-c", paths[server]], stdin=subprocess.DEVNULL,
                                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                          preexec_fn=lambda: os.sched_setaffinity(0, {SERVER_CPU}))
                words = tested.stderr.read().decode(errors="replace").strip().split("\n")[-1]
                _, status, used = os.wait4(tested.pid, 0)
                tested.returncode = os.waitstatus_to_exitcode(status)
                if tested.returncode:
                    raise Cannot(f"-t: {words}")
                run.record("check/wall", server, time.perf_counter() - began)
                run.record("check/cpu", server, used.ru_utime + used.ru_stime)
