//! Address databases in a running server: the rights that read them, and the times at which they are read again.

use std::path::Path;

use firstbyte_tests::{Builder, Server, Signal, peer, process, wait_until};

#[path = "../../../engines/geoip/src/testing_tests.rs"]
mod testing;

use testing::{Field, legacy, mmdb};

/// The numbers of two countries in the older databases.
const RU: u8 = 185;
const US: u8 = 225;

fn country(number: u8) -> Vec<u8> {
    legacy(1, &[("127.0.0.0", 8, vec![number])])
}

fn named(name: &'static str) -> Vec<u8> {
    let record = Field::Map(vec![("name", Field::Text(name))]);
    mmdb("Test", 24, true, &[("127.0.0.0", 8, record)])
}

fn site(directives: &str, value: &str) -> Builder {
    let text = format!(
        "{directives} server {{ listen 127.0.0.1:%%PORT%%; location / {{ return 200 \"{value}\"; }} }}"
    );
    Server::http(&text)
}

/// Puts another file in the place of one, as programs that update databases do.
fn replace(server: &Server, name: &str, bytes: &[u8]) {
    server.dir().write("new", bytes);
    std::fs::rename(server.path("new"), server.path(name)).expect("both are in one directory");
}

fn only_for_the_owner(dir: &Path) {
    firstbyte_tests::dir::set_mode(&dir.join("db"), 0o600);
}

#[test]
fn a_database_is_read_with_the_supervisors_rights_and_again_at_a_reload() {
    if !peer::is_firstbyte() {
        // nginx has the module only if it was built with it.
        return;
    }
    let server = site("geoip_country %%DIR%%/db;", "$geoip_country_code")
        .bytes("db", &country(US))
        .prepare(only_for_the_owner)
        .start();
    let mut kept = server.client();
    assert_eq!(kept.get("/").text(), "US");
    replace(&server, "db", &country(RU));
    assert_eq!(kept.get("/").text(), "US", "not before the reload");
    server.signal(Signal::HUP);
    wait_until("the changed database answers", || {
        server.get("/").text() == "RU"
    });
    assert_eq!(kept.get("/").text(), "RU");
}

#[test]
fn a_broken_database_leaves_the_old_one_at_a_reload() {
    if !peer::is_firstbyte() {
        return;
    }
    let server = site("geoip_country %%DIR%%/db;", "$geoip_country_code")
        .bytes("db", &country(US))
        .allow("GeoIP_open(")
        .start();
    replace(&server, "db", b"\0\x01\x02");
    server.signal(Signal::HUP);
    let said = "GeoIP_open(\"%%DIR%%/db\") failed (the format is not known)";
    wait_until("the error log says why", || {
        server.error_log().contains(&server.expand(said))
    });
    assert_eq!(server.get("/").text(), "US");
}

#[test]
fn a_new_worker_has_the_database_after_its_file_is_gone() {
    if !peer::is_firstbyte() {
        return;
    }
    let server = site("geoip_country %%DIR%%/db;", "$geoip_country_code")
        .bytes("db", &country(US))
        .allow("exited on signal 9")
        .start();
    assert_eq!(server.get("/").text(), "US");
    std::fs::remove_file(server.path("db")).expect("it was written");
    let worker = server.workers()[0];
    assert!(process::signal(worker, Signal::KILL));
    wait_until("another worker runs", || {
        server.workers().iter().any(|id| *id != worker)
    });
    assert_eq!(server.get("/").text(), "US");
}

#[test]
fn a_file_is_taken_anew_without_a_reload_where_it_is_asked_for() {
    if !peer::is_firstbyte() {
        return;
    }
    let text = "geoip2 %%DIR%%/db { auto_reload 1s; $name name; }";
    let server = site(text, "$name").bytes("db", &named("first")).start();
    assert_eq!(server.get("/").text(), "first");
    replace(&server, "db", &named("second"));
    wait_until("the changed file answers", || {
        server.get("/").text() == "second"
    });
}

/// The error of `-t` for a configuration with a directive in `http`.
fn refused(directive: &str, prepare: fn(&Path)) -> String {
    let text = format!("error_log %%DIR%%/error.log; events {{}} http {{ {directive} }}");
    let server = Server::whole(&text)
        .allow("geoip_database")
        .prepare(prepare)
        .written();
    let mut arguments = server.arguments();
    arguments.push("-t".to_owned());
    let outcome = firstbyte_tests::run(&arguments);
    assert_eq!(outcome.code, 1, "{}", outcome.stderr);
    outcome
        .stderr
        .replace(&server.dir().path().display().to_string(), "DIR")
}

#[test]
fn a_directory_is_no_database_of_visitors() {
    if !peer::is_firstbyte() {
        return;
    }
    let said = refused("geoip_database %%DIR%%/folder;", |dir| {
        std::fs::create_dir(dir.join("folder")).expect("the directory of the test is writable");
    });
    assert!(
        said.contains("geoip_database \"DIR/folder\" failed (21: Is a directory)"),
        "{said}"
    );
    let said = refused("geoip_database %%DIR%%/none;", |_| ());
    assert!(
        said.contains("geoip_database \"DIR/none\" failed (2: No such file or directory)"),
        "{said}"
    );
}

#[test]
fn databases_of_visitors_are_read_with_the_supervisors_rights() {
    if !peer::is_firstbyte() {
        return;
    }
    let directives = "geoip_database %%DIR%%/db; geoip_country %%DIR%%/db;";
    let server = site(directives, "$geoip_country_code")
        .bytes("db", &country(US))
        .prepare(only_for_the_owner)
        .start();
    assert_eq!(server.get("/").text(), "US");
}
