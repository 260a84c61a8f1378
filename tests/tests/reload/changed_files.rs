//! Changes on the disk are seen at HUP, however well they hide; unchanged files are not read again.
//!
//! A file counts as it was while its device, number, size and times stay, and only if it had been left alone for a while when
//! it was read: so these files are left alone before the server starts.

use std::fs::{self, FileTimes, OpenOptions};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::tls_client::{Leaf, Tls, site};
use firstbyte_tests::wait::holds_within;
use firstbyte_tests::{Builder, Client, Server, Signal, peer, process, wait_until};

/// After this time without a change a file that is read counts as known.
const AGE: Duration = Duration::from_secs(4);

/// A host with files for sites, map, settings and certificate.
fn host(leaf: &Leaf) -> Builder {
    let server = |name: &str, text: &str| {
        format!(
            "server {{ listen 127.0.0.1:%%PORT%%; server_name {name}; return 200 \"{text} $found\"; }}\n"
        )
    };
    let builder = Server::http(
        "# %%PORT3%% comes later.
         include %%DIR%%/level.inc;
         map $arg_k $found { default none; include %%DIR%%/map.inc; }
         server { listen 127.0.0.1:%%PORT2%% ssl; server_name localhost; return 200 tls;
           ssl_certificate %%DIR%%/c.pem; ssl_certificate_key %%DIR%%/k.pem; }
         include %%DIR%%/sites/*.conf;
         include %%DIR%%/linked.conf;
         include %%DIR%%/current/site.conf;",
    )
    .file("level.inc", "add_header X-Level one always;\n")
    .file("map.inc", "key found-1;\n")
    .bytes("c.pem", leaf.certificate.as_bytes())
    .bytes("k.pem", leaf.key.as_bytes())
    .file(
        "sites/padding.conf",
        &"# a line that stays as it is\n".repeat(PADDING / 16),
    );
    ["written", "renamed", "removed", "kept"]
        .iter()
        .fold(builder, |builder, name| {
            builder.file(&format!("sites/{name}.conf"), &server(name, "1"))
        })
        .file("aside/renamed.conf", &server("renamed", "2"))
        .file("aside/added.conf", &server("added", "9"))
        .file("aside/linked-1.conf", &server("linked", "1"))
        .file("aside/linked-2.conf", &server("linked", "2"))
        .file("v1/site.conf", &server("current", "1"))
        .file("v2/site.conf", &server("current", "2"))
        .prepare(|dir| {
            link(dir, "aside/linked-1.conf", "linked.conf");
            link(dir, "v1", "current");
            // All have the same modification time, so that it shows no change.
            for name in ["sites/renamed.conf", "aside/renamed.conf"]
                .into_iter()
                .chain(["aside/linked-1.conf", "aside/linked-2.conf"])
                .chain(["v1/site.conf", "v2/site.conf", "sites/written.conf"])
            {
                set_back(&dir.join(name));
            }
            let made = SystemTime::now();
            let is_old = || made.elapsed().is_ok_and(|age| age > AGE);
            assert!(holds_within(AGE * 2, is_old));
        })
}

/// Puts a link into the place of another.
fn link(dir: &Path, to: &str, name: &str) {
    let aside = dir.join("link.new");
    symlink(to, &aside).expect("a link can be made");
    fs::rename(&aside, dir.join(name)).expect("it can be renamed");
}

/// Sets the time of the last change of a file's bytes to one that never changes here.
fn set_back(path: &Path) {
    let file = OpenOptions::new().write(true).open(path).expect("a file");
    let then = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    file.set_times(FileTimes::new().set_modified(then))
        .expect("times can be set");
}

fn ask(server: &Server, name: &str) -> String {
    let mut client = server.client();
    let answer = client.get_with("/?k=key", &[&format!("Host: {name}")]);
    answer.text()
}

/// Reloads, and waits for this response to a name.
fn reloaded(server: &Server, name: &str, wanted: &str) {
    server.signal(Signal::HUP);
    wait_until(&format!("{name}: {wanted}"), || ask(server, name) == wanted);
}

/// How many bytes a process has read, from files too that are in memory.
fn bytes_read(pid: u32) -> usize {
    let text = fs::read_to_string(format!("/proc/{pid}/io")).expect("the kernel counts them");
    let count = text.lines().find_map(|line| line.strip_prefix("rchar: "));
    count.and_then(|n| n.parse().ok()).expect("a number")
}

#[test]
fn each_kind_of_change_is_seen() {
    let (old, new) = (site("old"), site("new"));
    let server = host(&old).start();
    for name in ["written", "renamed", "removed", "linked", "current"] {
        assert_eq!(ask(&server, name), "1 found-1", "{name}");
    }
    // The same size, and the time of the last change set back.
    let written = server.path("sites/written.conf");
    let text = fs::read_to_string(&written).expect("a site");
    fs::write(&written, text.replace("\"1 ", "\"2 ")).expect("it can be written");
    set_back(&written);
    reloaded(&server, "written", "2 found-1");
    // Another file of that size and time.
    let place = server.path("sites/renamed.conf");
    fs::rename(server.path("aside/renamed.conf"), place).expect("a file");
    reloaded(&server, "renamed", "2 found-1");
    link(server.dir().path(), "aside/linked-2.conf", "linked.conf");
    reloaded(&server, "linked", "2 found-1");
    link(server.dir().path(), "v2", "current");
    reloaded(&server, "current", "2 found-1");
    // An added and a removed file. A request for the removed name gets the first server of the address.
    let added = server.path("sites/added.conf");
    fs::rename(server.path("aside/added.conf"), &added).expect("a file");
    reloaded(&server, "added", "9 found-1");
    fs::remove_file(server.path("sites/removed.conf")).expect("a file");
    server.dir().write("map.inc", "key found-2;\n");
    reloaded(&server, "removed", "9 found-2");
    assert!(fs::remove_file(&added).is_ok());
    server
        .dir()
        .write("level.inc", "add_header X-Level two always;\n");
    let level = || {
        let answer = server.client().get_with("/", &["Host: kept"]);
        answer.header("X-Level").map(str::to_owned)
    };
    assert_eq!(level().as_deref(), Some("one"));
    server.signal(Signal::HUP);
    wait_until("a level around files that stay", || {
        level().as_deref() == Some("two")
    });
    // A certificate: a pair is read, and the text of its server stays.
    fs::write(server.path("c.pem"), &new.certificate).expect("it can be written");
    fs::write(server.path("k.pem"), &new.key).expect("it can be written");
    server.signal(Signal::HUP);
    let shown = |leaf: &Leaf| {
        Tls::new()
            .get(server.port_number(2), "localhost", "/")
            .is_from(leaf)
    };
    wait_until("the new certificate", || shown(&new));
    // Twice within a tick of any clock.
    for n in 3..6 {
        fs::write(&written, text.replace("\"1 ", &format!("\"{n} "))).expect("it can be written");
        set_back(&written);
        reloaded(&server, "written", &format!("{n} found-2"));
    }
}

#[test]
fn what_is_opened_for_a_file_that_changes_is_opened() {
    let server = host(&site("one")).allow("[warn]").start();
    let kept = fs::read_to_string(server.path("sites/kept.conf")).expect("a site");
    let change = |from: &str, to: &str| {
        let text = kept.replace(from, &server.expand(to));
        fs::write(server.path("sites/kept.conf"), text).expect("it can be written");
        server.signal(Signal::HUP);
    };
    // Another address, another log, a file that nothing has named before, a warning.
    change("server_name", "listen 127.0.0.1:%%PORT3%%; server_name");
    wait_until("a new address", || {
        Client::try_connect_to("127.0.0.1", server.port_number(3))
            .is_ok_and(|mut client| client.get("/?k=key").text() == "1 found-1")
    });
    change("server_name", "access_log %%DIR%%/kept.log; server_name");
    wait_until("a new log", || {
        ask(&server, "kept");
        !server.dir().read("kept.log").is_empty()
    });
    server.dir().write("more.inc", "add_header X-More 1;\n");
    change("server_name", "include %%DIR%%/more.inc; server_name");
    let more = || {
        let answer = server.client().get_with("/", &["Host: kept"]);
        answer.header("X-More").map(str::to_owned)
    };
    wait_until("a file that is new", || more().is_some());
    server.dir().write("more.inc", "add_header X-More 2;\n");
    server.signal(Signal::HUP);
    wait_until("a change of it", || more().as_deref() == Some("2"));
    // Every reload logs the warning again, changed or not.
    let told = || {
        let log = server.error_log();
        log.matches("conflicting server name \"written\"").count()
    };
    change("server_name", "server_name written");
    wait_until("a warning", || told() == 1);
    reloaded(&server, "kept", "1 found-1");
    wait_until("the warning again", || told() == 2);
}

#[test]
fn a_worker_that_is_lost_while_it_prepares_is_replaced_by_one_that_serves_the_new() {
    if !peer::is_firstbyte() {
        return;
    }
    let server = host(&site("one")).allow("[alert]").start();
    let workers = server.workers();
    let [worker] = workers.as_slice() else {
        panic!("one worker: {workers:?}")
    };
    // A connection is there before its worker has a configuration.
    assert_eq!(ask(&server, "kept"), "1 found-1");
    assert!(process::signal(*worker, Signal::STOP));
    wait_until("it has stopped", || process::is_stopped(*worker));
    server.dir().write("map.inc", "key found-2;\n");
    server.signal(Signal::HUP);
    server.wait_for_text("error.log", "reconfiguring");
    wait_until("the supervisor waits", || process::is_waiting(server.pid()));
    assert!(process::signal(*worker, Signal::KILL));
    wait_until("the new one serves", || {
        let alive = server.workers();
        !alive.is_empty() && !alive.contains(worker) && {
            let client = Client::try_connect_to("127.0.0.1", server.port());
            client.is_ok_and(|mut client| {
                let answer = client.get_with("/?k=key", &["Host: kept"]);
                answer.text() == "1 found-2"
            })
        }
    });
}

#[test]
fn the_supervisor_does_not_build_what_only_the_worker_serves() {
    if !peer::is_firstbyte() {
        return;
    }
    let entries: String = (0..ENTRIES).map(|n| format!("k{n} v{n};\n")).collect();
    let server = host(&site("one"))
        .file("many.inc", &entries)
        .file(
            "sites/many.conf",
            "map $arg_m $many { include %%DIR%%/many.inc; }\n",
        )
        .start();
    let worker = server.workers()[0];
    let spent = || [server.pid(), worker].map(process::cpu_time);
    // Before a first reload, the supervisor may still do work of the start.
    server.dir().write("map.inc", "key found-2;\n");
    reloaded(&server, "kept", "1 found-2");
    wait_until("it rests", || process::is_waiting(server.pid()));
    // On a busy machine the supervisor may sleep before the work of the start is done, and once more. But a supervisor
    // that builds the configuration does so each time.
    let reload = |n: u32| {
        let before = spent();
        server.dir().write("map.inc", format!("key found-{n};\n"));
        reloaded(&server, "kept", &format!("1 found-{n}"));
        let after = spent();
        [0, 1].map(|of| after[of].saturating_sub(before[of]))
    };
    let all: Vec<_> = (3..6).map(reload).collect();
    assert!(
        all.iter()
            .any(|[supervisor, worker]| *supervisor < *worker / 2),
        "{all:?}"
    );
}

#[test]
fn a_reload_that_fails_changes_nothing() {
    let (old, new) = (site("old"), site("new"));
    let server = host(&old).allow("[emerg]").start();
    let shown = |leaf: &Leaf| {
        Tls::new()
            .get(server.port_number(2), "localhost", "/")
            .is_from(leaf)
    };
    let broken = |change: &dyn Fn(), message: &str| {
        change();
        server.signal(Signal::HUP);
        server.wait_for_text("error.log", &server.expand(message));
        for name in ["written", "linked", "current", "kept"] {
            assert_eq!(ask(&server, name), "1 found-1", "{name}: {message}");
        }
        assert!(shown(&old), "{message}");
    };
    let put = |name: &str, text: &str| fs::write(server.path(name), text).expect("a file");
    let kept = fs::read_to_string(server.path("sites/kept.conf")).expect("a site");
    // Each broken change comes with valid ones.
    put("map.inc", "key found-2;\n");
    let gone = || fs::remove_file(server.path("linked.conf")).expect("a link");
    broken(
        &gone,
        "open() \"%%DIR%%/linked.conf\" failed (2: No such file or directory)",
    );
    link(server.dir().path(), "aside/linked-2.conf", "linked.conf");
    broken(
        &|| put("sites/kept.conf", "no_such_directive;"),
        "unknown directive \"no_such_directive\" in %%DIR%%/sites/kept.conf:1",
    );
    // Errors that only the whole configuration shows: zones, groups and variables are checked at the end.
    broken(
        &|| put("sites/kept.conf", &kept.replace("$found", "$unheard_of")),
        "unknown \"unheard_of\" variable",
    );
    put("sites/kept.conf", &kept);
    broken(&|| put("c.pem", &new.certificate), "key values mismatch");
    put("k.pem", &new.key);
    reloaded(&server, "kept", "1 found-2");
    // If there are two workers for a while, either may respond.
    wait_until("all of it", || {
        ask(&server, "linked") == "2 found-2" && shown(&new)
    });
}

#[test]
fn files_that_stay_are_not_read_again() {
    if !peer::is_firstbyte() {
        return;
    }
    let server = host(&site("one")).start();
    for (n, wanted) in [(1, "found-2"), (2, "found-3")] {
        let before = bytes_read(server.pid());
        server.dir().write("map.inc", format!("key {wanted};\n"));
        reloaded(&server, "kept", &format!("1 {wanted}"));
        let read = bytes_read(server.pid()) - before;
        assert!(read < PADDING, "{read} bytes in reload {n}");
    }
}

/// Lines of a map: to build it takes many ticks of the clock of CPU time.
const ENTRIES: usize = 200_000;

/// The size of a file that is not changed.
const PADDING: usize = 1 << 20;
