//! Hundreds of servers with certificates of their own, over sockets: SNI chooses among names of each kind, and a reload
//! takes up changes only.
//!
//! Source: nginx documentation, "Server names", `ssl_certificate`, `ssl_object_cache_inheritable`.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::time::SystemTime;

use crate::tls_client::{Leaf, Tls, site};
use firstbyte_tests::{Builder, Server, Signal, peer, wait_until};

/// A server of each kind of name, and further ones with exact names.
struct Sites {
    leaves: Vec<Leaf>,
    template: String,
}

/// Names as configured, each with a name that matches it.
const KINDS: [(&str, &str); 7] = [
    ("default.example", "default.example"),
    ("*.wild.example", "a.wild.example"),
    ("*.deep.wild.example", "b.deep.wild.example"),
    (".dot.example", "dot.example"),
    ("mail.*", "mail.example.net"),
    (r"~^re\d+\.example$", "re7.example"),
    ("last.example", "last.example"),
];

impl Sites {
    fn new(exact: usize) -> Self {
        let mut sites = Self {
            leaves: Vec::new(),
            template: String::new(),
        };
        for (n, (name, _)) in KINDS.iter().enumerate() {
            let listen = if n == 0 { "default_server" } else { "" };
            sites.add(name, listen);
        }
        for n in 0..exact {
            sites.add(&exact_name(n), "");
        }
        sites
    }

    fn add(&mut self, name: &str, listen: &str) {
        let n = self.leaves.len();
        self.leaves.push(site("leaf"));
        let _ = write!(
            self.template,
            "server {{ listen 127.0.0.1:%%PORT%% ssl {listen}; server_name {name};
               ssl_certificate %%DIR%%/{n}.crt; ssl_certificate_key %%DIR%%/{n}.key;
               return 200 \"as loaded {n}\\n\"; }}\n"
        );
    }

    fn builder(&self) -> Builder {
        let mut builder = Server::http(&format!(
            "server_names_hash_max_size 4096; {}",
            self.template
        ));
        for (n, leaf) in self.leaves.iter().enumerate() {
            builder = builder
                .bytes(&format!("{n}.crt"), leaf.certificate.as_bytes())
                .bytes(&format!("{n}.key"), leaf.key.as_bytes());
        }
        builder
    }
}

fn exact_name(n: usize) -> String {
    format!("site{n}.example")
}

fn replace(server: &Server, name: &str, text: &str) {
    let aside = format!("{name}.new");
    server.dir().write(&aside, text);
    fs::rename(server.path(&aside), server.path(name)).expect("it can be renamed");
}

fn reload(server: &Server, from: &str, to: &str) {
    server.rewrite_conf(|text| text.replace(from, to));
    server.signal(Signal::HUP);
    wait_until("the edited text counts", || {
        let answer = Tls::new().get(server.port(), "default.example", "/");
        answer.body.starts_with(to)
    });
}

#[track_caller]
fn assert_shown(server: &Server, name: &str, leaf: &Leaf) {
    let answer = Tls::new().get(server.port(), name, "/");
    assert!(answer.is_from(leaf), "{name}: {answer:?}");
}

#[test]
fn each_of_hundreds_of_names_has_its_own_certificate() {
    let exact = 300;
    let sites = Sites::new(exact);
    let server = sites.builder().start();
    for (n, (_, name)) in KINDS.iter().enumerate() {
        assert_shown(&server, name, &sites.leaves[n]);
    }
    for n in (0..exact).step_by(7) {
        assert_shown(&server, &exact_name(n), &sites.leaves[KINDS.len() + n]);
    }
    for (name, kind) in [
        ("SITE0.Example", KINDS.len()),
        ("sub.dot.example", 3),
        ("x.y.wild.example", 1),
        ("x.y.deep.wild.example", 2),
        ("mail.a", 4),
        // Unknown names belong to the default server.
        ("wild.example", 0),
        ("re.example", 0),
        ("site300.example", 0),
        ("nowhere.test", 0),
    ] {
        assert_shown(&server, name, &sites.leaves[kind]);
    }
    let mut nameless = Tls::new();
    nameless.send_no_name();
    let answer = nameless.get(server.port(), "default.example", "/");
    assert!(answer.is_from(&sites.leaves[0]));
}

#[test]
fn the_longest_names_choose_their_servers() {
    let longest = |first: &str| {
        let label = "x".repeat(63);
        let rest = [&label[..], &label, &label].join(".");
        format!(
            "{first}{}.{rest}",
            "y".repeat(253 - 1 - rest.len() - first.len())
        )
    };
    // 253 bytes is the limit of DNS; a name has 127 labels at most.
    let deepest = ["a"; 127].join(".");
    let (own, other) = (longest(""), longest("z"));
    let (wild, leaf) = (format!("*.{}", &deepest[4..]), [own.len(), deepest.len()]);
    assert_eq!(leaf, [253, 253]);
    let mut sites = Sites::new(0);
    sites.add(&own, "");
    sites.add(&wild, "");
    let server = sites.builder().allow("server_names_hash").start();
    let at = KINDS.len();
    assert_shown(&server, &own, &sites.leaves[at]);
    assert_shown(&server, &other, &sites.leaves[0]);
    assert_shown(&server, &deepest, &sites.leaves[at + 1]);
    assert_shown(&server, &deepest[2..], &sites.leaves[at + 1]);
    assert_shown(&server, &deepest[4..], &sites.leaves[0]);
}

#[test]
fn a_reload_takes_up_the_certificate_that_changed_and_no_other() {
    let sites = Sites::new(200);
    let server = sites
        .builder()
        .prepare(|dir| {
            for kind in ["crt", "key"] {
                let link = dir.join(format!("7.{kind}"));
                fs::rename(&link, dir.join(format!("live.{kind}"))).expect("it was made");
                std::os::unix::fs::symlink(format!("live.{kind}"), &link).expect("a link");
            }
        })
        .start();
    let new = [site("new"), site("linked"), site("in place")];
    // One by another file, one by a link to another, one written in place with the time of before.
    replace(&server, "20.crt", &new[0].certificate);
    replace(&server, "20.key", &new[0].key);
    for (kind, text) in [("crt", &new[1].certificate), ("key", &new[1].key)] {
        server.dir().write(&format!("next.{kind}"), text);
        fs::remove_file(server.path(&format!("7.{kind}"))).expect("it was made");
        let link = server.path(&format!("7.{kind}"));
        std::os::unix::fs::symlink(format!("next.{kind}"), link).expect("a link can be made");
    }
    for (kind, text) in [("crt", &new[2].certificate), ("key", &new[2].key)] {
        write_in_place(&server.path(&format!("30.{kind}")), text);
    }
    // Two servers have changed places.
    for kind in ["crt", "key"] {
        let path = |n: u32| server.path(&format!("{n}.{kind}"));
        fs::rename(path(40), path(1000)).expect("it is there");
        fs::rename(path(41), path(40)).expect("it is there");
        fs::rename(path(1000), path(41)).expect("it is there");
    }
    reload(&server, "as loaded", "as edited");
    let name = |at: usize| exact_name(at - KINDS.len());
    assert_shown(&server, &name(20), &new[0]);
    assert_shown(&server, &name(7), &new[1]);
    if peer::is_firstbyte() {
        assert_shown(&server, &name(30), &new[2]);
    }
    assert_shown(&server, &name(40), &sites.leaves[41]);
    assert_shown(&server, &name(41), &sites.leaves[40]);
    for at in [8, 19, 21, 100, 200] {
        assert_shown(&server, &name(at), &sites.leaves[at]);
    }
    for (at, (_, name)) in KINDS.iter().enumerate() {
        assert_shown(&server, name, &sites.leaves[at]);
    }
}

#[test]
fn a_key_that_changed_alone_is_refused_and_what_served_goes_on() {
    let sites = Sites::new(20);
    let server = sites.builder().allow("[emerg]").start();
    replace(&server, "9.key", &site("other").key);
    server.signal(Signal::HUP);
    server.wait_for_text("error.log", "key values mismatch");
    assert!(server.error_log().contains("/9.key"));
    assert_shown(&server, &exact_name(9 - KINDS.len()), &sites.leaves[9]);
    // With the earlier key, everything is as before.
    replace(&server, "9.key", &sites.leaves[9].key);
    reload(&server, "as loaded", "as edited");
    assert_shown(&server, &exact_name(9 - KINDS.len()), &sites.leaves[9]);
    // And a pair that was sound with another partner is none.
    replace(&server, "9.key", &sites.leaves[10].key);
    server.signal(Signal::HUP);
    wait_until("it is refused again", || {
        server.error_log().matches("key values mismatch").count() == 2
    });
}

#[test]
fn equal_certificates_of_several_servers_are_each_shown() {
    let mut sites = Sites::new(0);
    for n in 0..30 {
        sites.add(&exact_name(n), "");
        let last = sites.leaves.len() - 1;
        sites.leaves[last] = Leaf {
            certificate: sites.leaves[0].certificate.clone(),
            key: sites.leaves[0].key.clone(),
        };
    }
    let server = sites.builder().start();
    let new = site("new");
    replace(&server, "12.crt", &new.certificate);
    replace(&server, "12.key", &new.key);
    reload(&server, "as loaded", "as edited");
    assert_shown(&server, &exact_name(12 - KINDS.len()), &new);
    assert_shown(&server, &exact_name(13 - KINDS.len()), &sites.leaves[0]);
}

#[test]
fn a_reload_does_not_read_what_has_not_changed() {
    if !peer::is_firstbyte() {
        return;
    }
    let sites = Sites::new(300);
    let server = sites
        .builder()
        .prepare(|dir| {
            wait_until("the files are no longer young", || {
                age_s(&dir.join("306.key")) > 3
            })
        })
        .start();
    let bytes: usize = sites
        .leaves
        .iter()
        .map(|leaf| leaf.certificate.len() + leaf.key.len())
        .sum();
    let before = bytes_read(server.pid());
    assert!(before > bytes as u64, "a start reads them all");
    let new = site("new");
    replace(&server, "20.crt", &new.certificate);
    replace(&server, "20.key", &new.key);
    reload(&server, "as loaded", "as edited");
    assert_shown(&server, &exact_name(20 - KINDS.len()), &new);
    let text = fs::metadata(server.path("nginx.conf")).map_or(0, |meta| meta.len());
    let read = bytes_read(server.pid()) - before;
    assert!(read < text + bytes as u64 / 10, "{read} of {bytes}");
}

/// Seconds since a file changed.
fn age_s(path: &Path) -> u64 {
    let time = fs::metadata(path).and_then(|meta| meta.modified());
    let age = time.map(|time| SystemTime::now().duration_since(time));
    age.map_or(0, |age| age.map_or(0, |age| age.as_secs()))
}

/// Bytes that a process has read so far.
fn bytes_read(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/io")).expect("it runs");
    let field = text.lines().find_map(|line| line.strip_prefix("rchar: "));
    field
        .and_then(|field| field.parse().ok())
        .expect("a number")
}

fn write_in_place(path: &Path, text: &str) {
    let time = fs::metadata(path).and_then(|meta| meta.modified());
    let time = time.expect("it has one");
    fs::write(path, text).expect("it can be written");
    let file = fs::File::options().write(true).open(path);
    file.and_then(|file| file.set_modified(time))
        .expect("its time can be set");
}
