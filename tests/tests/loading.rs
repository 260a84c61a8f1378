//! Loading: its time grows with the text.

use std::process::{Command, Stdio};

use firstbyte_tests::{Server, peer};

/// Seconds of a processor that a test of the configuration takes, the system's part left out: what else the machine does
/// hardly shows in them.
fn seconds(server: &Server) -> f64 {
    let mut script = Command::new("sh");
    script.args(["-c", "\"$@\" >/dev/null 2>&1 || exit 1; times", "sh"]);
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
        .expect("times tells both");
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

/// Eight times as many lines take eight times as long; were each compared with all others, it would be 64 times.
#[track_caller]
fn assert_in_proportion(block: &str, line: impl Fn(usize) -> String) {
    let time = |count: usize| {
        let server = written((0..count).map(&line), block);
        seconds(&server)
    };
    let few = time(FEW);
    let many = time(8 * FEW);
    assert!(
        many < 20.0 * few.max(0.01),
        "{FEW} lines take {few} s, {} lines {many} s",
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

/// So many lines are loaded in some hundredths of a second.
const FEW: usize = 3000;
