//! A browser that visits a page connects to the page alone: no name lookup, no connection and no packet of its own.
//!
//! The browser's log of its network is read: lookups, connections and datagrams of all its processes and profiles.

mod browser;

use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use browser::{is_installed, options, resource};
use firstbyte_tests::TempDir;
use firstbyte_tests::backend::{Backend, answer};
use firstbyte_tests::dir::set_mode;
use firstbyte_tests::skip::skip;
use lab::page::Visit;
use serde_json::Value;

/// A script in place of the browser: it writes the log, and may change arguments.
struct Observed {
    dir: TempDir,
    program: PathBuf,
}

/// Requests, name lookups and connections of a browser.
#[derive(Debug)]
struct Seen {
    urls: Vec<String>,
    /// Names looked up, and addresses that were sent anything.
    elsewhere: Vec<String>,
}

impl Observed {
    /// `shell` runs before the browser; its arguments are `$@`. `start` is the command that starts the browser.
    fn new(shell: &str, start: &str) -> Self {
        let dir = TempDir::new();
        let browser = lab::browser::find(None).expect("there is one");
        let script = format!(
            "#!/bin/sh\n{shell}\nexec {start} {} --log-net-log={} \"$@\"\n",
            browser.display(),
            dir.path().join("net.json").display()
        );
        dir.write("browser", script);
        let program = dir.path().join("browser");
        set_mode(&program, 0o755);
        Self { dir, program }
    }

    /// Visits a page for some seconds, because the browser's services start after the page.
    fn visit(&self, url: &str) -> Visit {
        let mut options = options(url);
        options.browser = Some(self.program.clone());
        options.after_load = Duration::from_secs(8);
        browser::visit(&options)
    }

    fn seen(&self) -> Seen {
        let text = fs::read_to_string(self.dir.path().join("net.json")).expect("a log");
        let log: Value = serde_json::from_str(&text).expect("JSON");
        let types = log["constants"]["logEventTypes"]
            .as_object()
            .expect("its constants");
        // A type with another name in a later version would not be seen.
        for name in TYPES {
            assert!(types.contains_key(name), "{name}");
        }
        let mut seen = Seen {
            urls: Vec::new(),
            elsewhere: Vec::new(),
        };
        // Datagrams are sent on sockets that were connected before, by the number of the socket.
        let mut peers = std::collections::HashMap::new();
        for event in log["events"].as_array().expect("its events") {
            let (params, is) = (&event["params"], |name: &str| event["type"] == types[name]);
            let text = |name: &str| params[name].as_str().map(str::to_owned);
            if is("URL_REQUEST_START_JOB") {
                seen.urls.extend(text("url"));
            }
            if is("HOST_RESOLVER_MANAGER_JOB") {
                seen.elsewhere.extend(text("host"));
            }
            if is("TCP_CONNECT") {
                let addresses = params["address_list"].as_array().into_iter().flatten();
                let addresses = addresses.filter_map(|one| one.as_str().map(str::to_owned));
                seen.elsewhere.extend(addresses);
            }
            let socket = event["source"]["id"].as_u64();
            if is("UDP_CONNECT")
                && let Some(address) = text("address")
            {
                peers.insert(socket, address);
            }
            if is("UDP_BYTES_SENT") {
                let peer = text("address").or_else(|| peers.get(&socket).cloned());
                seen.elsewhere.push(peer.unwrap_or("unknown".to_owned()));
            }
        }
        seen.elsewhere.retain(|one| {
            !["127.0.0.1:", "[::1]:"]
                .iter()
                .any(|own| one.starts_with(own))
        });
        seen
    }
}

impl Seen {
    /// URLs that the browser requested of its vendor.
    fn of_vendor(&self) -> Vec<&String> {
        let all = self.urls.iter();
        all.filter(|url| url.contains(".google.com/") || url.contains(".googleapis.com/"))
            .collect()
    }
}

/// A page with a request that hangs, so that its visit takes as long as it may.
fn page(body: &str) -> (Backend, TcpListener) {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = silent.local_addr().expect("bound").port();
    let page = format!(
        "<!doctype html><title>t</title><link rel=icon href=data:,>{body}\
         <script>onload = () => fetch('http://127.0.0.1:{port}', {{mode: 'no-cors'}})</script>"
    );
    let html = ["Content-Type: text/html"];
    (
        Backend::answering(move |_| answer("200 OK", &html, &page)),
        silent,
    )
}

#[test]
fn browser_connects_to_nobody_but_the_page() {
    if !is_installed() {
        return;
    }
    let observed = Observed::new("", "");
    let (backend, _silent) = page("");
    // A host of the page besides its own.
    let other = backend.name().replace("127.0.0.1", "localhost");
    let (backend, _silent) = page(&format!("<img src='http://{other}/'>"));
    let visit = observed.visit(&format!("http://{}/", backend.name()));
    assert!(visit.timings.load_ms.is_some(), "{visit:?}");
    assert_eq!(resource(&visit, &format!("http://{other}/")).status, 200);
    let seen = observed.seen();
    assert!(
        seen.urls.iter().any(|url| url.contains(&backend.name())),
        "requests are seen"
    );
    assert_eq!(seen.elsewhere, Vec::<String>::new(), "{seen:?}");
}

/// Switches and features differ from version to version. Without them the browser's services do request: the rules of the
/// resolver alone must hold these requests back.
#[test]
fn rules_of_the_resolver_need_no_switch_beside_them() {
    if !is_installed() {
        return;
    }
    let observed = Observed::new(WITHOUT_SWITCHES, "");
    let (backend, _silent) = page("");
    observed.visit(&format!("http://{}/", backend.name()));
    let seen = observed.seen();
    assert_ne!(
        seen.of_vendor(),
        Vec::<&String>::new(),
        "services are on: {seen:?}"
    );
    assert_eq!(seen.elsewhere, Vec::<String>::new(), "{seen:?}");
}

/// The vendor's host has the address of this machine, by a hosts file for the browser alone.
#[test]
fn page_with_a_host_of_the_vendor_loads() {
    if !is_installed() {
        return;
    }
    let tried = Command::new("unshare").args(["--mount", "true"]).output();
    if !tried.is_ok_and(|outcome| outcome.status.success()) {
        skip("no file can be mounted over /etc/hosts here");
        return;
    }
    let hosts = TempDir::new();
    hosts.write("hosts", "127.0.0.1 localhost www.google.com\n");
    let mount = format!(
        "unshare --mount sh -c 'mount --bind {} /etc/hosts && exec \"$@\"' sh",
        hosts.path().join("hosts").display()
    );
    let observed = Observed::new("", &mount);
    let (image, _silent) = page("");
    let image = image.name().replace("127.0.0.1", "www.google.com");
    let (backend, _silent) = page(&format!("<img src='http://{image}/'>"));
    let visit = observed.visit(&format!("http://{}/", backend.name()));
    assert_eq!(resource(&visit, &format!("http://{image}/")).status, 200);
    let note =
        "the browser's own requests to hosts that the page uses are not blocked: www.google.com";
    assert!(visit.notes.iter().any(|one| one == note), "{visit:?}");
    let mut elsewhere = observed.seen().elsewhere;
    elsewhere.retain(|one| !one.contains("www.google.com"));
    assert_eq!(elsewhere, Vec::<String>::new());
}

/// Drops arguments that turn services off.
const WITHOUT_SWITCHES: &str = "for argument do
  shift
  case $argument in
    --disable-background-networking | --disable-component-update | --disable-sync) ;;
    --disable-features=* | --disable-field-trial-config | --disable-domain-reliability) ;;
    --disable-default-apps | --disable-extensions | --no-service-autorun) ;;
    --component-updater=* | --gaia-url=* | --gcm-*) ;;
    *) set -- \"$@\" \"$argument\" ;;
  esac
done";

/// Types of events in the log.
const TYPES: [&str; 5] = [
    "URL_REQUEST_START_JOB",
    "HOST_RESOLVER_MANAGER_JOB",
    "TCP_CONNECT",
    "UDP_CONNECT",
    "UDP_BYTES_SENT",
];
