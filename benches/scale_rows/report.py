"""A report of one run in Markdown, for benches/results."""

import datetime, os, re, textwrap

WIDTH = 128
ENOUGH = 3


def machine():
    """The processors of this machine as a part of a file's name: `amd-epyc-2-cpus`."""
    with open("/proc/cpuinfo") as info:
        found = re.search(r"^model name\s*: (.*)$", info.read(), re.M)
    model = re.sub(r"\((R|TM)\)|@.*|\b(CPU|Processor|\d+-Core)\b", " ", found.group(1) if found else os.uname().machine)
    words = re.findall(r"[a-z0-9]+", model.lower())
    return "-".join([*words, str(os.cpu_count()), "cpus"])


def place(folder):
    """The default path of a report: DATE-MACHINE.md, with `-2` and so on if the file exists."""
    stem = f"{datetime.date.today().isoformat()}-{machine()}"
    names = (f"{stem}{suffix}.md" for suffix in ("", *(f"-{n}" for n in range(2, 1000))))
    return next(path for path in (os.path.join(folder, name) for name in names) if not os.path.exists(path))


def figure(value):
    """A number with three significant digits, and with commas from 1,000 on."""
    if value is None:
        return "-"
    most = abs(value)
    digits = 0 if most >= 100 or value == int(value) else 1 if most >= 10 else 2 if most >= 1 else 3
    return f"{value:,.{digits}f}"


def cell(of, kind):
    if "median" not in of:
        return "-"
    if kind == "most" or len(of["rounds"]) < ENOUGH:
        return figure(of["median"])
    return f"{figure(of['median'])} ({figure(of['worst'])})"


def ratio(result):
    if result["inconclusive"]:
        return "inconclusive"
    return "-" if result["ratio"] is None else f"{result['ratio']:.2f}"


def table(results, names):
    compares = len(names) > 1
    head = ["row", "", *names, *([f"{names[0]} / {names[1]}"] if compares else [])]
    lines = [head, ["---", "---", *["--:"] * (len(head) - 2)]]
    group = ""
    for result in results:
        title = result["title"]
        # A title that begins with blanks continues the title above it.
        group, title = (group, f"{group}: {title.strip()}") if title.startswith(" ") else (title.split(":")[0], title)
        cells = [cell(result["servers"][name], result["kind"]) for name in names]
        lines.append([title, result["unit"], *cells, *([ratio(result)] if compares else [])])
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def text(results, conditions, remarks, command):
    """The whole report; `remarks` are the reasons for missing figures and the notes of the run."""
    date, names = datetime.date.today().isoformat(), list(conditions["servers"])
    versions = [f"- {name}: {of['version']}" for name, of in conditions["servers"].items()]
    rounds = conditions["rounds"]
    intro = (f"Written by `benches/scale --report`. A figure is the median of {rounds} round{'s' * (rounds > 1)}. From {ENOUGH} "
             "rounds on its worst round is in brackets. A ratio is `inconclusive` if the rounds of a server differ by more than "
             "35 % of their median.")
    machine_text = (f"{machine()}, Linux {conditions['kernel']}; {conditions['seconds']:.0f} s; load average "
                    f"{conditions['load_before'][0]:.1f} before and {conditions['load_after'][0]:.1f} after; "
                    f"processors {conditions['busy'] * 100:.0f} % busy, {conditions['busy_by_others'] * 100:.0f} % by other "
                    f"programs, {conditions['steal'] * 100:.1f} % by other machines (steal).")
    parts = [f"# Servers compared, {date}\n", textwrap.fill(intro, WIDTH) + "\n", f"```\n{command}\n```\n",
             textwrap.fill(machine_text, WIDTH) + "\n", "\n".join(versions) + "\n", table(results, names)]
    if remarks:
        lines = (remark if remark.startswith("- ") else f"- {remark}" for remark in remarks)
        parts.append("\n".join(textwrap.fill(line, WIDTH, subsequent_indent="  ") for line in lines) + "\n")
    return "\n".join(parts)
