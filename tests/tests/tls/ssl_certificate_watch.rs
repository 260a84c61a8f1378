//! `ssl_certificate_watch`, over sockets: new certificates without a reload, whole pairs only.

use std::time::Duration;

use crate::tls_client::{Leaf, Tls, site, with_key_of};
use firstbyte_tests::busy::Waits;
use firstbyte_tests::wait::{DEADLINE, holds_within};
use firstbyte_tests::{Builder, Server, Signal, peer, wait_until};

fn with(main: &str, watch: &str, leaf: &Leaf) -> Builder {
    let template = format!(
        "ssl_certificate %%DIR%%/c.pem; ssl_certificate_key %%DIR%%/k.pem; {watch}
         server {{ listen 127.0.0.1:%%PORT%% ssl; server_name localhost; return 200 \"as loaded\\n\"; }}"
    );
    Server::http_with(main, &template)
        .bytes("c.pem", leaf.certificate.as_bytes())
        .bytes("k.pem", leaf.key.as_bytes())
        .allow("[error]")
}

/// Puts a file into the place of another, as tools do that renew certificates.
fn replace(server: &Server, name: &str, text: &str) {
    let aside = format!("{name}.new");
    server.dir().write(&aside, text);
    std::fs::rename(server.path(&aside), server.path(name)).expect("it can be renamed");
}

/// Waits for a change to take effect, which must happen soon.
#[track_caller]
fn soon(server: &Server, has_come: impl FnMut() -> bool) {
    let waits = Waits::begin();
    assert!(holds_within(DEADLINE, has_come), "{}", server.error_log());
    waits.assert_below(waits.elapsed(), SOON);
}

fn shows(server: &Server, leaf: &Leaf) -> bool {
    Tls::new()
        .get(server.port(), "localhost", "/")
        .is_from(leaf)
}

#[test]
fn a_new_pair_is_taken_up_and_connections_stay() {
    if !peer::is_firstbyte() {
        return;
    }
    for main in ["", "reload_connections drain;"] {
        let (old, new) = (site("old"), site("new"));
        let server = with(main, "ssl_certificate_watch on;", &old).start();
        let mut open = Tls::new()
            .open(server.port(), "localhost")
            .expect("a handshake");
        assert_eq!(
            open.get("localhost", "/").expect("a response"),
            "as loaded\n"
        );
        let workers = server.workers();
        // Edits of the configuration are ignored until the next reload.
        server.rewrite_conf(|text| text.replace("as loaded", "as edited"));
        replace(&server, "k.pem", &new.key);
        replace(&server, "c.pem", &new.certificate);
        soon(&server, || shows(&server, &new));
        assert_eq!(
            open.get("localhost", "/").expect("a response"),
            "as loaded\n"
        );
        assert_eq!(
            Tls::new().get(server.port(), "localhost", "/").body,
            "as loaded\n"
        );
        assert_eq!(server.workers(), workers);
        // A reload reads everything, and finds the same certificate.
        server.signal(Signal::HUP);
        wait_until("the edited text counts", || {
            Tls::new().get(server.port(), "localhost", "/").body == "as edited\n"
        });
        assert!(shows(&server, &new));
    }
}

#[test]
fn half_a_pair_is_not_taken_up_and_told_once() {
    if !peer::is_firstbyte() {
        return;
    }
    let (old, new) = (site("old"), site("new"));
    let server = with("", "ssl_certificate_watch on;", &old).start();
    replace(&server, "c.pem", &new.certificate);
    server.wait_for_text("error.log", "key values mismatch");
    assert!(shows(&server, &old));
    // Two more checks of the same state log nothing.
    let told = |server: &Server| {
        server
            .error_log()
            .matches("the previous content stays in use")
            .count()
    };
    assert!(!holds_within(Duration::from_millis(2500), || told(&server) > 1));
    assert!(shows(&server, &old));
    replace(&server, "k.pem", "broken");
    server.wait_for_text("error.log", "no start line");
    assert!(shows(&server, &old));
    replace(&server, "k.pem", &new.key);
    soon(&server, || shows(&server, &new));
    assert!(!server.error_log().contains("-----"));
}

#[test]
fn a_pair_that_is_broken_does_not_keep_others() {
    if !peer::is_firstbyte() {
        return;
    }
    let (old, new, second) = (site("old"), site("new"), site("second"));
    let server = with(
        "",
        "ssl_certificate_watch on;
         server { listen 127.0.0.1:%%PORT%% ssl; server_name second;
           ssl_certificate %%DIR%%/c2.pem; ssl_certificate_key %%DIR%%/k2.pem; }",
        &old,
    )
    .bytes("c2.pem", second.certificate.as_bytes())
    .bytes("k2.pem", second.key.as_bytes())
    .start();
    std::fs::remove_file(server.path("c2.pem")).expect("it was there");
    std::fs::create_dir(server.path("c2.pem")).expect("there is room for a directory");
    replace(&server, "c.pem", &new.certificate);
    replace(&server, "k.pem", &new.key);
    // The server that is named first is the default one.
    let shown = || Tls::new().get(server.port(), "localhost", "/");
    soon(&server, || shown().is_from(&new));
    assert!(
        Tls::new()
            .get(server.port(), "second", "/")
            .is_from(&second)
    );
    server.wait_for_text("error.log", "c2.pem\": BIO_new_file() failed");
}

#[test]
fn a_key_of_two_certificates_waits_for_both() {
    if !peer::is_firstbyte() {
        return;
    }
    let (old, new) = (site("old"), site("new"));
    let (old_second, new_second) = (with_key_of(&old, "old2"), with_key_of(&new, "new2"));
    let second = "ssl_certificate_watch on;
         server { listen 127.0.0.1:%%PORT%% ssl; server_name second;
           ssl_certificate %%DIR%%/c2.pem; ssl_certificate_key %%DIR%%/k.pem; }";
    let server = with("", second, &old)
        .bytes("c2.pem", old_second.certificate.as_bytes())
        .start();
    let is = |name: &str, leaf: &Leaf| Tls::new().get(server.port(), name, "/").is_from(leaf);
    replace(&server, "c.pem", &new.certificate);
    replace(&server, "k.pem", &new.key);
    let log = server.wait_for_text("error.log", "k.pem\" is not that of certificate");
    assert!(is("localhost", &old) && is("second", &old_second), "{log}");
    replace(&server, "c2.pem", &new_second.certificate);
    soon(&server, || is("second", &new_second));
    assert!(is("localhost", &new));
}

#[test]
fn nothing_is_taken_up_where_it_is_off() {
    if !peer::is_firstbyte() {
        return;
    }
    for watch in ["", "ssl_certificate_watch off;"] {
        let (old, new) = (site("old"), site("new"));
        let server = with("", watch, &old).start();
        replace(&server, "c.pem", &new.certificate);
        replace(&server, "k.pem", &new.key);
        assert!(!holds_within(Duration::from_secs(4), || shows(
            &server, &new
        )));
    }
}

#[test]
fn a_reload_takes_up_what_was_written_in_place_with_the_time_of_before() {
    if !peer::is_firstbyte() {
        return;
    }
    for main in ["", "ssl_object_cache_inheritable off;"] {
        let (old, new) = (site("old"), site("new"));
        let server = with(main, "", &old).start();
        for (name, text) in [("c.pem", &new.certificate), ("k.pem", &new.key)] {
            let path = server.path(name);
            let times = std::fs::metadata(&path).and_then(|meta| meta.modified());
            server.dir().write(name, text);
            let file = std::fs::File::options().write(true).open(&path);
            file.and_then(|file| file.set_modified(times?))
                .expect("its time can be set");
        }
        server.rewrite_conf(|text| text.replace("as loaded", "as edited"));
        server.signal(Signal::HUP);
        wait_until("the edited text counts", || {
            Tls::new().get(server.port(), "localhost", "/").body == "as edited\n"
        });
        assert!(shows(&server, &new), "{main}");
    }
}

/// Time limit for loading a change.
const SOON: Duration = Duration::from_secs(5);
