//! `examples/php`, unchanged except for its ports and the paths that lead out of it: a page of PHP in two parts.

use std::fs;
use std::path::Path;
use std::process::Command;

use firstbyte_tests::Server;
use firstbyte_tests::programs::{Program, command_like};

fn example(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/php");
    fs::read_to_string(folder.join(name)).expect("the example has its files")
}

/// Replaces strings that must be in a text.
fn replaced(mut text: String, by: &[(&str, &str)]) -> String {
    for (old, new) in by {
        assert!(text.contains(old), "the example has {old}");
        text = text.replace(old, new);
    }
    text
}

/// The example, and its pool; `None` if PHP is not installed.
fn started() -> Option<(Server, Program)> {
    let fpm = command_like("php-fpm")?;
    let conf = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../conf")
        .display()
        .to_string();
    let text = example("nginx.conf");
    let text = replaced(
        text,
        &[
            ("127.0.0.1:8081", "127.0.0.1:%%PORT%%"),
            ("127.0.0.1:9081", "127.0.0.1:%%PORT2%%"),
            ("stderr notice", "error.log info"),
            ("../../conf", &conf),
        ],
    );
    let page = example("site/index.php");
    let server = Server::whole(&format!("%%USER%%\n{text}"))
        .file("run/empty", "")
        .file("site/index.php", &page)
        .start();
    let pool = example("php-fpm.conf");
    let port = server.port_number(2).to_string();
    let folder = server.dir().path().display().to_string();
    // The user of a web server need not be there.
    let pool = replaced(
        pool,
        &[
            ("9081", &port),
            ("user = www-data", "user = nobody"),
            ("group = www-data", ""),
        ],
    );
    server.dir().write("php-fpm.conf", pool);
    let mut command = Command::new(fpm);
    command
        .args(["-F", "-p", &folder, "-y"])
        .arg(server.path("php-fpm.conf"));
    let program =
        Program::start(server.dir(), "php-fpm", &mut command).accepting(server.port_number(2));
    Some((server, program))
}

#[test]
fn the_example_answers_by_php() {
    let Some((server, _program)) = started() else {
        return;
    };
    for (target, path) in [
        ("/", ""),
        ("/index.php", ""),
        ("/index.php/a/b?c", "/a/b"),
        ("/what/is/no/file", "/what/is/no/file"),
        ("/%3Cb%3E", "/&lt;b&gt;"),
    ] {
        let answer = server.get(target);
        assert_eq!(answer.status, 200, "{target}");
        let text = answer.text();
        assert!(text.contains(&format!("“{path}”")), "{target}: {text}");
        assert!(text.contains("half a second later"), "{target}: {text}");
    }
    for target in ["/missing.php", "/run/x.php/y"] {
        assert_eq!(server.get(target).status, 404, "{target}");
    }
}
