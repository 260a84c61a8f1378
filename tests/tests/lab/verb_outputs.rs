//! Outputs of all verbs and of nginx's own options that cannot be written: an error and exit status 1. A closed pipe is none.

use std::fs::File;
use std::process::{Command, Output, Stdio};

use crate::lab::{COUNTRIES, LOG_LINE, bench, server, url};
use firstbyte_tests::source::{code, is_test_file, read, rust_files, shipped_lines, shown};
use firstbyte_tests::via::{NO_LINK, possible};
use firstbyte_tests::{Server, TempDir, peer, run, verbs};

/// Runs the binary with standard output in a place of its own.
fn run_to(stdout: Stdio, words: &[&str]) -> Output {
    let mut command = Command::new(peer::binary());
    let command = command.args(words).stdin(Stdio::null()).stdout(stdout);
    command.output().expect("it starts")
}

/// A file on a disk that is full.
fn full() -> Stdio {
    let file = File::options().write(true).open(FULL);
    file.expect("the system has one").into()
}

/// A pipe without a reader.
fn closed() -> Stdio {
    let (reader, writer) = std::io::pipe().expect("there are descriptors");
    drop(reader);
    writer.into()
}

/// Command lines of verbs that print a report, with the files and servers that they need.
struct Reports {
    server: Server,
    dir: TempDir,
}

impl Reports {
    fn new() -> Self {
        let (server, dir) = (server(), TempDir::new());
        let page = url(&server, 1, "/100.txt");
        let short = ["--requests", "20", "--blocks", "2", "--json", &page];
        dir.write("a.json", bench(&short).stdout);
        dir.write("www/index.html", "<p>");
        dir.write("geoip", COUNTRIES);
        dir.write("a.log", LOG_LINE);
        Self { server, dir }
    }

    fn path(&self, name: &str) -> String {
        self.dir.path().join(name).display().to_string()
    }

    /// The words of each verb.
    fn lines(&self) -> Vec<Vec<String>> {
        let page = url(&self.server, 1, "/100.txt");
        let conf = self.server.path("nginx.conf").display().to_string();
        let prefix = self.server.dir().path().display().to_string();
        let (report, www, out) = (self.path("a.json"), self.path("www"), self.path("out"));
        let (geoip, log) = (self.path("geoip"), self.path("a.log"));
        let lines: [&[&str]; 15] = [
            &["bench", "--requests", "20", &page],
            &["bench", "--requests", "20", "--json", &page],
            &["compare", &report, &report],
            &["compare", "--json", &report, &report],
            &["doctor", "-c", &conf],
            &["explain", "-p", &prefix, "-c", &conf, &page],
            &["explain", "--json", "-p", &prefix, "-c", &conf, &page],
            &["freeze", &www, "--out", &out],
            &["lint", "-c", &conf],
            &["lint", "--sarif", "-c", &conf],
            &["map", "--geoip", &geoip, &log],
            &["map", "--json", "--geoip", &geoip, &log],
            &["waterfall", "--wire", &page],
            &["experiment", "power", "--effect", "1%"],
            &["experiment", "power", "--effect", "1%", "--json"],
        ];
        let owned = |words: &&[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        lines.iter().map(owned).collect()
    }
}

#[track_caller]
fn assert_full(output: &Output, words: &[&str]) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    let is_told = stderr.contains("cannot write standard output: 28: No space left on device");
    assert!(
        is_told && output.status.code() == Some(1),
        "{words:?}: {output:?}"
    );
}

#[test]
fn a_report_that_cannot_be_printed_is_an_error() {
    if !peer::is_firstbyte() {
        return;
    }
    let reports = Reports::new();
    let lines = reports.lines();
    // `via` has the output of its command, and `lab` serves its pages.
    let has_report = |verb: &&String| !["via", "lab"].contains(&verb.as_str());
    for verb in verbs().iter().filter(has_report) {
        let is_tested = lines.iter().any(|words| words[0] == *verb);
        assert!(is_tested, "{verb} has no report here");
    }
    for words in &lines {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        assert_full(&run_to(full(), &words), &words);
        let piped = run_to(closed(), &words);
        let stderr = String::from_utf8_lossy(&piped.stderr);
        assert!(!stderr.contains("cannot write"), "{words:?}: {stderr}");
        assert_eq!(
            piped.status.code(),
            Some(run(&words).code),
            "{words:?}: {stderr}"
        );
    }
}

#[test]
fn help_and_configuration_that_cannot_be_printed_are_errors() {
    let server = Server::http("server { listen 127.0.0.1:%%PORT%%; }").written();
    let dump: Vec<String> = server.arguments();
    let mut dump: Vec<&str> = dump.iter().map(String::as_str).collect();
    dump.push("-T");
    if !peer::is_firstbyte() {
        return;
    }
    let verbs = verbs();
    assert!(verbs.len() >= 7, "{verbs:?}");
    let helps = verbs.iter().map(|verb| vec![verb.as_str(), "--help"]);
    for words in helps.chain([dump, vec!["help"], vec!["--help"], vec!["--version"]]) {
        assert_full(&run_to(full(), &words), &words);
        let piped = run_to(closed(), &words);
        let stderr = String::from_utf8_lossy(&piped.stderr);
        assert!(
            piped.status.success() && !stderr.contains("cannot write"),
            "{words:?}: {stderr}"
        );
    }
    // nginx prints these on standard error.
    for words in ["-v", "-V", "-h"] {
        let status = |stderr: Stdio| {
            let mut command = Command::new(peer::binary());
            let command = command.arg(words).stdout(Stdio::null()).stderr(stderr);
            command.status().expect("it starts").code()
        };
        assert_eq!(
            [full(), closed()].map(status),
            [Some(1), Some(0)],
            "{words}"
        );
    }
}

#[test]
fn files_that_cannot_be_written_are_errors_and_keep_back_no_report() {
    if !peer::is_firstbyte() {
        return;
    }
    let reports = Reports::new();
    let page = url(&reports.server, 1, "/100.txt");
    let har = reports.path("a.har");
    assert_eq!(run(["waterfall", "--wire", "--har", &har, &page]).code, 0);
    let (bench, visit) = (["bench", "--requests", "20"], ["waterfall", "--wire"]);
    for (verb, option) in [
        (&bench[..], "--html"),
        (&bench, "--hdr"),
        (&visit, "--html"),
        (&visit, "--svg"),
        (&visit, "--har"),
    ] {
        let words = [verb, &[option, FULL, &page]].concat();
        let outcome = run(&words);
        let why = format!("cannot write {FULL}: 28: No space left on device");
        let is_told = outcome.stderr.contains(&why) && outcome.code == 1;
        assert!(
            is_told && !outcome.stdout.is_empty(),
            "{words:?}: {outcome:?}"
        );
    }
    for words in [
        &["waterfall", "compare", &har, &har, "--html", FULL][..],
        &["waterfall", "compare", &har, &har, "--svg", FULL],
        &["doctor", "--har", &har, "--html", FULL],
    ] {
        let outcome = run(words);
        let is_told = outcome.stderr.contains("28: No space left") && outcome.code == 1;
        assert!(
            is_told && !outcome.stdout.is_empty(),
            "{words:?}: {outcome:?}"
        );
    }
    let (www, manifest) = (reports.path("www"), reports.path("none/"));
    let freeze = run(["freeze", &www, "--out", FULL, "--manifest", &manifest]);
    assert_eq!(freeze.code, 1, "{freeze:?}");
}

#[test]
fn a_file_about_a_link_that_cannot_be_written_is_an_error_of_the_link() {
    if !peer::is_firstbyte() {
        return;
    }
    if !possible() {
        return;
    }
    let outcome = run(["via", "1ms", "--json", FULL, "--", "true"]);
    assert_eq!(outcome.code, NO_LINK, "{outcome:?}");
    assert!(outcome.stderr.contains("28: No space left"), "{outcome:?}");
}

/// The file system has a page; the head of the file fits, its packets do not.
#[test]
fn packets_that_cannot_be_written_are_an_error() {
    if !possible() {
        return;
    }
    let (server, dir) = (server(), TempDir::new());
    let page = url(&server, 1, "/100.txt");
    let small = dir.path().join("small").display().to_string();
    std::fs::create_dir(&small).expect("it is made");
    let file = format!("{small}/packets");
    let spec = format!("0ms,pcap={file}");
    let curl = format!("for i in $(seq 40); do curl -s -o /dev/null {page}; done");
    let cases: [(&[&str], i32); 3] = [
        (
            &["via", "0ms", "--pcap", &file, "--", "sh", "-c", &curl],
            NO_LINK,
        ),
        (&["bench", "--via", &spec, "--requests", "200", &page], 1),
        (
            &[
                "waterfall",
                "--wire",
                "--runs",
                "20",
                "--pcap",
                &file,
                &page,
            ],
            1,
        ),
    ];
    for (words, code) in cases {
        let mount = "mount -t tmpfs -o size=4k small \"$0\" && exec \"$@\"";
        let mut command = Command::new("unshare");
        let command = command.args(["--mount", "sh", "-c", mount, &small]);
        let output = command.arg(peer::binary()).args(words).output();
        let output = output.expect("unshare starts");
        let stderr = String::from_utf8_lossy(&output.stderr);
        let told = format!("{file} ends early: 28: No space left on device");
        assert!(stderr.contains(&told), "{words:?}: {stderr}");
        assert_eq!(output.status.code(), Some(code), "{words:?}: {stderr}");
    }
}

#[test]
fn standard_output_has_one_writer() {
    let mut findings = Vec::new();
    for path in rust_files("") {
        let name = shown(&path);
        let is_shipped = !["/examples/", "/build.rs", "fuzz/"]
            .iter()
            .any(|part| name.contains(part));
        if name == WRITER || name == WIDTH || !is_shipped || is_test_file(&path) {
            continue;
        }
        let text = read(&path);
        let written = shipped_lines(&text).filter(|(_, line)| {
            let line = code(line).replace(concat!("eprint", "ln!("), "");
            line.contains("io::stdout()") || line.contains(concat!("print", "ln!("))
        });
        findings.extend(written.map(|(n, line)| format!("{name}:{n}: {}", line.trim())));
    }
    assert!(
        findings.is_empty(),
        "{WRITER} reports errors, these may not: {findings:#?}"
    );
}

/// The one file that writes to standard output.
const WRITER: &str = "app/src/stdout.rs";
/// It reads the size of the terminal.
const WIDTH: &str = "app/src/terminal.rs";
/// Each write to it fails.
const FULL: &str = "/dev/full";
