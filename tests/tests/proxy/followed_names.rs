//! Names of servers that the main thread follows, with unbound as the name server, under load.
//!
//! Sources: nginx documentation, `ngx_http_upstream_module`, `resolve` and `service`.

use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use firstbyte_tests::port::Port;
use firstbyte_tests::programs::{Program, command};
use firstbyte_tests::{Server, TempDir, wait_until};

/// A name server whose records are changed by `unbound-control`.
struct Unbound {
    _program: Program,
    conf: std::path::PathBuf,
}

impl Unbound {
    fn start(dir: &TempDir, port: u16) -> Option<Self> {
        let unbound = command("unbound")?;
        let path = dir.path().display();
        dir.write(
            "unbound.conf",
            format!(
                "server:\n  interface: 127.0.0.1\n  port: {port}\n  do-daemonize: no\n  username: \"\"\n  chroot: \"\"\n  \
                 directory: \"{path}\"\n  pidfile: \"{path}/unbound.pid\"\n  use-syslog: no\n  module-config: \"iterator\"\n  \
                 num-threads: 1\n  local-zone: \"example.\" static\nremote-control:\n  control-enable: yes\n  \
                 control-interface: \"{path}/unbound.ctl\"\n  control-use-cert: no\n"
            ),
        );
        let conf = dir.path().join("unbound.conf");
        let mut start = Command::new(unbound);
        start.arg("-d").arg("-c").arg(&conf);
        // It answers over TCP as well.
        let program = Program::start(dir, "unbound", &mut start).accepting(port);
        Some(Self {
            _program: program,
            conf,
        })
    }

    /// Replaces all records of a name.
    fn set(&self, name: &str, records: &[&str]) {
        self.control(&["local_data_remove", name]);
        for record in records {
            self.control(&["local_data", &format!("{name} 1 IN {record}")]);
        }
    }

    fn control(&self, words: &[&str]) {
        let mut control = Command::new("unbound-control");
        let output = control.arg("-c").arg(&self.conf).args(words).output();
        let output = output.expect("unbound-control runs");
        assert!(output.status.success(), "{words:?}: {output:?}");
    }
}

/// Statuses of requests of several connections, until it is dropped.
struct Load {
    stop: AtomicBool,
    served: AtomicUsize,
}

impl Load {
    /// Runs `act` while four connections send requests. Each must get 200.
    fn around(server: &Server, act: impl FnOnce()) {
        let load = Self {
            stop: AtomicBool::new(false),
            served: AtomicUsize::new(0),
        };
        thread::scope(|scope| {
            let clients: Vec<_> = (0..4)
                .map(|_| scope.spawn(|| load.requests(server)))
                .collect();
            act();
            load.stop.store(true, Ordering::Relaxed);
            for client in clients {
                client.join().expect("every request succeeded");
            }
        });
        assert!(load.served.load(Ordering::Relaxed) > 100);
    }

    fn requests(&self, server: &Server) {
        let mut client = server.client();
        while !self.stop.load(Ordering::Relaxed) {
            let response = client.get("/");
            assert_eq!(response.status, 200, "{}", response.text());
            self.served.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Waits until requests are served by these addresses and no others.
fn wait_for(server: &Server, addresses: &[&str]) {
    let what = format!("{addresses:?}");
    wait_until(&what, || {
        let mut seen: Vec<_> = (0..10).map(|_| server.get("/").text()).collect();
        seen.sort_unstable();
        seen.dedup();
        seen == addresses
    });
}

#[test]
fn answers_that_change_under_load_fail_no_request() {
    if command("unbound").is_none() {
        return;
    }
    let server = Server::http_with(
        "worker_processes 2;",
        "resolver 127.0.0.1:%%PORT2%% valid=1s ipv6=off; resolver_timeout 1s;
         upstream app { zone app 1m; server app.example:%%PORT3%% resolve; }
         server { listen 127.0.0.1:%%PORT%%; keepalive_requests 1000000; location / { proxy_pass http://app; } }
         server { listen 127.0.0.2:%%PORT3%%; listen 127.0.0.3:%%PORT3%%; location / { return 200 $server_addr; } }",
    )
    .start();
    let names = Unbound::start(server.dir(), server.port_number(2)).expect("it is there");
    names.set("app.example.", &["A 127.0.0.2"]);
    wait_for(&server, &["127.0.0.2"]);
    Load::around(&server, || {
        let both = ["127.0.0.2", "127.0.0.3"];
        for addresses in [&both[..], &both[1..], &both, &both[..1]] {
            let records: Vec<_> = addresses.iter().map(|ip| format!("A {ip}")).collect();
            let records: Vec<_> = records.iter().map(String::as_str).collect();
            names.set("app.example.", &records);
            wait_for(&server, addresses);
        }
    });
}

#[test]
fn servers_of_a_service_have_ports_and_backups_of_their_records() {
    if command("unbound").is_none() {
        return;
    }
    let server = Server::http(
        "resolver 127.0.0.1:%%PORT2%% valid=1s ipv6=off; resolver_timeout 1s;
         upstream app { zone app 1m; server app.example service=http resolve; }
         server { listen 127.0.0.1:%%PORT%%; location / { proxy_pass http://app; } }
         server { listen 127.0.0.1:%%PORT3%%; location / { return 200 first; } }
         server { listen 127.0.0.1:%%PORT4%%; location / { return 200 second; } }",
    )
    .start();
    let names = Unbound::start(server.dir(), server.port_number(2)).expect("it is there");
    names.set("one.example.", &["A 127.0.0.1"]);
    let [first, second] = [3, 4].map(|n| server.port_number(n));
    let unused = Port::reserve();
    let service = |records: &[String]| {
        let records: Vec<_> = records.iter().map(String::as_str).collect();
        names.set("_http._tcp.app.example.", &records);
    };
    let record = |priority: u8, port: u16| format!("SRV {priority} 5 {port} one.example.");
    service(&[record(1, first), record(2, second)]);
    wait_for(&server, &["first"]);
    service(&[record(1, first), record(1, second)]);
    wait_for(&server, &["first", "second"]);
    service(&[record(1, unused.number()), record(2, second)]);
    wait_for(&server, &["second"]);
    // Without records there is no server.
    names.set("_http._tcp.app.example.", &[]);
    wait_until("no server is left", || server.get("/").status == 502);
}
