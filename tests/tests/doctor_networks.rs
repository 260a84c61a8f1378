//! `firstbyte doctor` in networks of its own: slow name servers are found, and kernel settings by `--try`, which restores
//! them.
//!
//! Own executable: delays are measured.

#[path = "common/planted/network.rs"]
mod network;
#[path = "common/planted/site.rs"]
mod site;
#[path = "common/tls_client.rs"]
mod tls_client;

use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use firstbyte_tests::busy::check_timing;
use firstbyte_tests::{Server, Signal, TempDir, peer, process, wait_until};
use network::{NameServer, in_own_network, resolving_by, set_sysctl, sysctl};
use serde_json::Value;
use site::{BUSY, above_note, diagnosis_by, first, mends, with};

/// A name server that takes longer than one nearby.
#[test]
fn slow_name_server_is_found() {
    by_name_server(Duration::from_millis(120), |diagnosis| {
        let found = first(diagnosis, "slow-dns", "bad");
        let lost = found["lost_ms"].as_f64().unwrap_or_default();
        assert!(lost >= 120.0, "{found}");
        let lookups = &found["evidence"]["lookups"];
        assert_eq!(lookups["host"], NAME, "{found}");
        let took = lookups["took_ms"].as_array().map(Vec::len);
        assert_eq!(took, Some(3), "{found}");
    });
}

#[test]
fn quick_name_server_is_not_found() {
    by_name_server(Duration::ZERO, |diagnosis| {
        assert!(above_note(diagnosis).is_empty(), "{diagnosis:#}");
        let host = &diagnosis["measured"]["lookup"]["host"];
        assert_eq!(host, NAME, "it was looked up");
    });
}

/// Checks the diagnosis of a healthy server, reached by a name of this name server.
fn by_name_server(delay: Duration, judge: impl Fn(&Value) + Send + Sync) {
    in_own_network("", || {
        let _name_server = NameServer::serve(NAME, delay);
        let dir = TempDir::new();
        dir.write("resolv.conf", "nameserver 127.0.0.1\n");
        let server = with(&[]);
        let url = format!("https://{NAME}:{}/", server.port_number(1));
        let resolv_conf = dir.path().join("resolv.conf");
        let doctor = || {
            diagnosis_by(
                resolving_by(&resolv_conf, Path::new(&peer::binary())),
                &url,
                &[],
            )
        };
        check_timing(&url, BUSY, doctor, judge);
    });
}

const NAME: &str = "name.example";

/// Examines a healthy server with `--try`, in a network with these options of the route to visitors and this setting of
/// `tcp_slow_start_after_idle`, and checks the findings.
fn tried(route: &str, slow_start_after_idle: &str, judge: impl Fn(&Value) + Send + Sync) {
    in_own_network(route, || {
        let settings = [
            (IDLE, slow_start_after_idle),
            // Others pace their flights, and each network may have this one.
            ("net.ipv4.tcp_congestion_control", "reno"),
        ];
        if !settings.iter().all(|(name, value)| set_sysctl(name, value)) {
            return;
        }
        let corking = sysctl(CORKING);
        let server = with(&[]);
        // Without TLS, since its handshake widens the window before the first response.
        let url = format!("http://localhost:{}/", server.port_number(3));
        let doctor = || diagnosis_by(Command::new(peer::binary()), &url, &["--try"]);
        let what = format!("{route}, {slow_start_after_idle}");
        check_timing(&what, BUSY, doctor, |found| {
            judge(found);
            let trials = found["measured"]["kernel_trials"].as_array();
            let trials = trials.map_or(&[][..], Vec::as_slice);
            assert_eq!(trials.len(), 5, "{found:#}");
            assert_eq!(sysctl(IDLE), slow_start_after_idle);
            assert_eq!(sysctl(CORKING), corking);
        });
    });
}

const IDLE: &str = "net.ipv4.tcp_slow_start_after_idle";
const CORKING: &str = "net.ipv4.tcp_autocorking";

/// Side by side, since most of a trial's time is round trips.
#[test]
fn settings_that_delay_first_bytes_are_found_by_trial_and_others_are_not() {
    thread::scope(|scope| {
        scope.spawn(|| tried("initcwnd 3", "0", narrow_initial_window));
        scope.spawn(|| tried("", "1", slow_start_after_idle));
        scope.spawn(|| tried("initcwnd 10", "0", good_settings));
    });
}

fn narrow_initial_window(found: &Value) {
    let found = first(found, "kernel-settings", "bad");
    assert_eq!(found["evidence"]["setting"], "initcwnd");
    let values = [&found["evidence"]["value"], &found["evidence"]["tried"]];
    assert_eq!(values, ["3", "10"], "{found}");
    assert!(mends(&found, "initcwnd 10;"), "{found}");
}

fn slow_start_after_idle(found: &Value) {
    let found = first(found, "kernel-settings", "warn");
    assert_eq!(found["evidence"]["setting"], "tcp_slow_start_after_idle");
    let mend = "sysctl -w net.ipv4.tcp_slow_start_after_idle=0;";
    assert!(mends(&found, mend), "{found}");
}

fn good_settings(found: &Value) {
    assert!(above_note(found).is_empty(), "{found:#}");
    let notes = found["conditions"]["notes"].to_string();
    let tried = "tried tcp_slow_start_after_idle = 1, which is 0: slower";
    assert!(notes.contains(tried), "{notes}");
}

/// The body of `--url` is larger than one that the doctor would choose.
#[test]
fn settings_are_tried_with_the_body_of_the_url_option() {
    in_own_network("", || {
        let text = "server { listen 127.0.0.1:%%PORT%%; root html; }";
        let server = Server::http(text)
            .file("html/index.html", "<p>it is well")
            .bytes("html/large.bin", &[b'x'; 250_000])
            .start();
        let url = format!("http://127.0.0.1:{}/", server.port());
        let large = format!("{url}large.bin");
        let words = ["--try", "--url", &large];
        let found = diagnosis_by(Command::new(peer::binary()), &url, &words);
        let trials = found["measured"]["kernel_trials"].as_array();
        let trials = trials.map_or(&[][..], Vec::as_slice);
        assert!(!trials.is_empty(), "{found:#}");
        for trial in trials {
            let body = (&trial["url"], &trial["bytes"]);
            assert_eq!(body, (&large.as_str().into(), &250_000.into()));
        }
        let notes = found["conditions"]["notes"].to_string();
        let named = format!("with {large} (250000 bytes)");
        assert_eq!(notes.matches(&named).count(), trials.len(), "{notes}");
    });
}

/// An interrupted doctor restores the setting that it has changed; a second one refuses to begin meanwhile.
#[test]
fn settings_are_restored_when_a_trial_is_interrupted() {
    in_own_network("", || {
        if !set_sysctl(IDLE, "1") {
            return;
        }
        let text = "server { listen 127.0.0.1:%%PORT%%; root html; }";
        let server = Server::http(text)
            .file("html/index.html", "<p>it is well")
            .start();
        let url = format!("http://127.0.0.1:{}/", server.port());
        for signal in [Signal::INT, Signal::TERM] {
            let mut doctor = Command::new(peer::binary());
            doctor.args(["doctor", &url, "--try"]);
            let doctor = doctor.stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
            let doctor = doctor.expect("it starts");
            wait_until("a setting is changed", || sysctl(IDLE) == "0");
            let second = Command::new(peer::binary())
                .args(["doctor", &url, "--try"])
                .output();
            let second = second.expect("it starts");
            assert!(process::signal(doctor.id(), signal));
            let ended = doctor.wait_with_output().expect("it ends");
            assert_eq!(ended.status.code(), Some(130), "{ended:?}");
            assert_eq!(sysctl(IDLE), "1");
            let told = String::from_utf8_lossy(&ended.stderr);
            assert!(
                told.contains("sysctl -w net.ipv4.tcp_slow_start_after_idle=1"),
                "{told}"
            );
            let refused = String::from_utf8_lossy(&second.stderr);
            assert_eq!(second.status.code(), Some(1), "{second:?}");
            assert!(refused.contains("another firstbyte doctor"), "{refused}");
        }
    });
}
