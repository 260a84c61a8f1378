//! Golden configurations: the result of loading each `tests/conf/*.conft` is the warnings, then the displayed error, or
//! `ok`.
//!
//! `==== host NAME ADDRESS ...` is a host known to the system.

#[path = "../../conf/tests/cases/mod.rs"]
mod cases;

use std::path::{Path, PathBuf};

use cases::{COMMAND_LINE, files};
use conf::Memory;
use server_http::LoadOptions;
use server_modules::MODULES;

const MAIN_FILE: &str = "/etc/nginx/nginx.conf";
const HOST: &str = "host ";

/// The result of loading the text before `----`.
fn given(text: &str) -> String {
    let mut memory = Memory::default();
    let mut globals = None;
    for (header, text) in files(MAIN_FILE, text) {
        match header {
            COMMAND_LINE => globals = Some(text.trim_end().to_owned()),
            _ => match header.strip_prefix(HOST) {
                Some(host) => {
                    let mut words = host.split_whitespace();
                    let name = words.next().expect("a host has a name");
                    let addresses = words.map(|ip| ip.parse().expect("an address"));
                    memory.add_host(name, addresses.collect());
                    // The following text belongs to the file before.
                    assert_eq!(text, "", "a host stands behind all files");
                }
                None => memory.add_file(header, text),
            },
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
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/conf");
    cases::check(&folder, 40, given);
}
