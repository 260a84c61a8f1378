//! The warnings of `-t`: their place and form, and that they change nothing else.
//!
//! The rules have tests of their own in `server/lint`. nginx has no such warnings.

use firstbyte_tests::{Builder, Outcome, Server, peer, run};

const TRAP: &str = "location /files { alias %%DIR%%/logs/; }";

fn server(inside: &str) -> Builder {
    Server::http(&format!(
        "server {{ listen 127.0.0.1:%%PORT%%;\n{inside}\n}}"
    ))
}

fn test(server: &Server, option: &str) -> Outcome {
    let mut arguments = server.arguments();
    arguments.push(option.to_owned());
    run(&arguments)
}

fn warnings(outcome: &Outcome) -> Vec<&str> {
    let lines = outcome.stderr.lines();
    lines
        .filter(|line| line.starts_with("nginx: [warn] FB"))
        .collect()
}

#[test]
fn a_trap_is_warned_of_with_its_code_and_place() {
    if !peer::is_firstbyte() {
        return;
    }
    let server = server(TRAP).written();
    let outcome = test(&server, "-t");
    let file = server.path("nginx.conf");
    let text = server.dir().read("nginx.conf");
    let line = text
        .lines()
        .position(|line| line.contains("/files"))
        .expect("it is written")
        + 1;
    let [warning] = warnings(&outcome)[..] else {
        panic!("one warning: {}", outcome.stderr)
    };
    assert!(warning.starts_with("nginx: [warn] FB201: "), "{warning}");
    assert!(
        warning.ends_with(&format!(" in {}:{line}", file.display())),
        "{warning}"
    );
    assert!(
        outcome
            .stderr
            .contains(&format!("{line} | location /files {{")),
        "{}",
        outcome.stderr
    );
    assert!(
        outcome.stderr.contains("|          ^^^^^^\nwrite "),
        "{}",
        outcome.stderr
    );
    assert!(
        outcome.stderr.contains("test is successful"),
        "{}",
        outcome.stderr
    );
    assert_eq!((outcome.code, outcome.stdout.as_str()), (0, ""));
    assert!(
        !server.error_log().contains("FB201"),
        "the error log is for what happens"
    );
}

#[test]
fn a_comment_silences_a_warning() {
    if !peer::is_firstbyte() {
        return;
    }
    let silent = format!("# firstbyte: allow FB201 -- on purpose\n{TRAP}");
    let outcome = test(&server(&silent).written(), "-t");
    assert_eq!(
        (warnings(&outcome), outcome.code),
        (vec![], 0),
        "{}",
        outcome.stderr
    );
    let misspelt = format!("# firstbyte: allow FB2O1\n{TRAP}");
    let outcome = test(&server(&misspelt).written(), "-t");
    let [comment, trap] = warnings(&outcome)[..] else {
        panic!("two warnings: {}", outcome.stderr)
    };
    assert!(
        comment.contains("FB001: unknown warning code \"FB2O1\""),
        "{comment}"
    );
    assert!(trap.contains("FB201"), "{trap}");
    assert_eq!(outcome.code, 0);
}

#[test]
fn quiet_tests_starts_and_reloads_say_nothing_of_traps() {
    if !peer::is_firstbyte() {
        return;
    }
    let server = server(TRAP).start();
    let outcome = test(&server, "-tq");
    assert_eq!((outcome.stderr.as_str(), outcome.code), ("", 0));
    server.signal(firstbyte_tests::Signal::HUP);
    server.wait_for_text("error.log", "reconfigur");
    assert!(!server.error_log().contains("FB201"));
    assert!(!server.dir().read("output").contains("FB201"));
}

#[test]
fn warnings_come_before_the_error_that_ends_the_test() {
    if !peer::is_firstbyte() {
        return;
    }
    let unknown = server(&format!("nonsense on;\n{TRAP}"))
        .allow("[emerg]")
        .written();
    let outcome = test(&unknown, "-t");
    let at = |text: &str| {
        outcome
            .stderr
            .find(text)
            .unwrap_or_else(|| panic!("{}", outcome.stderr))
    };
    assert!(at("[warn] FB201") < at("[emerg] unknown directive \"nonsense\""));
    assert_eq!(outcome.code, 1);
}

#[test]
fn half_a_configuration_is_not_judged() {
    if !peer::is_firstbyte() {
        return;
    }
    for rest in ["include %%DIR%%/none.conf;", "}"] {
        let broken = server(&format!("{TRAP}\n{rest}"))
            .allow("[emerg]")
            .written();
        let outcome = test(&broken, "-t");
        assert_eq!(
            (warnings(&outcome), outcome.code),
            (vec![], 1),
            "{}",
            outcome.stderr
        );
    }
}

#[test]
fn what_the_command_line_says_is_judged_too() {
    if !peer::is_firstbyte() {
        return;
    }
    let server = Server::whole("pid %%DIR%%/nginx.pid; events { } http { access_log off; }")
        .file("logs/unused", "")
        .written();
    let mut arguments = server.arguments();
    let globals = format!(
        "error_log {}/error.log; error_log off;",
        server.dir().path().display()
    );
    arguments.extend(["-t".to_owned(), "-g".to_owned(), globals]);
    let outcome = run(&arguments);
    let [warning] = warnings(&outcome)[..] else {
        panic!("one warning: {}", outcome.stderr)
    };
    assert!(
        warning.contains("FB701") && warning.ends_with(" in command line"),
        "{warning}"
    );
}

#[test]
fn thousands_of_servers_with_one_trap_are_one_warning() {
    if !peer::is_firstbyte() {
        return;
    }
    let servers: String = (0..5000)
        .map(|n| {
            let default = if n == 0 { " default_server" } else { "" };
            format!(
                "server {{ listen 127.0.0.1:%%PORT%%{default}; server_name s{n}.example;\n\
                 location /files {{ alias %%DIR%%/logs/{n}/; }} }}\n"
            )
        })
        .collect();
    let outcome = test(&Server::http(&servers).written(), "-t");
    let [warning] = warnings(&outcome)[..] else {
        panic!("{} lines", outcome.stderr.lines().count())
    };
    assert!(
        warning.contains(" (and 4,999 more like it) in "),
        "{warning}"
    );
    assert!(outcome.stderr.lines().count() < 10, "{}", outcome.stderr);
    assert_eq!(outcome.code, 0);
}
