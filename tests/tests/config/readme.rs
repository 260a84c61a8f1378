//! README.md: each command in a block marked `sh` works, and the figures are filled in.
//!
//! The commands run in a copy of the example site on another port. Absent: the values of the figures, which `make
//! readme-figures` measures.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use firstbyte_tests::dir::set_mode;
use firstbyte_tests::programs::command;
use firstbyte_tests::source::root;
use firstbyte_tests::via::possible;
use firstbyte_tests::{Server, TempDir, peer};

fn readme() -> String {
    fs::read_to_string(root().join("README.md")).expect("it is there")
}

/// The lines of the blocks marked `sh`.
fn commands(text: &str) -> Vec<&str> {
    let blocks = text.split("```").skip(1).step_by(2);
    let blocks = blocks.filter_map(|block| block.strip_prefix("sh\n"));
    blocks.flat_map(str::lines).collect()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).expect("the example").flatten() {
        let (path, copied) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() && entry.file_name() != "run" {
            copy(&path, &copied);
        } else if path.is_file() {
            fs::copy(&path, &copied).expect("a file");
        }
    }
}

/// The example site in the directory of the commands, and a server of it.
fn example() -> (TempDir, Server) {
    let dir = TempDir::new();
    set_mode(dir.path(), 0o755);
    for folder in ["conf", "examples/site"] {
        copy(&root().join(folder), &dir.path().join(folder));
    }
    let site = dir.path().join("examples/site");
    fs::create_dir_all(site.join("run")).expect("a directory");
    let conf = fs::read_to_string(site.join("nginx.conf")).expect("the example's configuration");
    assert!(conf.contains("127.0.0.1:8080") && conf.contains("../../conf"));
    let html = site.join("html").display().to_string();
    let server = conf
        .replace("127.0.0.1:8080", "127.0.0.1:%%PORT%%")
        .replace("../../conf", &root().join("conf").display().to_string())
        .replace("root        html;", &format!("root {html};"))
        .replace("stderr notice", "error.log info");
    let server = Server::whole(&format!("%%USER%%\n{server}"));
    let server = server.file("run/empty", "").start();
    let own = conf.replace("127.0.0.1:8080", &format!("127.0.0.1:{}", server.port()));
    fs::write(site.join("nginx.conf"), own).expect("the copy can be written");
    (dir, server)
}

fn run(dir: &TempDir, server: &Server, line: &str) -> Option<Output> {
    let line = line
        .replace(":8080", &format!(":{}", server.port()))
        .replace("--duration 5", "--duration 0.2");
    let mut words = line.split(' ');
    assert_eq!(words.next(), Some("firstbyte"), "{line}");
    if line.contains(" via ") && (!possible() || command("curl").is_none()) {
        return None;
    }
    let mut command = Command::new(peer::binary());
    command.args(words).current_dir(dir.path());
    Some(command.output().expect("it can be run"))
}

#[test]
fn each_command_works() {
    let (text, (dir, server)) = (readme(), example());
    let commands = commands(&text);
    let (targets, verbs): (Vec<&str>, Vec<&str>) =
        commands.iter().partition(|line| line.starts_with("make "));
    assert_eq!(targets, ["make serve", "make test"]);
    for line in targets {
        let mut make = Command::new("make");
        make.arg("-n")
            .args(line.split(' ').skip(1))
            .current_dir(root());
        let output = make.output().expect("there is make");
        assert!(output.status.success(), "{line}: {output:?}");
    }
    // Expected output by verb.
    let said = [
        (" -t ", "test is successful"),
        (" explain ", "\nanswer    404"),
        (" bench ", "  responses/s "),
        (" freeze ", ""),
        (" doctor ", "found nothing above note."),
        (" waterfall ", "\n  page            http://127.0.0.1:"),
        (" via ", ""),
    ];
    assert_eq!(verbs.len(), said.len(), "{verbs:?}");
    for (line, (verb, expected)) in verbs.iter().zip(said) {
        assert!(line.contains(verb), "{line}");
        let Some(output) = run(&dir, &server, line) else {
            continue;
        };
        let text = [&output.stdout[..], &output.stderr[..]].concat();
        let text = String::from_utf8_lossy(&text);
        assert!(
            output.status.success() && text.contains(expected),
            "{line}: {text}"
        );
    }
    assert!(dir.path().join("target/frozen").is_dir());
}

#[test]
fn the_figures_are_filled_in() {
    let text = readme();
    let (_, rest) = text.split_once("<!-- begin of figures").expect("a mark");
    let (table, _) = rest.split_once("<!-- end of figures -->").expect("a mark");
    let rows: Vec<&str> = table
        .lines()
        .filter(|line| line.starts_with("| "))
        .collect();
    assert!(rows.len() > 5 && rows[0].contains("firstbyte"), "{table}");
    let is_number = |cell: &str| cell.trim().replace(',', "").parse::<f64>().is_ok();
    for row in &rows[1..] {
        assert!(row.split('|').nth(2).is_some_and(is_number), "{row}");
    }
}
