//! The peers of 1,000 requests in groups with `sticky`, compared with another server that has the directive.
//!
//! `ANGIE` is the program of Angie, `STICKY_NGINX` that of nginx 1.29.6 or later; `make test-all` passes them on. nginx gets
//! bound requests and others in any order. Angie does not count bound requests as turns, so new clients come first there.
//! The result is a table of equal peers in the output. Sources: documentation of nginx and Angie, `sticky`.

use std::path::{Path, PathBuf};
use std::process::Command;

use firstbyte_tests::backend::{Backend, ok};
use firstbyte_tests::client::request;
use firstbyte_tests::port::Port;
use firstbyte_tests::process;
use firstbyte_tests::programs::Program;
use firstbyte_tests::skip::skip;
use firstbyte_tests::{Client, Server, Signal, TempDir, wait_until};

/// Names of the backends, which are their routes.
const NAMES: [&str; 4] = ["a", "b", "c", "d"];
const REQUESTS: usize = 1000;
/// Clients without a server before those that have one.
const CLIENTS: usize = 100;

/// A kind of `sticky`, with the request of a client that has the cookie `session`.
struct Kind {
    name: &'static str,
    directive: &'static str,
    /// One server drains in the second half.
    drains: bool,
}

const KINDS: [Kind; 4] = [
    Kind {
        name: "cookie",
        directive: "sticky cookie srv;",
        drains: false,
    },
    Kind {
        name: "route",
        directive: "sticky route $cookie_route $arg_route;",
        drains: false,
    },
    Kind {
        name: "learn",
        directive: "sticky learn create=$upstream_cookie_sid lookup=$cookie_sid zone=compared:1m;",
        drains: false,
    },
    Kind {
        name: "drain",
        directive: "sticky cookie srv;",
        drains: true,
    },
];

/// A server under comparison.
enum Proxy {
    Ours(Box<Server>),
    Other(Program, TempDir, Port),
}

/// Numbers below a limit, the same in each run (SplitMix64).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % limit as u64) as usize
    }
}

impl Proxy {
    fn port(&self) -> u16 {
        match self {
            Self::Ours(server) => server.port(),
            Self::Other(_, _, port) => port.number(),
        }
    }

    /// Reloads with a server that drains.
    fn drain(&self) {
        let changed = |conf: String| {
            let conf = conf.replace("route=a;", "route=a drain;");
            conf.replace("X-Generation 1;", "X-Generation 2;")
        };
        match self {
            Self::Ours(server) => {
                server.rewrite_conf(changed);
                server.signal(Signal::HUP);
            }
            Self::Other(program, dir, _) => {
                dir.write("nginx.conf", changed(dir.read("nginx.conf")));
                process::signal(program.pid(), Signal::HUP);
            }
        }
        // For a while an old worker of nginx accepts connections as well.
        let is_new = || {
            let answer = Client::connect(self.port()).get("/generation");
            answer.header("X-Generation") == Some("2")
        };
        wait_until("the reload is over", || (0..50).all(|_| is_new()));
    }
}

/// A whole configuration.
fn whole(http: &str, dir: &Path) -> String {
    let dir = dir.display();
    format!(
        "worker_processes 1; daemon off; error_log {dir}/error.log info; pid {dir}/pid;
         events {{}}
         http {{ access_log off; client_body_temp_path {dir}/body; proxy_temp_path {dir}/proxy; {http} }}"
    )
}

/// The part of the configuration that both servers have.
fn http(kind: &Kind, servers: &[Backend]) -> String {
    let lines: String = (1..)
        .zip(NAMES.iter().zip(servers))
        .map(|(n, (name, server))| format!("server {} weight={n} route={name};", server.name()))
        .collect();
    format!(
        "upstream behind {{ {lines} {} }}
         server {{ listen 127.0.0.1:%%PORT%%;
             location / {{ proxy_pass http://behind; }}
             location = /generation {{ add_header X-Generation 1; empty_gif; }} }}",
        kind.directive
    )
}

fn start(program: Option<&Path>, http: &str) -> Proxy {
    let Some(program) = program else {
        return Proxy::Ours(Box::new(
            Server::http_with("worker_processes 1;", http).start(),
        ));
    };
    let (dir, port) = (TempDir::new(), Port::reserve());
    let number = port.number();
    dir.write(
        "nginx.conf",
        whole(&http.replace("%%PORT%%", &number.to_string()), dir.path()),
    );
    let mut command = Command::new(program);
    command
        .arg("-p")
        .arg(dir.path())
        .arg("-c")
        .arg(dir.path().join("nginx.conf"));
    command.arg("-e").arg(dir.path().join("error.log"));
    // They would take it for sockets that they inherit.
    command.env_remove("ANGIE");
    let program = Program::start(&dir, "other", &mut command).accepting(number);
    Proxy::Other(program, dir, port)
}

/// Returns the peers of all requests. With `mixed`, new clients come at any time.
fn peers(proxy: &Proxy, kind: &Kind, mixed: bool) -> Vec<String> {
    let mut numbers = Numbers(7);
    let mut cookies: Vec<String> = Vec::new();
    let mut peers = Vec::new();
    for n in 0..REQUESTS {
        if n == REQUESTS / 2 && kind.drains {
            proxy.drain();
        }
        let is_new = match mixed {
            true => numbers.below(4) == 0 || cookies.is_empty(),
            false => {
                n < CLIENTS || (kind.drains && (REQUESTS / 2..REQUESTS / 2 + CLIENTS).contains(&n))
            }
        };
        let mut client = Client::connect(proxy.port());
        let answer = match is_new {
            true => client.get(&format!("/?new={n}")),
            false => {
                let cookie = &cookies[numbers.below(cookies.len())];
                client.send(request("GET", "/", &[&format!("Cookie: {cookie}")]));
                client.response()
            }
        };
        assert_eq!(answer.status, 200, "request {n}");
        peers.push(answer.text());
        if is_new {
            let cookie = match kind.name {
                "route" => Some(format!("route={}", NAMES[numbers.below(4)])),
                _ => answer
                    .header("Set-Cookie")
                    .map(|cookie| cookie.split(';').next().unwrap_or_default().to_owned()),
            };
            cookies.push(cookie.expect("a new client is bound"));
        }
    }
    peers
}

/// Servers that answer with their names. Each new client gets a session.
fn servers() -> Vec<Backend> {
    let answering = |name: &'static str| {
        Backend::answering(
            move |request| match request.target().strip_prefix("/?new=") {
                Some(n) => {
                    let session = format!("Set-Cookie: sid={name}{n}");
                    firstbyte_tests::backend::answer("200 OK", &[&session], name)
                }
                None => ok(name),
            },
        )
    };
    NAMES.map(answering).into()
}

fn compare(variable: &str, mixed: bool) {
    let Some(program) = std::env::var_os(variable).map(PathBuf::from) else {
        return skip(&format!("{variable} is not set"));
    };
    let mut table = format!("| sticky | requests | equal peers with {variable} |\n|---|---|---|\n");
    let mut all_equal = true;
    for kind in &KINDS {
        let servers = servers();
        let conf = http(kind, &servers);
        let [ours, theirs] = [None, Some(program.as_path())]
            .map(|program| peers(&start(program, &conf), kind, mixed));
        let equal = ours
            .iter()
            .zip(&theirs)
            .filter(|(ours, theirs)| ours == theirs)
            .count();
        table += &format!("| {} | {REQUESTS} | {equal} |\n", kind.name);
        if let Some(at) = (0..REQUESTS).find(|at| ours[*at] != theirs[*at]) {
            let end = (at + 20).min(REQUESTS);
            let begin = at.saturating_sub(5);
            println!(
                "{begin}: {:?}\n{:?}",
                &ours[begin..end],
                &theirs[begin..end]
            );
        }
        all_equal &= equal == REQUESTS;
    }
    println!("{table}");
    assert!(all_equal, "{table}");
}

#[test]
fn peers_are_those_of_angie() {
    compare("ANGIE", false);
}

#[test]
fn peers_are_those_of_nginx() {
    compare("STICKY_NGINX", true);
}
