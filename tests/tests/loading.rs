//! Loading a configuration takes time in proportion to its text.
//!
//! Own executable: CPU times are compared.

use std::process::{Command, Stdio};

use firstbyte_tests::{Server, peer};

/// User CPU time of `runs` tests of the configuration, in seconds. CPU time hardly depends on other load. `times`
/// counts in hundredths, so a single short run would be mostly rounding.
fn seconds(server: &Server, runs: usize) -> f64 {
    let mut script = Command::new("sh");
    script.args([
        "-c",
        "n=$1; shift; while [ $n -gt 0 ]; do \"$@\" >/dev/null 2>&1 || exit 1; n=$((n-1)); done; times",
        "sh",
        &runs.to_string(),
    ]);
    script
        .arg(peer::binary())
        .args(server.arguments())
        .arg("-t");
    let output = script.stderr(Stdio::null()).output().expect("sh runs");
    assert!(output.status.success(), "the configuration is right");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    // The second line is of the children: user time, system time.
    let children = text.lines().nth(1).and_then(|line| line.split(' ').next());
    let (minutes, seconds) = children
        .and_then(|user| user.trim_end_matches('s').split_once('m'))
        .expect("times prints both");
    let number = |text: &str| text.parse::<f64>().expect("a number");
    number(minutes) * 60.0 + number(seconds)
}

fn written(lines: impl Iterator<Item = String>, block: &str) -> Server {
    let lines: String = lines.collect();
    let text = match block {
        "http" => format!("{lines} server {{ listen 127.0.0.1:%%PORT%%; return 200; }}"),
        _ => format!("server {{ listen 127.0.0.1:%%PORT%%; return 200; {lines} }}"),
    };
    Server::whole(&format!(
        "daemon off; pid %%DIR%%/nginx.pid; error_log %%DIR%%/error.log; events {{ }}
         http {{ access_log off; {text} }}"
    ))
    .written()
}

/// A file of `8 * FEW` lines loaded once takes about as long as a file of `FEW` lines loaded eight times. If each line
/// were compared with all others, it would take eight times as long.
#[track_caller]
fn assert_in_proportion(block: &str, line: impl Fn(usize) -> String) {
    let time = |count: usize, runs: usize| {
        let server = written((0..count).map(&line), block);
        seconds(&server, runs)
    };
    let few = time(FEW, 8);
    let many = time(8 * FEW, 1);
    assert!(
        many < 4.0 * few.max(0.02),
        "{FEW} lines eight times take {few} s, {} lines once {many} s",
        8 * FEW
    );
}

#[test]
fn locations_are_loaded_in_proportion_to_their_number() {
    assert_in_proportion("server", |n| format!("location /p{n}/ {{ return 200; }}\n"));
    assert_in_proportion("server", |n| {
        format!("location = /p{n} {{ return 200; }}\n")
    });
}

#[test]
fn servers_are_loaded_in_proportion_to_their_number() {
    assert_in_proportion("http", |n| {
        format!("server {{ listen 127.0.0.1:%%PORT%%; server_name h{n}; }}\n")
    });
}

#[test]
fn rewrites_are_loaded_in_proportion_to_their_number() {
    assert_in_proportion("server", |n| {
        format!("rewrite ^/old{n}/(.*)$ https://$host/new/$1 permanent;\n")
    });
}

#[test]
fn tables_are_loaded_in_proportion_to_their_number() {
    assert_in_proportion("http", |n| format!("map $uri $m{n} {{ /p{n} x; }}\n"));
    assert_in_proportion("http", |n| format!("log_format f{n} $uri;\n"));
    assert_in_proportion("http", |n| {
        format!("upstream u{n} {{ server 127.0.0.1:1; }}\n")
    });
}

/// This many lines are loaded in some hundredths of a second.
const FEW: usize = 3000;
