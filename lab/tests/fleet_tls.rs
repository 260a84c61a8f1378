//! The store in ClickHouse as docs/fleet.md sets it up: over TLS with an authority of its own, and with users that have few rights.
//!
//! Without clickhouse-server the test is skipped.

use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use firstbyte_tests::clickhouse::ClickHouse;
use firstbyte_tests::port::Port;
use firstbyte_tests::wait_until;
use lab::client::Url;
use lab::client::trust::Trust;
use lab::fetch::{HttpClient, HttpClientSettings};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use store::{ClickHouseSettings, Connection, Query, Report, Retention, Store, Transport, Writer};

const DATABASE: &str = "firstbyte";
const PASSWORD: &str = "pass-Word";
/// `printf pass-Word | sha256sum`.
const PASSWORD_SHA256: &str = "303f20aeffb98409b471ef88747b73f0255d4141029b8897189f38779ee66298";

/// Makes an authority, and a certificate for localhost in the folder.
fn certificates(folder: &Path) {
    let key = || KeyPair::generate().expect("there is randomness");
    let mut params = CertificateParams::new(["authority".to_owned()]).expect("a name");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, key()).expect("it can be signed");
    let own = key();
    let leaf = CertificateParams::new(["localhost".to_owned()]).expect("a name");
    let leaf = leaf.signed_by(&own, &authority).expect("it can be signed");
    let write = |name: &str, text: String| std::fs::write(folder.join(name), text);
    write("ca.pem", authority.pem()).expect("it is ours");
    write("server.pem", leaf.pem()).expect("it is ours");
    write("server.key", own.serialize_pem()).expect("it is ours");
}

/// The settings of docs/fleet.md.
fn configure(folder: &Path, https: u16) {
    let path = folder.display();
    let tls = format!(
        "<yandex><https_port>{https}</https_port><openSSL><server>
        <certificateFile>{path}/server.pem</certificateFile><privateKeyFile>{path}/server.key</privateKeyFile>
        <verificationMode>none</verificationMode><disableProtocols>sslv2,sslv3</disableProtocols>
        </server></openSSL></yandex>"
    );
    let users = format!(
        "<yandex><profiles><firstbyte_reader><readonly>1</readonly></firstbyte_reader></profiles><users>
        <firstbyte><password_sha256_hex>{PASSWORD_SHA256}</password_sha256_hex>
        <networks><ip>127.0.0.1</ip><ip>::1</ip></networks><profile>default</profile><quota>default</quota>
        <allow_databases><database>{DATABASE}</database></allow_databases></firstbyte>
        <firstbyte_reader><password_sha256_hex>{PASSWORD_SHA256}</password_sha256_hex>
        <networks><ip>127.0.0.1</ip><ip>::1</ip></networks><profile>firstbyte_reader</profile><quota>default</quota>
        <allow_databases><database>{DATABASE}</database></allow_databases></firstbyte_reader>
        </users></yandex>"
    );
    for (name, text) in [("config.d", tls), ("users.d", users)] {
        std::fs::create_dir(folder.join(name)).expect("a new folder");
        std::fs::write(folder.join(name).join("fleet.xml"), text).expect("it is ours");
    }
}

fn client(folder: &Path, https: u16) -> Box<dyn Transport> {
    let url = Url::parse(&format!("https://localhost:{https}/")).expect("a URL");
    let mut settings = HttpClientSettings::new(&url);
    settings.trust = Trust::file(&folder.join("ca.pem")).expect("it was written");
    settings.gzip = true;
    Box::new(HttpClient::new(settings))
}

fn settings(folder: &Path, database: &str, password: &str) -> ClickHouseSettings {
    ClickHouseSettings {
        database: database.to_owned(),
        user: Some("firstbyte".to_owned()),
        password: Some(password.to_owned()),
        spill: folder.join(format!("spill-{database}-{password}")),
        spill_bytes: 1 << 24,
        batch_pause: Duration::from_millis(100),
        retention: Retention::default(),
    }
}

#[test]
fn writer_and_reader_need_few_rights_over_tls() {
    let Some(mut server) = ClickHouse::start() else {
        return;
    };
    let folder = server.path().to_owned();
    let https = Port::reserve();
    certificates(&folder);
    configure(&folder, https.number());
    server.restart();
    let port = https.number();
    wait_until("it accepts TLS", || {
        TcpStream::connect(("127.0.0.1", port)).is_ok()
    });
    let start = |settings: ClickHouseSettings, reports: std::sync::mpsc::Sender<String>| {
        let folder = folder.clone();
        let connect = Box::new(move || client(&folder, port));
        let report = move |report: Report| _ = reports.send(report.to_string());
        Writer::start_clickhouse(settings, connect, report).expect("a thread")
    };
    let row = || Connection {
        closed_s: 1_790_000_000,
        protocol: "HTTP/2.0".to_owned(),
        ..Connection::default()
    };
    // A wrong password, and a database of others: both errors name their cause, and neither the password.
    for (database, password, cause) in [
        (DATABASE, "another", "Wrong password"),
        ("other", PASSWORD, "Access denied"),
    ] {
        let (sender, reports) = std::sync::mpsc::channel();
        let writer = start(settings(&folder, database, password), sender);
        assert!(writer.offer(row()));
        let report = reports.recv_timeout(Duration::from_secs(20)).expect("one");
        assert!(report.contains(cause), "{report}");
        assert!(!report.contains(password), "{report}");
    }
    let (sender, _reports) = std::sync::mpsc::channel();
    let writer = start(settings(&folder, DATABASE, PASSWORD), sender);
    for _ in 0..1000 {
        assert!(writer.offer(row()));
    }
    wait_until("all rows are stored", || {
        let counts = writer.counters().counts();
        counts.written == 1000 && counts.spilled_batches == 0
    });
    let reader = store::ClickHouse::reader(
        client(&folder, port),
        DATABASE.to_owned(),
        Some("firstbyte_reader".to_owned()),
        Some(PASSWORD.to_owned()),
    );
    let all = Query {
        to_s: u64::MAX,
        ..Query::default()
    };
    let totals = reader.totals(&all).expect("the reader may read");
    assert_eq!(totals.connections, 1000);
}
