"""Servers that are measured: their configuration files, their processes, CPU time and memory."""

import os, re, resource, signal, socket, subprocess, time

# One worker of a server on the first CPU, clients on the second; with two threads a server has both, and clients the third
# where there is one.
CPUS = sorted(os.sched_getaffinity(0))
SERVER_CPU, CLIENT_CPU = CPUS[0], CPUS[1 % len(CPUS)]
STARTED_WITHIN, ANSWERED_WITHIN, STOPPED_WITHIN = 120, 60, 20


class Cannot(Exception):
    """Why a server has no figure in a row."""


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def ask(port, path="/generation", host="localhost", timeout=5):
    """One request on a connection of its own; status and body."""
    with socket.create_connection(("127.0.0.1", port), timeout) as line:
        line.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        text = b""
        while piece := line.recv(65536):
            text += piece
    head, _, body = text.partition(b"\r\n\r\n")
    return int(head[9:12] or 0), body.decode("latin-1")


class Server:
    """One of the command line: NAME=KIND:PATH."""

    def __init__(self, text):
        match = re.fullmatch(r"([\w.-]+)=(nginx|h2o):(.+)", text)
        if not match:
            raise ValueError(f"{text}: NAME=nginx:PATH or NAME=h2o:PATH")
        self.name, self.kind, self.path = match.groups()
        self.path = os.path.realpath(self.path)
        if not os.path.isfile(self.path) or not os.access(self.path, os.X_OK):
            raise ValueError(f"{self.path} cannot be run")

    def version(self):
        done = subprocess.run([self.path, "-v"], capture_output=True, text=True)
        return (done.stdout + done.stderr).strip().split("\n")[0]


class Conf:
    """The configuration that a group of rows gives one server, written anew for each generation: `/generation` answers with
    its number. `nginx` makes the text of the http block, `h2o` that of the hosts; one that is None is what `lacks` says."""

    host = "localhost"

    def __init__(self, nginx, h2o=None, lacks="", main=""):
        self.port, self.nginx, self.h2o, self.lacks, self.main = free_port(), nginx, h2o, lacks, main

    def write(self, server, path, generation, threads):
        # Whoever counts on the time of a file's last change sees another one.
        fresh = path + ".new"
        with open(fresh, "w") as out:
            if server.kind == "nginx":
                out.write(nginx_text(path, self.nginx(self, generation), threads, self.main))
            elif self.h2o:
                with open(f"{path}.{generation}.txt", "w") as answer:
                    answer.write(str(generation))
                out.write(h2o_text(self.h2o(self, f"{path}.{generation}.txt"), threads))
            else:
                raise Cannot(self.lacks)
        os.replace(fresh, path)

    def answers(self, generation):
        """Whether the server, asked on a new connection, has this generation."""
        return ask(self.port, host=self.host) == (200, str(generation))


CONNECTIONS = 19500
# CPU time of a server that does nothing within half a second.
IDLE_US = 2000


def nginx_text(path, http, threads, main):
    user = "user root;" if os.geteuid() == 0 else ""
    return (f"{user} worker_processes {threads}; daemon off; pid {path}.pid; error_log {path}.log error; {main}\n"
            f"events {{ worker_connections {CONNECTIONS}; }}\n"
            f"http {{\naccess_log off; sendfile on; tcp_nopush on;\n"
            f"keepalive_timeout 300s; keepalive_requests 100000000; types {{ text/plain txt; }}\n{http}\n}}\n")


def h2o_text(hosts, threads):
    user = "user: root\n" if os.geteuid() == 0 else ""
    # Certificates of nobody have no OCSP responder that could be asked.
    return f"{user}num-threads: {threads}\nmax-connections: {CONNECTIONS}\nhttp1-request-timeout: 300\n{hosts}\n"


class Running:
    """A server that was started, and answers."""

    def __init__(self, run, server, conf, threads=1, cpus=None):
        self.run, self.server, self.name, self.conf, self.threads = run, server, server.name, conf, threads
        self.port, self.generation = conf.port, 1
        self.path = f"{run.directory}/{server.name}-{run.next_number()}.conf"
        conf.write(server, self.path, 1, threads)
        cpus = cpus or ({SERVER_CPU} if threads == 1 else set(CPUS[:threads]))
        command = [server.path, "-m", "master", "-c", self.path] if server.kind == "h2o" else \
            [server.path, "-p", run.directory, "-c", self.path]
        began = time.perf_counter()
        with open(self.path + ".out", "wb") as out:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                            preexec_fn=lambda: os.sched_setaffinity(0, cpus))
        run.running.append(self)
        self.start_s = self.wait_for(1, began, STARTED_WITHIN)
        self.start_cpu_s = self.cpu_us() / 1e6

    def wait_for(self, generation, began, within):
        """Waits until the server answers with a generation; seconds since `began`."""
        while True:
            try:
                if self.conf.answers(generation):
                    return time.perf_counter() - began
            except OSError:
                pass
            if self.process.poll() is not None:
                raise Cannot(self.last_words() or f"it ended with status {self.process.returncode}")
            if time.perf_counter() > began + within:
                raise Cannot(self.last_words() or f"no answer within {within} seconds")
            # Each question takes a handshake of the server's one CPU where there is TLS.
            time.sleep(0.005)

    def last_words(self):
        lines = []
        for path in (self.path + ".out", self.path + ".log"):
            if os.path.exists(path):
                with open(path, errors="replace") as log:
                    lines += [line.strip() for line in log if "[emerg]" in line or self.server.kind == "h2o"]
        return lines[-1][-160:] if lines else ""

    def reload(self):
        """Writes the next generation and sends HUP; seconds until it answers."""
        self.generation += 1
        self.conf.write(self.server, self.path, self.generation, self.threads)
        began = time.perf_counter()
        self.process.send_signal(signal.SIGHUP)
        return self.wait_for(self.generation, began, ANSWERED_WITHIN)

    def family(self):
        waiting, found = [self.process.pid], []
        while waiting:
            pid = waiting.pop()
            try:
                tasks = os.listdir(f"/proc/{pid}/task")
            except FileNotFoundError:
                continue
            found.append(pid)
            for task in tasks:
                try:
                    with open(f"/proc/{pid}/task/{task}/children") as children:
                        waiting += map(int, children.read().split())
                except FileNotFoundError:
                    pass
        return found

    def cpu_us(self):
        """CPU time of all threads, as the scheduler counts it, system time included."""
        total = 0
        for pid in self.family():
            try:
                for task in os.listdir(f"/proc/{pid}/task"):
                    with open(f"/proc/{pid}/task/{task}/schedstat") as stat:
                        total += int(stat.read().split()[0])
            except (FileNotFoundError, ProcessLookupError):
                pass
        return total / 1000

    def rest(self, within=20):
        """Waits until the server has nothing to do for half a second: after a reload the old configuration is let go, or an old
        worker ends, on the CPU that other servers are measured on."""
        until, last = time.perf_counter() + within, self.cpu_us()
        while time.perf_counter() < until:
            time.sleep(0.5)
            now = self.cpu_us()
            # The threads of an old worker that has ended are not counted any more.
            if 0 <= now - last < IDLE_US:
                return
            last = now

    def pss(self):
        """Bytes of memory of all processes; pages that some share are divided among them."""
        total = 0
        for pid in self.family():
            try:
                with open(f"/proc/{pid}/smaps_rollup") as lines:
                    total += sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
            except (FileNotFoundError, ProcessLookupError):
                pass
        return total

    def settled_pss(self, within=12):
        """Memory once old processes are gone and it stays within 1 % for a second, or after a while."""
        until, last = time.perf_counter() + within, self.pss()
        while time.perf_counter() < until:
            time.sleep(1)
            now = self.pss()
            if abs(now - last) <= last * 0.01:
                return now
            last = now
        return last

    def stop(self):
        if self not in self.run.running:
            return
        self.run.running.remove(self)
        family = self.family()
        self.process.terminate()
        try:
            self.process.wait(STOPPED_WITHIN)
        except subprocess.TimeoutExpired:
            for pid in family:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            self.process.wait()


def descriptors():
    """Raises the limit of descriptors as far as it goes, for the servers too; the limit."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard
