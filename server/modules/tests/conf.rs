//! Golden configurations: each `tests/conf/*.conft` is a configuration, a line `----`, and the expected result of
//! loading it.
//!
//! The result is the warnings, then the error as it is shown, or `ok`. Files besides the main one follow lines `====
//! /path`; `==== -g` is the command line, `==== host NAME ADDRESS ...` a host that the system knows. `UPDATE_GOLDEN=1`
//! writes the actual result into the file.

use std::fs;
use std::path::{Path, PathBuf};

use conf::Memory;
use server_http::LoadOptions;
use server_modules::MODULES;

const MAIN_FILE: &str = "/etc/nginx/nginx.conf";
const COMMAND_LINE: &str = "-g";
const HOST: &str = "host ";

fn cases() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/conf");
    let entries = fs::read_dir(folder).expect("the folder is part of the tree");
    let mut paths: Vec<_> = entries
        .map(|entry| entry.expect("the folder can be read").path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "conft")
        })
        .collect();
    paths.sort();
    paths
}

/// The result of loading the text before `----`.
fn given(text: &str) -> String {
    let mut memory = Memory::default();
    let mut globals = None;
    let mut files = vec![(MAIN_FILE, String::new())];
    for line in text.split_inclusive('\n') {
        match line.strip_prefix("==== ") {
            Some(header) if header.starts_with(HOST) => {
                let mut words = header[HOST.len()..].split_whitespace();
                let name = words.next().expect("a host has a name");
                let addresses = words.map(|ip| ip.parse().expect("an address"));
                memory.add_host(name, addresses.collect());
            }
            Some(path) => files.push((path.trim_end(), String::new())),
            None => files
                .last_mut()
                .expect("the main file is there")
                .1
                .push_str(line),
        }
    }
    for (path, text) in files {
        match path {
            COMMAND_LINE => globals = Some(text.trim_end().to_owned()),
            _ => memory.add_file(path, text),
        }
    }
    let options = LoadOptions {
        conf_path: PathBuf::from(MAIN_FILE),
        prefix: PathBuf::from("/usr/share/nginx"),
        globals,
        error_log: None,
        access_log: PathBuf::from("/var/log/nginx/access.log"),
    };
    let (mut shown, end) = match server_http::load(memory, &options, MODULES) {
        Ok(cycle) => (cycle.warnings, "ok".to_owned()),
        Err(refused) => (refused.warnings, refused.error.render(&refused.files)),
    };
    shown.push(end);
    shown.join("\n")
}

#[test]
fn golden_configurations_give_what_they_say() {
    let mut failed = Vec::new();
    let paths = cases();
    for path in &paths {
        let case = fs::read_to_string(path).expect("a case can be read");
        let (text, expected) = case.split_once("----\n").expect("a case has a line ----");
        let given = given(text);
        if given == expected.trim_end() {
            continue;
        }
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            fs::write(path, format!("{text}----\n{given}\n")).expect("a case can be written");
        }
        failed.push(format!(
            "{}\nexpected:\n{expected}\ngiven:\n{given}\n",
            path.display()
        ));
    }
    assert!(paths.len() >= 40, "only {} cases", paths.len());
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
