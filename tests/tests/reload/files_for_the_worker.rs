//! Files that the supervisor hands to the worker's user: logs at USR1, directories of temporary files at HUP; and
//! others not.
//!
//! Source: nginx documentation, "Controlling nginx" (Rotating Log-files), `client_body_temp_path`; path_resolution(7).

use std::fs;
use std::os::unix::fs::{MetadataExt, chown, lchown, symlink};
use std::path::Path;

use firstbyte_tests::files::{everybodys, mode};
use firstbyte_tests::{Builder, Server, Signal, peer, wait_until};

/// The user `nobody`, as whom the worker runs in the tests of root.
const NOBODY: u32 = 65_534;

fn site(main: &str, http: &str) -> Builder {
    let http = format!(
        "{http} server {{ listen 127.0.0.1:%%PORT%%; location = /generation {{ return 200 g1; }} location / {{ return 204; }} }}"
    );
    Server::http_with(main, &http)
}

fn owner(path: &Path) -> u32 {
    fs::symlink_metadata(path).expect("it is there").uid()
}

/// A server started by root, with a log in a folder of the worker's user.
fn rotating() -> Option<Server> {
    if !peer::is_root() || !peer::is_firstbyte() {
        // nginx changes the owner of a link's target.
        return None;
    }
    let server = site("", "access_log %%DIR%%/logs/access.log;")
        .prepare(|dir| {
            everybodys(dir, "logs");
            chown(dir.join("logs"), Some(NOBODY), None).expect("root may");
        })
        .file("secret", "root's own")
        .start();
    assert_eq!(server.get("/").status, 204);
    Some(server)
}

/// USR1; the log is written to again when it has been obeyed.
fn reopen(server: &Server, log: &Path) {
    let length = || fs::metadata(log).map_or(0, |log| log.len());
    let before = length();
    server.signal(Signal::USR1);
    wait_until("the log is opened anew", || {
        assert_eq!(server.get("/").status, 204);
        length() > before
    });
}

#[test]
fn a_new_log_is_given_to_the_workers_user() {
    let Some(server) = rotating() else { return };
    let log = server.path("logs/access.log");
    fs::rename(&log, server.path("logs/access.log.1")).expect("it is there");
    reopen(&server, &log);
    assert_eq!((owner(&log), mode(&log)), (NOBODY, 0o644));
    // A file made by the rotating program, too.
    fs::rename(&log, server.path("logs/access.log.2")).expect("it is there");
    fs::write(&log, "").expect("root may");
    reopen(&server, &log);
    assert_eq!(owner(&log), NOBODY);
    // And the target of a link made by root.
    fs::rename(&log, server.path("logs/access.log.3")).expect("it is there");
    symlink("../elsewhere.log", &log).expect("root may");
    reopen(&server, &server.path("elsewhere.log"));
    assert_eq!(owner(&server.path("elsewhere.log")), NOBODY);
}

#[test]
fn what_a_link_of_the_workers_user_names_is_not_given_to_it() {
    let Some(server) = rotating() else { return };
    let (log, secret) = (server.path("logs/access.log"), server.path("secret"));
    let old = server.path("logs/access.log.1");
    fs::rename(&log, &old).expect("it is there");
    symlink("../secret", &log).expect("a link");
    lchown(&log, Some(NOBODY), None).expect("root may");
    reopen(&server, &secret);
    assert_eq!(owner(&secret), 0, "by a symbolic link");
    fs::remove_file(&log).expect("it is there");
    fs::hard_link(&secret, &log).expect("a link");
    reopen(&server, &secret);
    assert_eq!(owner(&secret), 0, "by a hard link");
    server.wait_for_text("error.log", "is not changed to user");
}

#[test]
fn a_directory_that_a_link_of_the_workers_user_names_is_not_given_to_it() {
    if !peer::is_root() || !peer::is_firstbyte() {
        return;
    }
    let server = Server::whole(
        "%%USER%% daemon off; pid %%DIR%%/nginx.pid; error_log %%DIR%%/error.log info; events { }
         http { access_log off; client_body_temp_path %%DIR%%/theirs/body;
             server { listen 127.0.0.1:%%PORT%%; root %%DIR%%; dav_methods PUT;
                 location = /generation { return 200 g1; } } }",
    )
    .prepare(|dir| {
        everybodys(dir, "theirs");
        fs::create_dir(dir.join("secrets")).expect("a folder");
        fs::create_dir(dir.join("spool")).expect("a folder");
    })
    .allow("[emerg]")
    .start();
    let body = server.path("theirs/body");
    assert_eq!(owner(&body), NOBODY);
    fs::remove_dir(&body).expect("it is empty");
    symlink("../secrets", &body).expect("a link");
    lchown(&body, Some(NOBODY), None).expect("root may");
    server.signal(Signal::HUP);
    server.wait_for_text("error.log", "theirs/body\" failed (40: ");
    assert_eq!(owner(&server.path("secrets")), 0);
    assert_eq!(server.get("/generation").text(), "g1");
    // Root's own link is followed.
    fs::remove_file(&body).expect("it is there");
    symlink("../spool", &body).expect("a link");
    server.rewrite_conf(|text| text.replace("200 g1;", "200 g2;"));
    server.signal(Signal::HUP);
    wait_until("the configuration is taken", || {
        server.get("/generation").text() == "g2"
    });
    assert_eq!(owner(&server.path("spool")), NOBODY);
}
