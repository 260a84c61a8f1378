//! The command line: `-t -T -q -v -V -h -g -p -c -e -s` and how a start can fail.
//!
//! Source: nginx's "Command-line parameters".

use std::net::TcpListener;

use firstbyte_tests::{Builder, Outcome, Server, TempDir, peer, run, wait_until};

const HTTP: &str = "server { listen 127.0.0.1:%%PORT%%; return 200 ok; }";

fn with<'a>(server: &Server, more: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut arguments = server.arguments();
    arguments.extend(more.into_iter().map(str::to_owned));
    arguments
}

fn background(http: &str) -> Builder {
    Server::http_with("daemon on;", http).daemon()
}

#[test]
fn t_says_that_all_is_well() {
    let server = Server::http(HTTP).written();
    let outcome = run(with(&server, ["-t"]));
    let file = server.path("nginx.conf");
    assert!(outcome.stderr.contains(&format!(
        "the configuration file {} syntax is ok",
        file.display()
    )));
    assert!(outcome.stderr.contains(&format!(
        "configuration file {} test is successful",
        file.display()
    )));
    assert_eq!((outcome.code, outcome.stdout.as_str()), (0, ""));
}

#[test]
fn t_fails_on_a_file_that_is_not_there() {
    let server = Server::http(HTTP).allow("[emerg]").written();
    std::fs::remove_file(server.path("nginx.conf")).expect("it was just written");
    let outcome = run(with(&server, ["-t"]));
    let wanted = format!(
        "open() \"{}\" failed (2: No such file or directory)",
        server.path("nginx.conf").display()
    );
    assert!(
        outcome.stderr.contains("[emerg] ") && outcome.stderr.contains(&wanted),
        "{}",
        outcome.stderr
    );
    assert_eq!(outcome.code, 1);
}

#[test]
fn t_works_beside_a_running_server() {
    let server = Server::http(HTTP).start();
    assert_eq!(
        run(with(&server, ["-t"])).code,
        0,
        "its ports are in use by the running one"
    );
    assert_eq!(server.get("/").text(), "ok");
    assert_eq!(
        server.dir().read("nginx.pid").trim(),
        server.pid().to_string(),
        "its pid file is left alone"
    );
}

#[test]
fn q_is_quiet_unless_something_is_wrong() {
    let server = Server::http(HTTP).allow("[emerg]").written();
    let outcome = run(with(&server, ["-q", "-t"]));
    assert_eq!(
        (
            outcome.code,
            outcome.stdout.as_str(),
            outcome.stderr.as_str()
        ),
        (0, "", "")
    );
    server.rewrite_conf(|text| text.replace("return 200 ok;", "nonsense;"));
    let outcome = run(with(&server, ["-tq"]));
    assert!(
        outcome.code == 1 && outcome.stderr.contains("unknown directive \"nonsense\""),
        "{}",
        outcome.stderr
    );
}

#[test]
fn capital_t_dumps_every_file_once() {
    let server = Server::http("include %%DIR%%/parts/*.conf; include %%DIR%%/parts/b.conf;")
        .file(
            "parts/a.conf",
            "# first part\nserver { listen 127.0.0.1:%%PORT%%; }\n",
        )
        .file("parts/b.conf", "# second part\n")
        .written();
    let outcome = run(with(&server, ["-T"]));
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let file = |name: &str| {
        format!(
            "# configuration file {}:\n{}\n",
            server.path(name).display(),
            server.dir().read(name)
        )
    };
    assert_eq!(
        outcome.stdout,
        file("nginx.conf") + &file("parts/a.conf") + &file("parts/b.conf")
    );
    assert!(outcome.stderr.contains("test is successful"));
}

#[test]
fn v_and_capital_v_tell_the_version() {
    let short = run(["-v"]);
    assert!(
        short.code == 0 && short.stdout.is_empty() && short.stderr.lines().count() == 1,
        "{short:?}"
    );
    assert!(short.stderr.contains("version: "), "{}", short.stderr);
    let long = run(["-V"]);
    assert!(long.code == 0 && long.stdout.is_empty(), "{long:?}");
    assert!(
        long.stderr.starts_with(short.stderr.trim_end()),
        "{}",
        long.stderr
    );
    assert!(
        long.stderr.contains("configure arguments:"),
        "{}",
        long.stderr
    );
}

#[test]
fn h_lists_the_options() {
    for flag in ["-h", "-?"] {
        let outcome = run([flag]);
        let text = outcome.stdout + &outcome.stderr;
        assert_eq!(outcome.code, 0);
        for option in [
            "-?,-h",
            "-v",
            "-V",
            "-t",
            "-T",
            "-q",
            "-s signal",
            "-p prefix",
            "-e filename",
            "-c filename",
            "-g directives",
        ] {
            assert!(
                text.contains(&format!("  {option}")),
                "{flag} names {option}: {text}"
            );
        }
    }
}

#[test]
fn help_says_nginx_words_and_the_name_of_the_program() {
    if !peer::is_firstbyte() {
        return;
    }
    let dir = TempDir::new();
    let called = dir.path().join("called-so");
    std::os::unix::fs::symlink(peer::binary(), &called).expect("a link");
    let said = |words: &[&str]| {
        let output = std::process::Command::new(&called).args(words).output();
        let output = output.expect("it starts");
        assert_eq!(output.status.code(), Some(0), "{words:?}");
        (
            String::from_utf8_lossy(&output.stdout).into_owned(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    let (out, help) = said(&["-h"]);
    assert_eq!(out, "");
    assert!(
        help.contains("\nUsage: called-so [-?hvVtTq] [-s signal]"),
        "{help}"
    );
    for line in [
        "-?,-h         : this help",
        "-v            : show version and exit",
        "-V            : show version and configure options then exit",
        "-t            : test configuration and exit",
        "-T            : test configuration, dump it and exit",
        "-q            : suppress non-error messages during configuration testing",
        "-s signal     : send signal to a master process: stop, quit, reopen, reload",
        "-g directives : set global directives out of configuration file",
    ] {
        assert!(help.contains(&format!("\n  {line}\n")), "{line} in {help}");
    }
    assert_eq!(said(&["--help"]), (help.clone(), String::new()));
    assert_eq!(said(&["help"]), (help, String::new()));
    let version = said(&["-v"]).1;
    assert_eq!(said(&["--version"]), (version, String::new()));
    for (verb, _) in VERBS {
        let (text, _) = said(&["help", verb]);
        let usage = format!("\nUsage: called-so {verb} ");
        assert!(text.contains(&usage), "{text}");
        assert_eq!(said(&[verb, "--help"]).0, text);
        let (short, _) = said(&[verb, "-h"]);
        let wide = short.lines().find(|line| line.len() > 100);
        assert!(short.contains(&usage) && wide.is_none(), "{short}");
    }
}

/// Verbs, and the document of each.
const VERBS: [(&str, &str); 7] = [
    ("bench", "lab"),
    ("compare", "lab"),
    ("doctor", "doctor"),
    ("explain", "explain"),
    ("freeze", "freeze"),
    ("via", "link"),
    ("waterfall", "waterfall"),
];

#[test]
fn each_option_of_a_verb_is_in_its_document() {
    for (verb, document) in VERBS {
        let help = run(["help", verb]).stdout;
        let path = format!("{}/../docs/{document}.md", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).expect("the document");
        let words = help.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
        let of_verb = |word: &&str| word.starts_with("--") && word.len() > 2 && *word != "--help";
        let options: Vec<_> = words.filter(of_verb).collect();
        assert!(options.len() > 1, "{verb}: {help}");
        for option in options {
            assert!(text.contains(option), "{verb} {option}: docs/{document}.md");
        }
    }
}

#[test]
fn wrong_options_are_named() {
    for (arguments, message) in [
        (&["-z"][..], "invalid option: \"z\""),
        (&["nonsense"][..], "invalid option: \"nonsense\""),
        (&["-s", "nonsense"][..], "invalid option: \"-s nonsense\""),
        (&["-s"][..], "option \"-s\" requires parameter"),
        (&["-c"][..], "option \"-c\" requires file name"),
        (&["-e"][..], "option \"-e\" requires file name"),
        (&["-p"][..], "option \"-p\" requires directory name"),
        (&["-g"][..], "option \"-g\" requires parameter"),
    ] {
        let outcome = run(arguments);
        assert!(
            outcome.stderr.contains(message),
            "{arguments:?}: {}",
            outcome.stderr
        );
        assert_eq!(outcome.code, 1, "{arguments:?}");
    }
}

#[test]
fn misspelt_verbs_and_options_have_the_nearest_one_beside_them() {
    if !peer::is_firstbyte() {
        return;
    }
    let similar = |words: &[&str]| {
        let outcome = run(words);
        assert_eq!(outcome.code, 1, "{outcome:?}");
        let told = outcome.stderr.split_once("a similar verb exists: ");
        told.map(|(_, verb)| verb.trim().to_owned())
    };
    assert_eq!(similar(&["benhc"]).as_deref(), Some("\"bench\""));
    assert_eq!(similar(&["help", "docter"]).as_deref(), Some("\"doctor\""));
    for words in [&["reload"][..], &["-t", "benhc"], &["-z"]] {
        assert_eq!(similar(words), None);
    }
    let outcome = run(["bench", "--fail-fi", "p99>1", "http://h/"]);
    let told = "a similar argument exists: '--fail-if'";
    assert!(outcome.stderr.contains(told), "{outcome:?}");
}

#[test]
fn options_may_be_joined_with_their_values() {
    let server = Server::http(HTTP).written();
    let dir = server.dir().path().display();
    let outcome = run([
        format!("-p{dir}/"),
        "-cnginx.conf".to_owned(),
        "-eerror.log".to_owned(),
        "-t".to_owned(),
    ]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
}

#[test]
fn p_and_c_and_e_choose_where_files_are() {
    let mut server = Server::whole("# not read\n")
        .file("etc/main.conf", "pid run/the.pid; events {} http { access_log logs/a.log; client_body_temp_path run/t; include more.conf; }")
        .file("etc/more.conf", "server { listen 127.0.0.1:%%PORT%%; root html; }")
        .file("run/unused", "")
        .file("logs/unused", "")
        .file("html/t", "text")
        .written();
    let prefix = format!("{}/", server.dir().path().display());
    let run_it = |more: &[&str]| -> Outcome {
        let mut arguments = vec![
            "-p",
            prefix.as_str(),
            "-c",
            "etc/main.conf",
            "-e",
            "logs/e.log",
        ];
        arguments.extend(more);
        run(arguments)
    };
    assert_eq!(
        run_it(&[]).code,
        0,
        "it goes into the background by default"
    );
    server.adopt("run/the.pid");
    assert_eq!(server.get("/t").text(), "text");
    assert!(server.path("logs/a.log").exists() && server.path("logs/e.log").exists());
    assert_eq!(run_it(&["-s", "stop"]).code, 0);
    server.wait_for_exit();
    assert!(!server.path("run/the.pid").exists());
}

#[test]
fn g_gives_directives_of_the_main_context() {
    let server = Server::http(HTTP).allow("[emerg]").written();
    let outcome = run(with(
        &server,
        ["-t", "-g", "worker_shutdown_timeout 5s; env FROM_G=1;"],
    ));
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    for (directives, message) in [
        (
            "nonsense;",
            "unknown directive \"nonsense\" in command line",
        ),
        (
            "worker_processes 1",
            "unexpected end of parameter, expecting \";\" in command line",
        ),
        (
            "listen 80;",
            "\"listen\" directive is not allowed here in command line",
        ),
    ] {
        let outcome = run(with(&server, ["-t", "-g", directives]));
        assert!(
            outcome.code == 1 && outcome.stderr.contains(message),
            "{}",
            outcome.stderr
        );
    }
    let twice = run(with(&server, ["-t", "-g", "pid other.pid;"]));
    assert!(
        twice.code == 1 && twice.stderr.contains("\"pid\" directive is duplicate in"),
        "{}",
        twice.stderr
    );
}

#[test]
fn s_stop_and_quit_end_the_server() {
    for verb in ["stop", "quit"] {
        let mut server = background(HTTP).start();
        assert_eq!(server.get("/").text(), "ok");
        let outcome = run(with(&server, ["-s", verb]));
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        server.wait_for_exit();
        assert!(!server.path("nginx.pid").exists(), "{verb}");
        let again = run(with(&server, ["-s", verb]));
        assert_eq!(again.code, 1, "{verb}");
        assert!(
            again
                .stderr
                .contains("nginx.pid\" failed (2: No such file or directory)"),
            "{}",
            again.stderr
        );
    }
}

#[test]
fn s_reload_takes_the_new_configuration() {
    let server = background(HTTP).start();
    server.rewrite_conf(|text| text.replace("200 ok;", "200 changed;"));
    assert_eq!(run(with(&server, ["-s", "reload"])).code, 0);
    wait_until("the new configuration answers", || {
        server.get("/").text() == "changed"
    });
}

#[test]
fn s_reload_of_a_broken_configuration_fails_at_once() {
    let server = background(HTTP).allow("[emerg]").start();
    server.rewrite_conf(|text| text.replace("return 200 ok;", "nonsense;"));
    let outcome = run(with(&server, ["-s", "reload"]));
    assert!(
        outcome.code == 1 && outcome.stderr.contains("unknown directive \"nonsense\""),
        "{}",
        outcome.stderr
    );
    assert_eq!(server.get("/").text(), "ok");
    server.rewrite_conf(|text| text.replace("nonsense;", "return 200 ok;"));
}

#[test]
fn s_reopen_makes_new_logs() {
    let server = background(HTTP).start();
    server.get("/first");
    server.wait_for_text("access.log", "/first");
    std::fs::rename(server.path("access.log"), server.path("access.log.1"))
        .expect("the log is there");
    assert_eq!(run(with(&server, ["-s", "reopen"])).code, 0);
    wait_until("the new log is written to", || {
        server.get("/second");
        server.dir().read("access.log").contains("/second")
    });
    assert!(server.dir().read("access.log.1").contains("/first"));
}

#[test]
fn a_port_in_use_is_told_and_the_start_fails() {
    let server = Server::http(HTTP).allow("[emerg]").written();
    let _taken = TcpListener::bind(("127.0.0.1", server.port()))
        .expect("the port was reserved for this test");
    let outcome = run(server.arguments());
    let wanted = format!(
        "bind() to 127.0.0.1:{} failed (98: Address already in use)",
        server.port()
    );
    assert!(
        outcome.code == 1 && outcome.stderr.contains(&wanted),
        "{}",
        outcome.stderr
    );
    assert!(
        outcome.stderr.contains("still could not bind()"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn a_daemon_leaves_its_terminal() {
    let server = background(HTTP).start();
    let stat =
        std::fs::read_to_string(format!("/proc/{}/stat", server.pid())).expect("the daemon runs");
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    let (session, terminal) = (fields[3], fields[4]);
    assert_eq!(terminal, "0", "no controlling terminal");
    assert!(
        session != "0" && session != std::process::id().to_string(),
        "a session of its own"
    );
    let input =
        std::fs::read_link(format!("/proc/{}/fd/0", server.pid())).expect("standard input is open");
    assert_eq!(input.to_string_lossy(), "/dev/null");
}

#[test]
fn processes_are_named_for_ps() {
    let server = Server::http(HTTP).start();
    server.get("/");
    let title =
        |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    assert!(
        title(server.pid()).contains("master process"),
        "{}",
        title(server.pid())
    );
    wait_until("the worker has its name", || {
        server
            .workers()
            .iter()
            .any(|&pid| title(pid).contains("worker process"))
    });
}
