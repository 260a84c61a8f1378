//! Sections of the help and the man page of each verb that options do not have: exit status, examples, see also.

use clap::Command;

/// Manual of a verb.
#[derive(Debug)]
pub(crate) struct Manual {
    /// The verb.
    pub(crate) verb: &'static str,
    /// Its statuses, which are in [`TABLE`](super::status::TABLE), and their meaning for it.
    pub(crate) statuses: &'static [(&'static str, &'static str)],
    /// Command lines, and their purpose.
    pub(crate) examples: &'static [(&'static str, &'static str)],
    /// Pages of the manual and chapters of the documentation.
    pub(crate) see_also: &'static [&'static str],
}

impl Manual {
    /// The manual of a verb.
    pub(crate) fn of(verb: &str) -> Option<&'static Self> {
        MANUALS.iter().find(|manual| manual.verb == verb)
    }

    /// The sections as the help prints them.
    fn help(&self) -> String {
        let mut text = String::from("Exit status:\n");
        for (status, meaning) in self.statuses {
            text.push_str(&format!("  {status:<5}  {meaning}\n"));
        }
        text.push_str("\nExamples:\n");
        for (line, purpose) in self.examples {
            text.push_str(&format!("  {line}\n          {purpose}\n"));
        }
        text + "\nSee also: " + &self.see_also.join(", ")
    }
}

/// Adds the sections to the long help of a verb, behind the text that its options add.
pub(super) fn completed(verb: Command) -> Command {
    let Some(manual) = Manual::of(verb.get_name()) else {
        return verb;
    };
    let before = verb.get_after_help().map(|text| format!("{text}\n\n"));
    let text = before.unwrap_or_default() + &manual.help();
    verb.after_long_help(text)
}

/// Manuals of all verbs.
pub(crate) const MANUALS: [Manual; 11] = [
    Manual {
        verb: "bench",
        statuses: &[
            ("0", "all servers answered, and no condition holds"),
            (
                "1",
                "the command line is wrong, a server answered nothing, or a report could not be written",
            ),
            (
                "2",
                "a condition of --fail-if holds, or its figure was not measured",
            ),
            (
                "130",
                "a signal ended it; the report has what was measured until then",
            ),
        ],
        examples: &[
            (
                "firstbyte bench http://127.0.0.1:8080/",
                "ten connections for ten seconds",
            ),
            (
                "firstbyte bench http://127.0.0.1:8080/ --rate 500 --fail-if 'p99>50' --fail-if 'status.5xx>0'",
                "500 requests a second; status 2 if p99 exceeds 50 ms or a status is 5xx",
            ),
            (
                "firstbyte bench http://127.0.0.1:8080/ --against http://127.0.0.1:8081/ --html report.html",
                "two servers in random turns, compared",
            ),
        ],
        see_also: &[
            "firstbyte(8)",
            "firstbyte-compare(1)",
            "firstbyte-via(1)",
            "docs/lab.md",
            "docs/verbs.md",
        ],
    },
    Manual {
        verb: "compare",
        statuses: &[
            ("0", "the comparison is printed"),
            (
                "1",
                "the command line is wrong, or a report cannot be read or compared",
            ),
        ],
        examples: &[(
            "firstbyte compare before.json after.json",
            "two reports of firstbyte bench --blocks 10 --json",
        )],
        see_also: &["firstbyte-bench(1)", "docs/lab.md", "docs/verbs.md"],
    },
    Manual {
        verb: "doctor",
        statuses: &[
            ("0", "no finding has the level of --fail-on"),
            (
                "1",
                "the command line is wrong, the target cannot be examined, or a report could not be written",
            ),
            ("2", "a finding has the level of --fail-on, or a higher one"),
            ("130", "a signal ended it; findings until then are printed"),
        ],
        examples: &[
            (
                "firstbyte doctor https://www.example.org/",
                "examine a server",
            ),
            (
                "firstbyte doctor -c /etc/nginx/nginx.conf --fail-on warn",
                "analyze a configuration; status 2 from warnings on",
            ),
            (
                "firstbyte doctor --pcap trace.pcap --keylog trace.keys --json",
                "analyze a packet capture",
            ),
        ],
        see_also: &[
            "firstbyte(8)",
            "firstbyte-waterfall(1)",
            "docs/doctor.md",
            "docs/verbs.md",
        ],
    },
    Manual {
        verb: "experiment",
        statuses: &[
            ("0", "the answer is printed"),
            (
                "1",
                "the command line is wrong, or a log or a store cannot be read",
            ),
        ],
        examples: &[
            (
                "firstbyte experiment power --effect 0.6% --users-per-day 20000",
                "users and days that a difference of 0.6 % needs",
            ),
            (
                "firstbyte experiment power --effect 2% --log access.log -c /etc/nginx/nginx.conf",
                "users differ by $request_time as in a log",
            ),
            (
                "firstbyte experiment report fast --store sqlite:/var/lib/firstbyte/lab/store.db --html report.html",
                "verdict of the experiment \"fast\" so far, and a page with its figures",
            ),
        ],
        see_also: &[
            "firstbyte-lab(1)",
            "docs/experiments.md",
            "docs/experiment-report.md",
            "docs/statistics.md",
            "docs/verbs.md",
        ],
    },
    Manual {
        verb: "explain",
        statuses: &[
            ("0", "the request is explained, whatever its answer is"),
            (
                "1",
                "the command line is wrong, the configuration has an error, or no server listens there",
            ),
        ],
        examples: &[
            (
                "firstbyte explain -c nginx.conf http://shop.example/img/a.png",
                "the answer, and the lines that decide it",
            ),
            (
                "firstbyte explain --to 127.0.0.1:8080 --from 192.0.2.7 --json http://shop.example/",
                "sent to another address and port, from this client",
            ),
        ],
        see_also: &[
            "firstbyte(8)",
            "firstbyte.conf(5)",
            "docs/explain.md",
            "docs/verbs.md",
        ],
    },
    Manual {
        verb: "freeze",
        statuses: &[
            ("0", "the frozen tree is complete"),
            (
                "1",
                "the command line is wrong, or a file cannot be read or written; the previous tree is kept",
            ),
            (
                "2",
                "with --strict: a reference is broken or blocked; the tree is still written",
            ),
        ],
        examples: &[
            (
                "firstbyte freeze www --out frozen",
                "hashes in names, and compressed copies",
            ),
            (
                "firstbyte freeze www --out frozen --exclude drafts/ --strict",
                "without a directory; status 2 if a reference is broken",
            ),
        ],
        see_also: &["firstbyte.conf(5)", "docs/freeze.md", "docs/verbs.md"],
    },
    Manual {
        verb: "lab",
        statuses: &[
            ("0", "a signal has ended it"),
            (
                "1",
                "the command line is wrong, the store could not be read, or the address is in use",
            ),
        ],
        examples: &[
            (
                "firstbyte lab --store sqlite:/var/lib/firstbyte/lab/store.db",
                "the store of this machine, on http://127.0.0.1:7070/",
            ),
            (
                "firstbyte lab --store clickhouse:https://db.example/visits --user lab --password-file /etc/firstbyte/lab.password",
                "the store of a fleet",
            ),
        ],
        see_also: &["firstbyte-map(1)", "docs/dashboard.md", "docs/fleet.md"],
    },
    Manual {
        verb: "lint",
        statuses: &[
            ("0", "no warning has the level of --fail-on"),
            (
                "1",
                "the command line is wrong, the configuration cannot be read, or the report could not be written",
            ),
            ("2", "a warning has the level of --fail-on, or a higher one"),
        ],
        examples: &[
            (
                "firstbyte lint -c nginx.conf --fail-on error",
                "all warnings; status 2 from errors on",
            ),
            (
                "firstbyte lint -c nginx.conf --sarif --ignore FB304,FB305",
                "a report for a code host, without two rules",
            ),
        ],
        see_also: &[
            "firstbyte(8)",
            "firstbyte-explain(1)",
            "docs/lint.md",
            "docs/verbs.md",
        ],
    },
    Manual {
        verb: "map",
        statuses: &[
            ("0", "the map is drawn, or a signal ended --follow"),
            (
                "1",
                "the command line is wrong, no line can be used, or a file could not be read or written",
            ),
            (
                "130",
                "a signal ended the reading; the report has the lines until then",
            ),
        ],
        examples: &[
            (
                "firstbyte map -c /etc/nginx/nginx.conf /var/log/nginx/access.log --html map.html",
                "the log of a server, with the format of its configuration",
            ),
            (
                "firstbyte map access.log access.log.1 access.log.2.gz --json",
                "a log and its rotated files, as figures for programs",
            ),
            (
                "firstbyte map --follow access.log --svg map.svg",
                "a map that is redrawn every 5 seconds",
            ),
        ],
        see_also: &[
            "firstbyte(8)",
            "firstbyte-lint(1)",
            "docs/map.md",
            "docs/verbs.md",
        ],
    },
    Manual {
        verb: "via",
        statuses: &[
            ("0", "the command has ended with 0"),
            (
                "125",
                "the command line is wrong, there is no link, or its report could not be written",
            ),
            ("126", "the command cannot be started"),
            ("127", "there is no such command"),
            (
                "other",
                "the status of the command; 128 plus the number of the signal that ended it",
            ),
        ],
        examples: &[
            (
                "firstbyte via 50ms,20mbit -- curl -o /dev/null http://127.0.0.1:8080/",
                "a request over a round trip of 50 ms",
            ),
            (
                "firstbyte via 100ms,loss=1% --server 'python3 -m http.server 80' -- curl http://server.via/",
                "a server in a network of its own",
            ),
        ],
        see_also: &[
            "firstbyte-bench(1)",
            "firstbyte-waterfall(1)",
            "docs/link.md",
            "docs/verbs.md",
        ],
    },
    Manual {
        verb: "waterfall",
        statuses: &[
            ("0", "the page is drawn, and no condition holds"),
            (
                "1",
                "the command line is wrong, the page could not be visited, or a file could not be read or written",
            ),
            (
                "2",
                "a condition of --fail-if holds, or its figure was not measured",
            ),
            ("130", "a signal ended the visits"),
        ],
        examples: &[
            (
                "firstbyte waterfall https://localhost:8443/ -k --html page.html",
                "a visit by Chromium, as a page",
            ),
            (
                "firstbyte waterfall --wire http://127.0.0.1:8080/ --fail-if 'requests>50' --fail-if 'load>2000'",
                "a budget; status 2 if the page exceeds it",
            ),
            (
                "firstbyte waterfall compare before.har after.har --svg both.svg",
                "two HAR files on one axis",
            ),
        ],
        see_also: &[
            "firstbyte-doctor(1)",
            "firstbyte-via(1)",
            "docs/waterfall.md",
            "docs/verbs.md",
        ],
    },
];
