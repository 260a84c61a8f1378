//! The modes of files made by a daemon, which has no umask.
//!
//! Source: nginx documentation, `access_log`, `dav_access`; nginx opens logs with 0644 and sets the modes of
//! `dav_access`.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use firstbyte_tests::client::request;
use firstbyte_tests::files::{everybodys, mode};
use firstbyte_tests::{Builder, Server, peer, process, wait_until};

fn site(main: &str, http: &str) -> Builder {
    let http = format!(
        "{http} server {{ listen 127.0.0.1:%%PORT%%; location = /generation {{ return 200 g1; }} location / {{ return 204; }} }}"
    );
    Server::http_with(main, &http)
}

#[test]
fn a_daemons_logs_are_written_by_their_owner_alone() {
    let main = "daemon on; error_log %%DIR%%/error.log info;";
    let server = site(main, "root %%DIR%%; access_log %%DIR%%/logs/$arg_name.log;")
        .prepare(|dir| everybodys(dir, "logs"))
        .daemon()
        .start();
    assert_eq!(server.get("/?name=one").status, 204);
    let log = server.path("logs/one.log");
    wait_until("the log is made", || log.exists());
    assert_eq!(mode(&log), 0o644);
    assert_eq!(mode(&server.path("error.log")), 0o644);
    if peer::is_firstbyte() {
        assert_eq!(process::status(server.workers()[0], "Umask"), "0022");
    }
}

#[test]
fn a_daemons_directories_have_the_modes_of_dav_access() {
    let http = "server { listen 127.0.0.1:%%PORT2%%; root %%DIR%%/html;
         dav_methods MKCOL COPY; dav_access user:rw group:rw all:rw; }";
    let server = site("daemon on; error_log %%DIR%%/error.log info;", http)
        .file("html/one", "text")
        .prepare(|dir| everybodys(dir, "html"))
        .daemon()
        .start();
    fs::set_permissions(server.path("html/one"), fs::Permissions::from_mode(0o666)).expect("ours");
    let mut client = firstbyte_tests::Client::connect(server.port_number(2));
    assert_eq!(
        client
            .send(request("MKCOL", "/made/", &[]))
            .response()
            .status,
        201
    );
    let to = ["Destination: /two"];
    assert_eq!(
        client.send(request("COPY", "/one", &to)).response().status,
        204
    );
    assert_eq!(mode(&server.path("html/made")), 0o777);
    assert_eq!(mode(&server.path("html/two")), 0o666);
}
