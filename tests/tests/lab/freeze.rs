//! `firstbyte freeze`: a small site frozen, served, frozen again, and the files left by an interrupted or refused run.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};

use firstbyte_tests::{Outcome, Server, Signal, TempDir, peer, process, run, wait_until};
use serde_json::Value;

const FOR_EVER: &str = "public, max-age=31536000, immutable";

/// A site with a reference of each kind.
fn site(dir: &TempDir) {
    let text = "Words of a page that is long enough to be worth compressing. ".repeat(20);
    dir.write(
        "www/index.html",
        format!(
            "<!doctype html><link rel=stylesheet href=css/a.css?v=1#x><link rel=manifest href=site.webmanifest>\n\
             <img srcset='img/x.png 1x, /img/y.png 2x' src=\"img/x%2Epng\"><a href=sub/>sub</a><a href=gone.html>\n\
             <script type=module src=js/a.js></script><script>load('js/named.js')</script>\n\
             <script src=js/named.js></script><p style='background:url(img/y.png)'>{text}"
        ),
    );
    dir.write(
        "www/sub/index.html",
        "<base href=..><link rel=stylesheet href='css/b.css'>",
    );
    dir.write("www/css/a.css", "@import 'b.css';a{b:url(../img/x.png)}");
    dir.write(
        "www/css/b.css",
        "@import url(a.css);a{b:url('../img/y.png?q')}",
    );
    dir.write(
        "www/js/a.js",
        "import {b} from './b.js';\nimport('./lazy.js');\n//# sourceMappingURL=a.js.map\n",
    );
    dir.write(
        "www/js/b.js",
        "import './a.js';new URL('../img/x.png',import.meta.url)",
    );
    dir.write("www/js/lazy.js", "1");
    dir.write("www/js/named.js", "2");
    dir.write("www/js/a.js.map", "{\"version\":3,\"sources\":[\"b.js\"]}");
    dir.write("www/img/x.png", "x");
    dir.write("www/img/y.png", "y");
    dir.write("www/alone.css", "a{}");
    dir.write(
        "www/site.webmanifest",
        "{\"icons\":[{\"src\":\"img/x.png\"}]}",
    );
    dir.write("www/robots.txt", "User-agent: *");
}

fn freeze(dir: &TempDir, words: &[&str]) -> Outcome {
    let path = |name: &str| dir.path().join(name).display().to_string();
    let mut all = vec![
        "freeze".to_owned(),
        path("www"),
        "--out".to_owned(),
        path("out"),
    ];
    all.extend(words.iter().map(|word| (*word).to_owned()));
    run(all)
}

#[track_caller]
fn frozen(dir: &TempDir, words: &[&str]) -> Manifest {
    let outcome = freeze(dir, words);
    assert_eq!(outcome.code, 0, "{outcome:?}");
    Manifest::read(dir)
}

struct Manifest(Value);

impl Manifest {
    fn read(dir: &TempDir) -> Self {
        Self(serde_json::from_str(&dir.read("out.manifest.json")).expect("it is JSON"))
    }

    /// Path of a file in the frozen tree.
    fn path(&self, name: &str) -> &str {
        let entry = &self.0["files"][name];
        entry["path"]
            .as_str()
            .unwrap_or_else(|| panic!("{name} is not in the manifest"))
    }

    /// The name without its directory.
    fn name(&self, name: &str) -> &str {
        self.path(name).rsplit('/').next().unwrap_or_default()
    }
}

/// Every file below `root`, with the attributes that a write would change.
fn state(root: &Path) -> BTreeMap<String, (u64, i64, i64, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).expect("it is a directory") {
            let path = entry.expect("it can be read").path();
            if path.is_dir() {
                open.push(path);
                continue;
            }
            let meta = fs::metadata(&path).expect("it is there");
            let state = (
                meta.ino(),
                meta.mtime(),
                meta.mtime_nsec(),
                fs::read(&path).expect("it is there"),
            );
            found.insert(
                path.strip_prefix(root)
                    .expect("it is below")
                    .display()
                    .to_string(),
                state,
            );
        }
    }
    found
}

#[test]
fn references_are_to_the_new_names() {
    if !peer::is_firstbyte() {
        return;
    }
    let dir = TempDir::new();
    site(&dir);
    let manifest = frozen(&dir, &[]);
    let name = |file: &str| manifest.name(file).to_owned();
    for kept in [
        "index.html",
        "sub/index.html",
        "robots.txt",
        "site.webmanifest",
        "js/named.js",
        "alone.css",
    ] {
        assert_eq!(manifest.path(kept), kept);
    }
    let page = dir.read("out/index.html");
    for reference in [
        format!("href=css/{}?v=1#x>", name("css/a.css")),
        format!(
            "srcset='img/{} 1x, /img/{} 2x'",
            name("img/x.png"),
            name("img/y.png")
        ),
        format!(
            "src=\"img/{}\"",
            name("img/x.png").replace(".png", "%2Epng")
        ),
        format!(
            "src=js/{}></script><script>load('js/named.js')",
            name("js/a.js")
        ),
        format!("url(img/{})", name("img/y.png")),
        "src=js/named.js".to_owned(),
    ] {
        assert!(page.contains(&reference), "{reference} is not in {page}");
    }
    let styles = dir.read(&format!("out/{}", manifest.path("css/a.css")));
    assert_eq!(
        styles,
        format!(
            "@import '{}';a{{b:url(../img/{})}}",
            name("css/b.css"),
            name("img/x.png")
        )
    );
    let script = dir.read(&format!("out/{}", manifest.path("js/a.js")));
    assert_eq!(
        script,
        format!(
            "import {{b}} from './{}';\nimport('./{}');\n//# sourceMappingURL={}\n",
            name("js/b.js"),
            name("js/lazy.js"),
            name("js/a.js.map")
        )
    );
    let app = dir.read("out/site.webmanifest");
    assert_eq!(
        app,
        format!("{{\"icons\":[{{\"src\":\"img/{}\"}}]}}", name("img/x.png"))
    );
    assert!(dir.read("out/sub/index.html").contains(&name("css/b.css")));
    let encodings = &manifest.0["files"]["index.html"]["encodings"];
    assert_eq!(encodings.as_object().map(serde_json::Map::len), Some(3));
    assert_eq!(manifest.0["files"]["css/a.css"]["type"], "text/css");
}

#[test]
fn broken_references_are_told_with_their_lines() {
    if !peer::is_firstbyte() {
        return;
    }
    let dir = TempDir::new();
    site(&dir);
    let outcome = freeze(&dir, &[]);
    assert_eq!(
        outcome.stderr,
        "warning: index.html:2: \"gone.html\" is not there\n"
    );
    assert_eq!(outcome.code, 0);
    assert!(
        outcome.stdout.contains(", 1 broken, 0 blocked\n"),
        "{}",
        outcome.stdout
    );
    assert_eq!(freeze(&dir, &["--strict"]).code, 2);
    dir.write("www/gone.html", "");
    assert_eq!(freeze(&dir, &["--strict"]).code, 0);
}

#[test]
fn a_second_run_writes_only_what_has_changed() {
    if !peer::is_firstbyte() {
        return;
    }
    let dir = TempDir::new();
    site(&dir);
    let first = frozen(&dir, &[]);
    let before = state(&dir.path().join("out"));
    let manifest_before = fs::metadata(dir.path().join("out.manifest.json")).expect("it is there");
    let inode = fs::metadata(dir.path().join("out"))
        .expect("it is there")
        .ino();
    frozen(&dir, &[]);
    assert_eq!(state(&dir.path().join("out")), before);
    let manifest_after = fs::metadata(dir.path().join("out.manifest.json")).expect("it is there");
    assert_eq!(manifest_after.ino(), manifest_before.ino());
    assert_eq!(
        fs::metadata(dir.path().join("out"))
            .expect("it is there")
            .ino(),
        inode
    );

    // A picture changes, so its referrers change, and their referrers.
    dir.write("www/img/x.png", "another");
    fs::remove_file(dir.path().join("www/robots.txt")).expect("it is there");
    let second = frozen(&dir, &[]);
    for changed in ["img/x.png", "css/a.css", "css/b.css", "js/a.js", "js/b.js"] {
        assert_ne!(first.path(changed), second.path(changed), "{changed}");
    }
    for same in ["img/y.png", "js/lazy.js"] {
        assert_eq!(first.path(same), second.path(same), "{same}");
    }
    let after = state(&dir.path().join("out"));
    assert!(!after.contains_key("robots.txt") && !after.contains_key(first.path("img/x.png")));
    for same in [
        second.path("img/y.png"),
        second.path("js/lazy.js"),
        "alone.css",
    ] {
        assert_eq!(after[same], before[same], "{same} was not written");
    }
    let beside = fs::read_dir(dir.path()).expect("it is a directory").count();
    assert_eq!(
        beside, 3,
        "nothing is left beside the trees and the manifest"
    );
}

#[test]
fn a_run_that_is_killed_leaves_the_old_tree() {
    if !peer::is_firstbyte() {
        return;
    }
    let dir = TempDir::new();
    site(&dir);
    frozen(&dir, &[]);
    let before = state(&dir.path().join("out"));
    for n in 0..200 {
        dir.write(
            &format!("www/many/{n}.html"),
            format!("<p>{n} {}", "many words and more ".repeat(20_000)),
        );
    }
    let path = |name: &str| dir.path().join(name);
    let mut child = Command::new(peer::binary())
        .args([
            "freeze".as_ref(),
            path("www").as_os_str(),
            "--out".as_ref(),
            path("out").as_os_str(),
        ])
        .args(["--effort", "best"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    wait_until("the new tree is being written", || {
        path(".out.freeze-new/many").is_dir()
    });
    assert!(process::signal(child.id(), Signal::KILL));
    child.wait().expect("it was started");
    assert_eq!(state(&path("out")), before);
    assert!(path(".out.freeze-new").is_dir(), "it was in the middle");
    fs::remove_dir_all(path("www/many")).expect("it is there");
    frozen(&dir, &[]);
    assert_eq!(state(&path("out")), before);
    assert!(!path(".out.freeze-new").exists());
}

#[test]
fn what_it_has_not_written_is_not_removed() {
    if !peer::is_firstbyte() {
        return;
    }
    let dir = TempDir::new();
    site(&dir);
    dir.write("out/precious.txt", "mine");
    let outcome = freeze(&dir, &[]);
    assert_eq!(outcome.code, 1);
    assert!(
        outcome
            .stderr
            .contains("out/precious.txt: not written by freeze"),
        "{outcome:?}"
    );
    assert_eq!(dir.read("out/precious.txt"), "mine");
    assert!(!dir.path().join("out.manifest.json").exists());
    for words in [
        ["--manifest", "%/out/m.json"],
        ["--manifest", "%/www/m.json"],
        ["--out", "%/www/sub"],
        ["--out", "%"],
    ] {
        let words = words.map(|word| word.replace('%', &dir.path().display().to_string()));
        let outcome = freeze(&dir, &[&words[0], &words[1]]);
        assert_eq!(outcome.code, 1, "{words:?} {outcome:?}");
    }
}

#[test]
fn options_say_what_is_kept_and_where_it_will_be() {
    if !peer::is_firstbyte() {
        return;
    }
    let dir = TempDir::new();
    dir.write(
        "www/index.html",
        "<img src=/docs/x.png><img src=https://a.test/docs/y.png><img src=keep/z.png integrity=x>",
    );
    for name in ["x.png", "y.png", "keep/z.png", "left/out.html"] {
        dir.write(&format!("www/{name}"), name);
    }
    let manifest = frozen(
        &dir,
        &[
            "--site=https://a.test/docs/",
            "--keep=keep/",
            "--exclude",
            "left/",
            "--encodings=none",
        ],
    );
    assert_eq!(manifest.path("keep/z.png"), "keep/z.png");
    assert!(manifest.0["files"]["left/out.html"].is_null());
    let page = dir.read("out/index.html");
    let (x, y) = (manifest.path("x.png"), manifest.path("y.png"));
    assert!(
        page.starts_with(&format!(
            "<img src=/docs/{x}><img src=https://a.test/docs/{y}>"
        )),
        "{page}"
    );
    assert_ne!(x, "x.png");
}

#[test]
fn a_frozen_tree_is_served_and_its_manifest_reloaded() {
    if !peer::is_firstbyte() {
        return;
    }
    let server = Server::http(
        "server { listen 127.0.0.1:%%PORT%%; root %%DIR%%/out;
         location / { freeze_manifest %%DIR%%/out.manifest.json; } }",
    )
    .file("www/index.html", "<link rel=stylesheet href=a.css>")
    .file("www/a.css", "a{}")
    .prepare(freeze_in)
    .start();
    let manifest = Manifest::read(server.dir());
    let old = format!("/{}", manifest.path("a.css"));
    let mut client = server.client();
    let answer = client.get(&old);
    assert_eq!((answer.status, answer.text().as_str()), (200, "a{}"));
    assert_eq!(answer.header("Cache-Control"), Some(FOR_EVER));
    assert_eq!(client.get("/index.html").header("Cache-Control"), None);
    server.dir().write("www/a.css", "b{}");
    freeze_in(server.dir().path());
    let new = format!("/{}", Manifest::read(server.dir()).path("a.css"));
    assert_ne!(old, new);
    assert_eq!(client.get(&new).status, 404, "not before the reload");
    server.signal(Signal::HUP);
    wait_until("the new manifest is known", || {
        server.get(&new).status == 200
    });
    assert_eq!(server.get(&old).status, 404);
    assert_eq!(client.get(&new).header("Cache-Control"), Some(FOR_EVER));
}

#[test]
fn compressed_copies_are_served_under_the_same_name() {
    if !peer::is_firstbyte() {
        return;
    }
    let server = Server::http(
        "server { listen 127.0.0.1:%%PORT%%; root %%DIR%%/out; gzip_static on;
         location / { freeze_manifest %%DIR%%/out.manifest.json; } }",
    )
    .file("www/index.html", "<link rel=stylesheet href=a.css>")
    .file("www/a.css", &"a{color:red}".repeat(100))
    .prepare(freeze_in)
    .start();
    let manifest = Manifest::read(server.dir());
    let path = format!("/{}", manifest.path("a.css"));
    let mut client = server.client();
    let answer = client.get_with(&path, &["Accept-Encoding: gzip"]);
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("Content-Encoding"), Some("gzip"));
    assert_eq!(answer.header("Cache-Control"), Some(FOR_EVER));
    let size = &manifest.0["files"]["a.css"]["encodings"]["gz"]["size"];
    assert_eq!(answer.body.len() as u64, size.as_u64().unwrap_or_default());
    assert_eq!(client.get(&path).header("Content-Encoding"), None);
}

fn freeze_in(dir: &Path) {
    let path = |name: &str| dir.join(name).display().to_string();
    let outcome = run(["freeze", &path("www"), "--out", &path("out")]);
    assert_eq!(outcome.code, 0, "{outcome:?}");
}
