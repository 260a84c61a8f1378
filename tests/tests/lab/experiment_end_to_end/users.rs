//! Simulated users of an experiment: page with a cookie jar, files from the host of the arm, beacon.

use std::thread;

use firstbyte_tests::client::request;
use firstbyte_tests::experiment::report;
use firstbyte_tests::{Client, Server};
use serde_json::Value;

/// A server with an experiment of two arms.
pub(crate) struct Experiment {
    pub(crate) server: Server,
}

/// Connections of visitors: to the host of the page, and to the hosts of arms.
pub(crate) struct Clients {
    page: Client,
    arms: [Client; 2],
}

/// A page with the user's arm.
#[derive(Debug)]
pub(crate) struct Page {
    /// Value of the user's cookie.
    pub(crate) cookie: String,
    pub(crate) arm: usize,
}

/// Files of a page, as a browser sees them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Files {
    pub(crate) count: u64,
    pub(crate) failed: u64,
    pub(crate) truncated: u64,
    pub(crate) bytes: u64,
}

/// Faults that a visitor meets.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Faults {
    /// The visitor leaves before the page is loaded.
    pub(crate) is_unloaded: bool,
    /// Files that are missing on the server.
    pub(crate) missing: usize,
    /// Files that end early.
    pub(crate) cut: usize,
}

/// Sums of an arm, as its visitors met them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Planted {
    pub(crate) users: u64,
    pub(crate) unloaded: u64,
    pub(crate) files: u64,
    pub(crate) failed: u64,
    pub(crate) truncated: u64,
    pub(crate) bytes: u64,
}

impl Planted {
    pub(crate) fn add(&mut self, files: &Files, faults: Faults) {
        self.users += 1;
        self.unloaded += u64::from(faults.is_unloaded);
        self.files += files.count;
        self.failed += files.failed;
        self.truncated += files.truncated;
        self.bytes += files.bytes;
    }
}

impl Experiment {
    /// Starts a server; `more` is in the servers of both arms.
    pub(crate) fn begin(more: &str) -> Self {
        Self::with_key(more, "00112233445566778899aabbccddeeff")
    }

    pub(crate) fn with_key(more: &str, key: &str) -> Self {
        let conf = CONF.replace("MORE", more);
        let server = Server::http(&conf)
            .file("run/key", key)
            .file(
                "html/index.html",
                "<!doctype html><html><head><title>A page</title></head></html>",
            )
            .file("html/a.png", &"a".repeat(700))
            .file("html/b.png", &"b".repeat(1300))
            .start();
        Self { server }
    }

    /// Opens connections to all hosts.
    pub(crate) fn clients(&self) -> Clients {
        Clients {
            page: self.server.client(),
            arms: [0, 1].map(|arm| self.arm_client(arm)),
        }
    }

    fn arm_client(&self, arm: usize) -> Client {
        Client::connect(self.server.port_number(2 + arm))
    }

    /// Users load the page; times of those in the second arm have a factor. Returns the report.
    pub(crate) fn run(&self, seed: u64, users: usize, effect: f64) -> Value {
        thread::scope(|scope| {
            for number in 0..CLIENTS {
                scope.spawn(move || {
                    let seed = seed * CLIENTS as u64 + number as u64;
                    let mut random = fastrand::Rng::with_seed(seed);
                    let mut clients = self.clients();
                    for _ in 0..users / CLIENTS {
                        let page = self.page(&mut clients, None);
                        let files = self.files(&mut clients, page.arm, Faults::default());
                        let factor = if page.arm == 1 { effect } else { 1.0 };
                        let load_us = (load_us(&mut random) * factor).min(3.5e9) as u32;
                        self.beacon(&mut clients, &page, random.u64(..), Some(load_us), &files);
                    }
                });
            }
        });
        self.report(users)
    }

    /// Loads the page and its files, and sends a beacon. Returns the arm.
    pub(crate) fn visit(
        &self,
        clients: &mut Clients,
        view: u64,
        load_us: u32,
        faults: Faults,
    ) -> (usize, Files) {
        let page = self.page(clients, None);
        let files = self.files(clients, page.arm, faults);
        let load_us = (!faults.is_unloaded).then_some(load_us);
        self.beacon(clients, &page, view, load_us, &files);
        (page.arm, files)
    }

    /// Loads the page with a cookie, or as a new user.
    pub(crate) fn page(&self, clients: &mut Clients, cookie: Option<&str>) -> Page {
        let line = cookie.map(|value| format!("Cookie: fb_user={value}"));
        let mut lines = vec!["Host: www.test"];
        lines.extend(line.as_deref());
        let reply = clients.page.get_with("/", &lines);
        assert_eq!(reply.status, 200);
        let text = reply.text();
        let host = between(&text, "data-hosts=\"", "\"").expect("the script with a host");
        let set = reply
            .header("Set-Cookie")
            .and_then(|field| between(field, "fb_user=", ";"));
        Page {
            cookie: set.or(cookie).expect("a cookie").to_owned(),
            arm: HOSTS
                .iter()
                .position(|name| *name == host)
                .expect("a host of an arm"),
        }
    }

    /// Loads files from the host of an arm.
    fn files(&self, clients: &mut Clients, arm: usize, faults: Faults) -> Files {
        let host = format!("Host: {}", HOSTS[arm]);
        let client = &mut clients.arms[arm];
        let mut found = Files::default();
        for path in ["/a.png", "/b.png"] {
            let reply = client.get_with(path, &[&host]);
            assert_eq!(reply.status, 200);
            found.count += 1;
            found.bytes += reply.body.len() as u64;
        }
        for number in 0..faults.missing {
            let reply = client.get_with(&format!("/missing{number}.png"), &[&host]);
            found.count += 1;
            found.failed += u64::from(reply.status >= 400);
            found.bytes += reply.body.len() as u64;
        }
        for number in 0..faults.cut {
            let path = format!("/cut/{number}.png");
            let mut client = self.arm_client(arm);
            let bytes = client.send(request("GET", &path, &[&host])).rest();
            let text = String::from_utf8_lossy(&bytes);
            let (head, body) = text.split_once("\r\n\r\n").expect("a head");
            let length = head.split_once("Content-Length: ").expect("a length").1;
            let length = length.lines().next().and_then(|line| line.parse().ok());
            found.count += 1;
            found.truncated += u64::from(body.len() < length.expect("a number"));
            found.bytes += body.len() as u64;
        }
        found
    }

    /// Sends the beacon of a view.
    pub(crate) fn beacon(
        &self,
        clients: &mut Clients,
        page: &Page,
        view: u64,
        load_us: Option<u32>,
        files: &Files,
    ) {
        let text = beacon(HOSTS[page.arm], view, load_us, files);
        let lines = [
            "Host: www.test".to_owned(),
            "Origin: http://www.test".to_owned(),
            "Content-Type: text/plain;charset=UTF-8".to_owned(),
            format!("Cookie: fb_user={}", page.cookie),
            format!("Content-Length: {}", text.len()),
        ];
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let reply = clients
            .page
            .send(request("POST", "/beacon", &lines) + &text)
            .response();
        assert_eq!(reply.status, 204, "{text}\n{}", self.server.error_log());
    }

    /// Returns the report once it has the values of `users` users.
    pub(crate) fn report(&self, users: usize) -> Value {
        report(&self.server.path("lab/store.db"), "speed", users)
    }
}

/// A beacon as the script of `experiment_beacon` writes it.
fn beacon(host: &str, view: u64, load_us: Option<u32>, files: &Files) -> String {
    let end = load_us.unwrap_or(500_000);
    let part = |share: f64| (f64::from(end) * share) as u32;
    let load = load_us.map_or_else(|| "-".to_owned(), |us| us.to_string());
    let mut text = format!("firstbyte 1\nv {view:016x}\na {}\n", end / 1000 + 100);
    text += &format!(
        "n - {0} {0} {0} - {1} {1} {2} {3} {4} {load}\np - - - 0\n",
        part(0.01),
        part(0.02),
        part(0.1),
        part(0.2),
        part(0.9),
    );
    if files.count > 0 {
        text += &format!(
            "h {host} {} {} {} {} {}\n",
            files.count,
            files.failed,
            files.truncated,
            files.bytes,
            part(0.95)
        );
    }
    text + "."
}

/// A load time: lognormal, with a median of a second and a coefficient of variation of 0.53.
fn load_us(random: &mut fastrand::Rng) -> f64 {
    // Box and Muller.
    let radius = (-2.0 * (1.0 - random.f64()).ln()).sqrt();
    let normal = radius * (std::f64::consts::TAU * random.f64()).cos();
    1e6 * (0.5 * normal).exp()
}

fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(before)?;
    Some(rest.split_once(after)?.0)
}

/// Clients that load pages at the same time.
const CLIENTS: usize = 2;
const HOSTS: [&str; 2] = ["s1.test", "s2.test"];
const CONF: &str = r#"
    lab_store sqlite:%%DIR%%/lab/store.db; experiment_key %%DIR%%/run/key;
    access_log off; keepalive_requests 1000000; root %%DIR%%/html;
    experiment speed {
        window 0; metrics load; host s0.test;
        arm control host=s1.test; arm slow host=s2.test;
    }
    server {
        listen 127.0.0.1:%%PORT%%; server_name www.test;
        location = /beacon { experiment_beacon rate=10000r/s; }
        sub_filter '<head>' '<head><script async src="/beacon" data-hosts="$experiment_speed_host"></script>';
    }
    server { listen 127.0.0.1:%%PORT%%; server_name s0.test; }
    server { listen 127.0.0.1:%%PORT2%%; server_name s1.test; MORE }
    server { listen 127.0.0.1:%%PORT3%%; server_name s2.test; MORE }"#;
