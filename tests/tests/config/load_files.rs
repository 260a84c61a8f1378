//! Loading ends, whatever the configuration names: pipes, devices, and texts without end are refused.
//!
//! Source: docs/differences.md.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use firstbyte_tests::{Server, run};

fn pipe(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status();
    assert!(made.is_ok_and(|status| status.success()));
}

/// Output of `-t` for a configuration with this in its server, after `prepare` in its directory.
fn tested(inner: &str, prepare: impl FnOnce(&Path)) -> (i32, String) {
    let server = Server::whole(&format!(
        "daemon off; pid %%DIR%%/nginx.pid; error_log %%DIR%%/error.log; events {{ }}
         http {{ access_log off; server {{ listen 127.0.0.1:%%PORT%%; \n{inner}\n }} }}"
    ))
    .allow("[emerg]")
    .file("html/f", "")
    .prepare(prepare)
    .written();
    let mut arguments = server.arguments();
    arguments.push("-t".to_owned());
    let outcome = run(arguments);
    (outcome.code, outcome.stderr)
}

#[test]
fn a_pipe_or_a_device_is_no_configuration() {
    for inner in [
        "include %%DIR%%/pipe;",
        "include %%DIR%%/pi*;",
        "ssl_certificate %%DIR%%/pipe; ssl_certificate_key %%DIR%%/pipe; listen unix:%%DIR%%/s ssl;",
    ] {
        let (code, said) = tested(inner, |dir| pipe(&dir.join("pipe")));
        assert_eq!(code, 1, "{inner}: {said}");
        assert!(said.contains("not a regular file"), "{inner}: {said}");
    }
    let (code, said) = tested("include /dev/zero;", |_| {});
    assert_eq!(code, 1, "{said}");
    assert!(
        said.contains("\"/dev/zero\" failed (not a regular file) in "),
        "{said}"
    );
    assert!(said.contains("nginx.conf:3"), "{said}");
}

#[test]
fn the_main_file_may_not_be_a_pipe_either() {
    let server = Server::http("server { listen 127.0.0.1:%%PORT%%; }")
        .allow("[emerg]")
        .written();
    let file = server.path("nginx.conf");
    fs::remove_file(&file).expect("it was written");
    pipe(&file);
    let mut arguments = server.arguments();
    arguments.push("-t".to_owned());
    let outcome = run(arguments);
    assert_eq!(outcome.code, 1);
    assert!(
        outcome.stderr.contains("not a regular file"),
        "{}",
        outcome.stderr
    );
}

/// A file of a directory that is included is put out of action by such a link.
#[test]
fn a_link_to_the_null_device_is_an_empty_file() {
    let (code, said) = tested("include %%DIR%%/o*.conf;", |dir| {
        symlink("/dev/null", dir.join("out.conf")).expect("a link can be made");
    });
    assert_eq!(code, 0, "{said}");
}

#[test]
fn a_text_past_the_limit_is_refused() {
    let sized = |size: u64| {
        tested("include %%DIR%%/large.conf;", |dir| {
            let path = dir.join("large.conf");
            fs::write(&path, "# ").expect("it can be written");
            let file = fs::File::options().write(true).open(path);
            let set = file.and_then(|file| file.set_len(size));
            set.expect("a hole takes no room");
        })
    };
    let limit = 256 << 20;
    let (code, said) = sized(limit + 1);
    assert_eq!(code, 1, "{said}");
    assert!(
        said.contains(&format!("larger than {limit} bytes")),
        "{said}"
    );
}
