//! `firstbyte freeze` of unreadable sources, and wrong digests in `integrity`.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};

use base64ct::{Base64, Encoding};
use firstbyte_tests::{Outcome, TempDir, peer, run};
use sha2::{Digest, Sha256, Sha384, Sha512};

fn path(dir: &TempDir, name: &str) -> String {
    dir.path().join(name).display().to_string()
}

fn freeze(dir: &TempDir, words: &[&str]) -> Outcome {
    let (www, out) = (path(dir, "www"), path(dir, "out"));
    run([&["freeze", &www, "--out", &out], words].concat())
}

/// A digest as pages write it.
fn digest(algorithm: &str, content: &str) -> String {
    let encoded = match algorithm {
        "sha256" => Base64::encode_string(&Sha256::digest(content)),
        "sha384" => Base64::encode_string(&Sha384::digest(content)),
        _ => Base64::encode_string(&Sha512::digest(content)),
    };
    format!("{algorithm}-{encoded}")
}

/// A page with a script that is renamed, since it imports another one.
fn page_with(dir: &TempDir, integrity: &str) {
    dir.write(
        "www/index.html",
        format!("<p>\n<script type=module src=a.js integrity='{integrity}'></script>"),
    );
    dir.write("www/a.js", SCRIPT);
    dir.write("www/b.js", "1");
}

/// The attribute of the frozen page, and the frozen script.
fn frozen(dir: &TempDir) -> (String, String) {
    let page = dir.read("out/index.html");
    let part = |from: &str, to: &str| {
        let (_, rest) = page.split_once(from).expect("it is there");
        rest.split_once(to).expect("it ends").0.to_owned()
    };
    let script = dir.read(&format!("out/{}", part("src=", " ")));
    (part("integrity='", "'"), script)
}

const SCRIPT: &str = "import './b.js'";

#[test]
fn a_wrong_digest_is_reported_and_left() {
    if !peer::is_firstbyte() {
        return;
    }
    for algorithm in ["sha256", "sha384", "sha512"] {
        let dir = TempDir::new();
        let wrong = digest(algorithm, "alert('changed by somebody else')");
        page_with(&dir, &wrong);
        let outcome = freeze(&dir, &[]);
        let told = "warning: index.html:2: integrity has a wrong digest of \"a.js\"";
        assert!(outcome.stderr.contains(told), "{outcome:?}");
        assert_eq!(outcome.code, 0, "{outcome:?}");
        let (integrity, script) = frozen(&dir);
        assert_ne!(script, SCRIPT, "the name of the import has a hash");
        assert_eq!(integrity, wrong);
        let strict = freeze(&dir, &["--strict"]);
        assert_eq!(strict.code, 2, "{strict:?}");
        assert!(
            strict
                .stdout
                .contains("references: 2, 0 broken, 1 blocked\n"),
            "{strict:?}"
        );
    }
}

/// The digest of an unchanged file is compared, too.
#[test]
fn a_wrong_digest_of_a_file_that_stays_is_reported() {
    if !peer::is_firstbyte() {
        return;
    }
    let dir = TempDir::new();
    page_with(&dir, &digest("sha256", "other"));
    dir.write("www/a.js", "no import");
    let outcome = freeze(&dir, &[]);
    assert!(
        outcome.stderr.contains("wrong digest of \"a.js\""),
        "{outcome:?}"
    );
    assert_eq!(frozen(&dir).0, digest("sha256", "other"));
}

/// The right digest of an unchanged file is left, byte by byte.
#[test]
fn a_right_digest_of_a_file_that_stays_is_left() {
    if !peer::is_firstbyte() {
        return;
    }
    let dir = TempDir::new();
    page_with(&dir, &digest("sha384", "no import"));
    dir.write("www/a.js", "no import");
    assert_eq!(freeze(&dir, &["--strict"]).stderr, "");
    assert_eq!(frozen(&dir).0, digest("sha384", "no import"));
}

#[test]
fn right_digests_follow_their_file_and_others_beside_them_stay() {
    if !peer::is_firstbyte() {
        return;
    }
    let all = ["sha256", "sha384", "sha512"];
    for algorithm in all {
        let dir = TempDir::new();
        let (right, other) = (
            digest(algorithm, SCRIPT),
            digest(algorithm, "an earlier version"),
        );
        page_with(&dir, &format!("md5-x  {other} {right}?ct=x"));
        let outcome = freeze(&dir, &["--strict"]);
        assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""));
        let (integrity, script) = frozen(&dir);
        let new = digest(algorithm, &script);
        assert_eq!(integrity, format!("md5-x  {other} {new}?ct=x"));
    }
    // Browsers check only the strongest algorithm; a wrong weaker digest does not block, and is not corrected.
    let dir = TempDir::new();
    let weak = digest("sha256", "other");
    page_with(&dir, &format!("{weak} {}", digest("sha512", SCRIPT)));
    assert_eq!(freeze(&dir, &["--strict"]).stderr, "");
    let (integrity, script) = frozen(&dir);
    assert_eq!(integrity, format!("{weak} {}", digest("sha512", &script)));
    // The strongest is wrong and stays, so that the file is blocked in spite of the weaker one.
    let dir = TempDir::new();
    let strong = digest("sha512", "other");
    page_with(&dir, &format!("{} {strong}", digest("sha256", SCRIPT)));
    assert!(freeze(&dir, &[]).stderr.contains("wrong digest"));
    let (integrity, script) = frozen(&dir);
    assert_eq!(integrity, format!("{} {strong}", digest("sha256", &script)));
}

#[test]
fn a_name_that_is_not_utf_8_is_named_and_can_be_excluded() {
    if !peer::is_firstbyte() {
        return;
    }
    let dir = TempDir::new();
    dir.write("www/index.html", "<p>");
    dir.write("www/sub/a.txt", "a");
    let name = OsStr::from_bytes(b"caf\xe9.txt");
    fs::write(dir.path().join("www/sub").join(name), "x").expect("it is written");
    let outcome = freeze(&dir, &[]);
    assert_eq!(outcome.code, 1, "{outcome:?}");
    let told = "www/sub/caf\\xE9.txt\": a name that is not UTF-8; --exclude leaves it out";
    assert!(outcome.stderr.contains(told), "{outcome:?}");
    for glob in ["caf*", "caf*.txt", "sub/caf*", "sub/"] {
        let outcome = freeze(&dir, &["--exclude", glob]);
        assert_eq!(outcome.code, 0, "{glob}: {outcome:?}");
        assert_eq!(
            dir.path().join("out/sub/a.txt").exists(),
            glob != "sub/",
            "{glob}"
        );
    }
}

/// Runs as a user without rights to read everything.
fn freeze_unprivileged(dir: &TempDir, words: &[&str]) -> Output {
    let (www, out) = (path(dir, "www"), path(dir, "shared/out"));
    let mut command = match peer::is_root() {
        true => {
            // The directory of the build may be closed to others.
            let copy = dir.path().join("firstbyte");
            if !copy.exists() {
                fs::copy(peer::binary(), &copy).expect("it is copied");
            }
            let mut command = Command::new(copy);
            command.uid(NOBODY).gid(NOBODY);
            command
        }
        false => Command::new(peer::binary()),
    };
    let command = command.args(["freeze", &www, "--out", &out]).args(words);
    command.output().expect("it starts")
}

const NOBODY: u32 = 65_534;

#[test]
fn files_and_directories_that_cannot_be_read_are_named_and_can_be_excluded() {
    if !peer::is_firstbyte() {
        return;
    }
    let dir = TempDir::new();
    dir.write("www/index.html", "<p>");
    dir.write("www/css/secret.css", "a{}");
    dir.write("www/closed/a.txt", "a");
    fs::create_dir(dir.path().join("shared")).expect("it is made");
    let set = |name: &str, mode| {
        let set = fs::set_permissions(dir.path().join(name), Permissions::from_mode(mode));
        set.expect("it is set");
    };
    set("shared", 0o777);
    set("www/css/secret.css", 0);
    set("www/closed", 0);
    let www = path(&dir, "www");
    for (words, told) in [
        (
            &[][..],
            format!("read {www}/closed: 13: Permission denied; --exclude leaves it out"),
        ),
        (
            &["--exclude", "closed/"],
            format!("read {www}/css/secret.css: 13: Permission denied; --exclude leaves it out"),
        ),
    ] {
        let output = freeze_unprivileged(&dir, words);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.contains(&told), "{told}: {stderr}");
        assert_eq!(output.status.code(), Some(1), "{stderr}");
    }
    for closed in ["closed/", "closed"] {
        for secret in ["secret.css", "css/secret.css", "css/"] {
            let output = freeze_unprivileged(&dir, &["--exclude", closed, "--exclude", secret]);
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(0), "{closed} {secret}: {stderr}");
        }
    }
    // So that the directory can be removed.
    set("www/closed", 0o755);
}

/// The target of a link has its own name, too.
#[test]
fn a_link_to_what_cannot_be_read_is_named() {
    if !peer::is_firstbyte() {
        return;
    }
    let dir = TempDir::new();
    dir.write("www/index.html", "<p>");
    symlink("/proc/self/mem", dir.path().join("www/memory.txt")).expect("it is made");
    let outcome = freeze(&dir, &["--follow"]);
    assert_eq!(outcome.code, 1, "{outcome:?}");
    assert!(
        outcome.stderr.contains(": memory.txt: read /proc/"),
        "{outcome:?}"
    );
    assert_eq!(
        freeze(&dir, &["--follow", "--exclude", "memory.txt"]).code,
        0
    );
}

#[test]
fn a_source_that_cannot_be_read_leaves_no_directory_behind() {
    if !peer::is_firstbyte() {
        return;
    }
    let dir = TempDir::new();
    let new = |name: &str| dir.path().join(name);
    let run_to = |www: &Path, out: &str| {
        let www = www.display().to_string();
        run(["freeze", &www, "--out", &path(&dir, out)])
    };
    let outcome = run_to(&new("missing"), "a/b/out");
    assert!(outcome.stderr.contains("2: No such file"), "{outcome:?}");
    dir.write("www/index.html", "<p>");
    fs::write(new("www").join(OsStr::from_bytes(b"\xff")), "x").expect("it is written");
    assert_eq!(run_to(&new("www"), "a/b/out").code, 1);
    assert_eq!(
        run_to(&new("www"), "www/b/out").code,
        1,
        "inside of the source"
    );
    let file = run_to(&new("www/index.html"), "a/b/out");
    assert!(file.stderr.ends_with("20: Not a directory\n"), "{file:?}");
    assert!(!new("a").exists() && !new("www/b").exists());
    fs::remove_file(new("www").join(OsStr::from_bytes(b"\xff"))).expect("it is there");
    assert_eq!(run_to(&new("www"), "a/b/out").code, 0);
    assert!(new("a/b/out/index.html").exists() && new("a/b/out.manifest.json").exists());
}
