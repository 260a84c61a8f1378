"""Many small files: 20,000 of 2 KB, and 1,000,000 of 1 KB."""

import os, sys, time

from .servers import Conf

FILES = [
    ("files/random", "20,000 files of 2 KB, random", "us", "cost"),
    ("files/one", "one file of 2 KB", "us", "cost"),
    ("files/memory", "memory after them", "MB", "memory"),
]
MILLION = [
    ("million/random", "1,000,000 files of 1 KB, random", "us", "cost"),
    ("million/one", "one file of 1 KB", "us", "cost"),
    ("million/memory", "memory after them", "MB", "memory"),
]

# What the machine may read from disks in a window of which nothing is said, kilobytes.
DISK_KB = 4_000


def conf(root):
    return Conf(
        lambda c, n: f"server {{ listen 127.0.0.1:{c.port} backlog=4096; root {root};\n"
                     f"location = /generation {{ return 200 {n}; }} }}",
        lambda c, n: f"listen: {{host: 127.0.0.1, port: {c.port}}}\n"
                     f"hosts:\n  default:\n    paths:\n"
                     f"      /generation: {{file.file: {n}}}\n      /: {{file.dir: {root}}}\n")


def make(directory, count, size):
    """Writes files of a size, a thousand directories of them, each with bytes of its own."""
    done, began = os.path.join(directory, f"complete-{count}"), time.perf_counter()
    if os.path.exists(done):
        return
    os.makedirs(directory, exist_ok=True)
    os.chmod(directory, 0o755)
    for number in range(min(count, 1000)):
        os.makedirs(f"{directory}/{number:03}", exist_ok=True)
        os.chmod(f"{directory}/{number:03}", 0o755)
    filling = b"x" * size
    for number in range(count):
        # Their own way to a file: os.open is half of open()'s time, and there are a million.
        file = os.open(f"{directory}/{number % 1000:03}/{number:05}.bin", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.write(file, b"%012d" % number + filling[12:])
        os.close(file)
        if number % 100_000 == 99_999:
            print(f"scale: {number + 1} files after {time.perf_counter() - began:.0f} s", file=sys.stderr)
    with open(done, "w") as out:
        out.write(f"{time.perf_counter() - began:.1f}\n")


def read_all(directory, count):
    """Reads all files, so that none is on the disk alone: a kernel may take what nobody read for a minute out of its cache."""
    for number in range(count):
        file = os.open(f"{directory}/{number % 1000:03}/{number:05}.bin", os.O_RDONLY)
        os.read(file, 4096)
        os.close(file)


def kilobytes_read():
    """Kilobytes that the machine has read from its disks."""
    with open("/proc/vmstat") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("pgpgin "))


def measure(run, name, directory, count, seconds):
    running = run.start_all(name, lambda _: conf(directory))
    for each in running:
        # Twice as many requests as files bring a server to what it keeps.
        with run.trying(name, each):
            asked = 0
            until = time.perf_counter() + 6 * seconds
            while asked < 2 * count and time.perf_counter() < until:
                asked += run.load(each, 64, seconds, "/#/@.bin", count, asked)["done"]
    for turn in range(run.rounds):
        read_all(directory, count)
        for each in run.turns(running, turn):
            with run.trying(name, each):
                before = kilobytes_read()
                run.record(f"{name}/random", each, run.cost(each, 64, seconds, "/#/@.bin", count, turn))
                read = kilobytes_read() - before
                if read > DISK_KB:
                    run.note(f"{name}, round {turn + 1}, {each.name}: {read / 1000:.0f} MB were read from disks")
                run.record(f"{name}/one", each, run.cost(each, 64, seconds, "/000/00000.bin"))
    for each in running:
        with run.trying(name, each):
            run.record(f"{name}/memory", each, each.pss() / 1e6)


def files(run):
    directory, count = f"{run.directory}/files", run.size(20_000, 400)
    make(directory, count, 2048)
    measure(run, "files", directory, count, run.seconds(1.5))


def million(run):
    count = run.size(1_000_000, 2000)
    directory = run.options.million or f"{run.directory}/million"
    began = time.perf_counter()
    make(directory, count, 1024)
    run.note(f"{count:,} files of 1 KB in {directory}: made in {time.perf_counter() - began:.0f} s")
    measure(run, "million", directory, count, run.seconds(3))
    if not run.options.million:
        # A disk that is told of each free block (mount option discard) takes longer for this than for making them.
        print("scale: the files are removed at the end; --million DIRECTORY keeps them", file=sys.stderr)
