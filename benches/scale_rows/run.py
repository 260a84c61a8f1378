"""One run: servers, clients, the values of rows, and what could not be measured."""

import contextlib, json, os, signal, statistics, subprocess, time

from . import certificates
from .servers import CLIENT_CPU, CPUS, Cannot, Running, descriptors

# A row says nothing where its rounds lie further apart than this share of their median.
SPREAD_MOST = 0.35
# Windows of a round for a 99th percentile: one that something else on the machine slowed is not to be the median.
TAILS = 3
# A start or a reload that takes longer than this is not repeated.
SLOW_S = 10


class Run:
    def __init__(self, options, servers, directory):
        self.options, self.servers, self.directory = options, servers, directory
        self.rounds = options.rounds
        self.values, self.lacks, self.notes = {}, {}, []
        self.running, self.clients, self.numbers = [], [], 0
        self.descriptors = descriptors()
        self.site = f"{directory}/site"
        os.mkdir(self.site)
        for name, size in (("small.txt", 100), ("2b.txt", 2)):
            with open(f"{self.site}/{name}", "wb") as out:
                out.write(b"x" * size)
        self.certificate, self.key = f"{directory}/one.crt", f"{directory}/one.key"
        for text, path in zip(next(certificates.make(["localhost"])), (self.certificate, self.key)):
            with open(path, "w") as out:
                out.write(text)
        self.build_clients()
        self.bench = self.find_bench()

    def build_clients(self):
        """The clients in C; that of TLS where OpenSSL's headers are."""
        here = os.path.dirname(os.path.abspath(__file__))
        command = [os.environ.get("CC", "cc"), "-O2", "-pthread"]
        for name in ("load", "respond"):
            subprocess.run([*command, "-o", f"{self.directory}/{name}", f"{here}/{name}.c"], check=True)
        probe = [*command, "-o", f"{self.directory}/probe", f"{here}/probe.c"]
        self.tls = subprocess.run([*probe, "-DWITH_TLS", "-lssl", "-lcrypto"], capture_output=True).returncode == 0
        if not self.tls:
            self.note("no OpenSSL to build with: no handshakes, and over TLS no client but `firstbyte bench`")
            subprocess.run(probe, check=True)

    def find_bench(self):
        here = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        for path in (self.options.bench, os.environ.get("FIRSTBYTE_BIN"), f"{here}/target/release/firstbyte",
                     *(server.path for server in self.servers if server.kind == "nginx")):
            if path and os.access(path, os.X_OK):
                if b"firstbyte bench" in subprocess.run([path, "bench", "-h"], capture_output=True).stdout:
                    return os.path.realpath(path)
        self.note("no `firstbyte bench` found (--bench PATH)")
        return None

    # What rows say of their size.

    def size(self, whole, quick):
        return quick if self.options.quick else whole

    def seconds(self, whole):
        return 0.2 if self.options.quick else whole

    def next_number(self):
        self.numbers += 1
        return self.numbers

    def note(self, text):
        if text not in self.notes:
            self.notes.append(text)

    @staticmethod
    def turns(all, turn):
        """Who comes second finds a warmer machine, or a busier one: the order changes with each turn."""
        return list(all) if turn % 2 == 0 else list(reversed(all))

    # Values and reasons.

    def record(self, row, server, value):
        self.values.setdefault((row, server.name), []).append(value)

    def cannot(self, row, server, why):
        """Tells why a server has no more figures in a row, or in all rows of a group."""
        self.lacks.setdefault((row, server.name), why)

    @contextlib.contextmanager
    def trying(self, row, server):
        try:
            yield
        except Cannot as why:
            self.cannot(row, server, str(why))
        except (OSError, KeyError, ValueError, subprocess.SubprocessError) as why:
            self.cannot(row, server, f"{type(why).__name__}: {why}")

    def start_all(self, row, make, threads=1, only=None, servers=None):
        """Starts the servers that can be; `only` is the start of rows that one that cannot does not have."""
        started = []
        for server in servers or self.servers:
            with self.trying(only or row, server):
                started.append(Running(self, server, make(server), threads))
        # Clients have a CPU that no server has, where there is one.
        os.sched_setaffinity(0, {CLIENT_CPU} if threads == 1 or len(CPUS) <= threads else set(CPUS[threads:]))
        return started

    def starts(self, row, make, only=None, prefix=None):
        """Starts the servers once a round, and records how long that takes; gives those of the last round. What takes
        long is done once."""
        prefix, running = prefix or f"{row}/", []
        for _ in range(self.rounds):
            slow = [each for each in running if each.start_s > SLOW_S]
            for each in running:
                if each not in slow:
                    each.stop()
            again = [server for server in self.servers if server.name not in {each.name for each in slow}]
            started = self.start_all(row, make, only=only, servers=again)
            for each in started:
                self.record(f"{prefix}start", each, each.start_s)
                self.record(f"{prefix}start-cpu", each, each.start_cpu_s)
            running = sorted(slow + started, key=lambda each: self.servers.index(each.server))
        for each in running:
            with self.trying(only or row, each):
                self.record(f"{prefix}memory", each, each.settled_pss() / 1e6)
        return running

    def reloads(self, row, running, times):
        """Records how long reloads take, once for a server where that is long."""
        slow = set()
        for turn in range(times):
            for each in self.turns(running, turn):
                if each not in slow:
                    with self.trying(row, each):
                        took = each.reload()
                        self.record(row, each, took)
                        each.rest()
                        if took > SLOW_S:
                            slow.add(each)

    def stop_all(self):
        for client in list(self.clients):
            self.finish(client)
        for each in list(self.running):
            each.stop()

    # Clients.

    def client(self, program, *arguments):
        """Runs a client to its end; what it says."""
        return self.end(self.begin(program, *arguments))

    def begin(self, program, *arguments, yielding=False):
        """Starts a client; a yielding one leaves its CPU to the others as soon as they want it."""
        nice = ["nice", "-n", "19"] if yielding else []
        process = subprocess.Popen([*nice, f"{self.directory}/{program}", *map(str, arguments)],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        process.line = None
        self.clients.append(process)
        return process

    def first_line(self, process):
        """What a client says before its input ends."""
        process.line = process.stdout.readline()
        return json.loads(process.line)

    def end(self, process):
        process.stdin.close()
        text = process.line or process.stdout.readline()
        status = self.finish(process)
        if status == 3:
            raise Cannot("the client was built without OpenSSL")
        if status or not text:
            raise Cannot(f"the client ended with status {status}")
        return json.loads(text)

    def finish(self, process):
        """Waits for the end of a client, for a while."""
        if process in self.clients:
            self.clients.remove(process)
        if not process.stdin.closed:
            process.stdin.close()
        try:
            return process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()
        finally:
            process.stdout.close()

    def load(self, each, connections, seconds, path, modulus=1, seed=0):
        """Keep-alive connections, each with one request at a time; what the client says, and the server's CPU time a
        request, us, as `cost`. Connections are open before it is measured."""
        process = self.begin("load", "keep", each.port, connections, seconds, path, modulus, seed + 1)
        process.stdout.readline()
        before = each.cpu_us()
        process.stdin.write("\n")
        said = self.end(process)
        if said["failed"] or said["other"]:
            raise Cannot(f"{path}: {said['failed']} requests failed, {said['other']} had another status than 200")
        if not said["done"]:
            raise Cannot(f"no response within {said['seconds']} s")
        said["cost"] = (each.cpu_us() - before) / said["done"]
        return said

    def cost(self, each, *load):
        return self.load(each, *load)["cost"]

    def spent(self, each, *arguments):
        """CPU time of a server for each of the client's exchanges, us."""
        before = each.cpu_us()
        said = self.client(*arguments)
        if said["failed"] or said["other"]:
            raise Cannot(f"{arguments[1]}: {said['failed']} failed, {said['other']} had another certificate")
        return (each.cpu_us() - before) / said["done"]

    def begin_bench(self, *arguments):
        return self.remember(subprocess.Popen(
            [self.bench, "bench", *arguments, "--json"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True))

    def remember(self, process):
        self.clients.append(process)
        return process

    def end_bench(self, process, interrupt=True):
        if interrupt:
            process.send_signal(signal.SIGINT)
        text = process.stdout.read()
        self.finish(process)
        return json.loads(text)["servers"][0] if text.strip() else None

    def bench_run(self, *arguments):
        said = self.end_bench(self.begin_bench(*arguments), interrupt=False)
        if not said:
            raise Cannot("`firstbyte bench` measured nothing")
        return said

    # Results.

    def reason(self, row, server):
        """Why there is no figure: said of the row, or of what its name begins with."""
        for (said, name), why in self.lacks.items():
            if name == server.name and (row == said or row.startswith(said + "/") or row.startswith(said + "-")):
                return why
        return None

    def result(self, row, title, unit, kind):
        """A row as it goes into the report."""
        out = {"row": row, "title": title, "unit": unit, "kind": kind, "servers": {}}
        for server in self.servers:
            values = self.values.get((row, server.name))
            if values:
                worst = min(values) if kind == "rate" else max(values)
                out["servers"][server.name] = {
                    "median": statistics.median(values), "worst": worst, "spread": spread(values), "rounds": values}
            else:
                out["servers"][server.name] = {"reason": self.reason(row, server) or "not measured"}
        compared = [out["servers"][server.name] for server in self.servers[:2]]
        apart = [each["spread"] for each in compared if "median" in each]
        out["inconclusive"] = kind in ("cost", "tail") and any(each is not None and each > SPREAD_MOST for each in apart)
        out["ratio"] = None
        if len(apart) == 2 and kind != "difference" and compared[1]["median"]:
            out["ratio"] = compared[0]["median"] / compared[1]["median"]
        return out


def spread(values):
    """How far rounds lie apart, as a share of their median; with five or more of them the outermost are left out."""
    if len(values) < 3:
        return None
    inner = sorted(values)[1:-1] if len(values) >= 5 else sorted(values)
    return (inner[-1] - inner[0]) / abs(statistics.median(values)) if statistics.median(values) else 0.0
