//! Servers of other projects, which pick a certificate by name and want one of the client: Node, nginx.

use std::path::Path;
use std::process::Command;

use firstbyte_tests::Server;
use firstbyte_tests::dir::TempDir;
use firstbyte_tests::node::script;
use firstbyte_tests::port::Port;
use firstbyte_tests::programs::Program;
use firstbyte_tests::skip::skip;

use super::{authority, issued};

/// The files of a server with two names, for `tls_server.js` and nginx, and of its client.
fn named_files(dir: &Path) {
    let ours = authority("Ours");
    let write = |name: &str, text: &str| {
        std::fs::write(dir.join(name), text).expect("the directory is the test's");
    };
    for name in ["a.test", "b.test", "default", "client"] {
        let leaf = issued(&ours, name, |_| {});
        write(&format!("{name}.pem"), &leaf.certificate);
        write(&format!("{name}.key"), &leaf.key);
    }
    write("ca.pem", &ours.pem());
}

/// A server that verifies names and shows a certificate to the server at this port, with the files in `files`.
fn front(files: &Path, port: u16) -> Server {
    let files = files.display();
    let verified = format!(
        "proxy_ssl_server_name on; proxy_ssl_name $arg_n; proxy_ssl_verify on;
         proxy_ssl_trusted_certificate {files}/ca.pem;"
    );
    let known = format!(
        "proxy_ssl_certificate {files}/client.pem; proxy_ssl_certificate_key {files}/client.key;"
    );
    let to_uwsgi = |text: &str| text.replace("proxy_", "uwsgi_");
    Server::http_with(
        "worker_processes 1;",
        &format!(
            "server {{ listen 127.0.0.1:%%PORT%%; proxy_set_header Connection close; proxy_set_header Host $arg_n;
               location / {{ proxy_pass https://127.0.0.1:{port}; {verified} {known} }}
               location /unknown {{ proxy_pass https://127.0.0.1:{port}; {verified} }}
               location /app {{ uwsgi_pass suwsgi://127.0.0.1:{port}; {} {} }} }}",
            to_uwsgi(&verified),
            to_uwsgi(&known)
        ),
    )
    .start()
}

#[test]
fn node_picks_its_certificate_by_name_and_wants_one() {
    let (dir, port) = (TempDir::new(), Port::reserve());
    named_files(dir.path());
    let start = |kind: &str| {
        let mut node = Command::new("node");
        node.arg(script("tls_server.js"));
        node.args([kind, &port.number().to_string()])
            .arg(dir.path());
        Program::start(&dir, kind, &mut node).accepting(port.number())
    };
    let node = start("https");
    let server = front(dir.path(), port.number());
    assert_eq!(server.get("/?n=a.test").text(), "a.test client new\n");
    assert_eq!(server.get("/?n=a.test").text(), "a.test client resumed\n");
    assert_eq!(server.get("/?n=b.test").text(), "b.test client new\n");
    assert_eq!(server.get("/?n=c.test").status, 502);
    server.wait_for_text(
        "error.log",
        "upstream SSL certificate does not match \"c.test\"",
    );
    assert_eq!(server.get("/unknown?n=a.test").status, 502);
    drop(node);
    let _node = start("uwsgi");
    assert_eq!(server.get("/app?n=b.test").text(), "b.test client new\n");
    assert_eq!(server.get("/app?n=c.test").status, 502);
}

#[test]
fn nginx_picks_its_certificate_by_name_and_wants_one() {
    let Some(nginx) = std::env::var_os("FIRSTBYTE_NGINX") else {
        return skip("FIRSTBYTE_NGINX names no nginx");
    };
    let (dir, port) = (TempDir::new(), Port::reserve());
    named_files(dir.path());
    let (place, listen) = (dir.path().display(), port.number());
    let mut servers = String::new();
    for name in ["default", "a.test", "b.test"] {
        servers.push_str(&format!(
            "server {{ listen 127.0.0.1:{listen} ssl; server_name {name}; ssl_verify_client on;
             ssl_client_certificate {place}/ca.pem; ssl_session_cache shared:s:1m;
             ssl_certificate {place}/{name}.pem; ssl_certificate_key {place}/{name}.key;
             return 200 \"$ssl_server_name $ssl_client_s_dn $ssl_session_reused\\n\"; }}\n"
        ));
    }
    let temps: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .iter()
        .map(|name| format!("{name}_temp_path {place}/{name};\n"))
        .collect();
    dir.write(
        "nginx.conf",
        format!(
            "daemon off; master_process off; pid {place}/pid; error_log {place}/log;
             events {{}} http {{ access_log off; {temps} {servers} }}"
        ),
    );
    let mut start = Command::new(nginx);
    start
        .args(["-e", "log", "-c", "nginx.conf", "-p"])
        .arg(format!("{place}/"));
    let _nginx = Program::start(&dir, "nginx", &mut start).accepting(listen);
    let server = front(dir.path(), listen);
    assert_eq!(server.get("/?n=a.test").text(), "a.test CN=client .\n");
    assert_eq!(server.get("/?n=a.test").text(), "a.test CN=client r\n");
    assert_eq!(server.get("/?n=b.test").text(), "b.test CN=client .\n");
    assert_eq!(server.get("/?n=c.test").status, 502);
    server.wait_for_text(
        "error.log",
        "upstream SSL certificate does not match \"c.test\"",
    );
    // nginx answers a client without a certificate, so the handshake succeeds.
    assert_eq!(server.get("/unknown?n=a.test").status, 400);
}
