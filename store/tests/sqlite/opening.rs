//! Opening of files that are damaged, of other programs, or of another version.

use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};

use firstbyte_tests::TempDir;
use firstbyte_tests::skip::skip;
use store::{Error, MovedAside, Query, Retention, Sqlite, Store};

use crate::rows::{NOON, child, child_argument, file, maintain, open, row, succeeds, totals};

const PAGE: u64 = 8192;

/// A way to damage a file.
type Damage = fn(&Path);

/// Makes a store of many pages.
fn filled(path: &Path) {
    let mut store = open(path);
    let rows: Vec<_> = (0..20_000)
        .map(|n| row(NOON + n, "DE", 1000 + n as u32))
        .collect();
    store.insert(&rows).expect("they are stored");
    maintain(&mut store, NOON, &Retention::default());
}

fn write_at(path: &Path, at: u64, bytes: &[u8]) {
    let file = fs::OpenOptions::new()
        .write(true)
        .open(path)
        .expect("a file");
    file.write_all_at(bytes, at).expect("it is written");
}

/// Names in the directory of a test, sorted.
fn names(dir: &TempDir) -> Vec<String> {
    let entries = fs::read_dir(dir.path()).expect("a directory");
    let mut names: Vec<_> = entries
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    names.sort();
    names
}

/// Opens a damaged store, and checks that it is kept under another name while a new one begins.
#[track_caller]
fn moved(dir: &TempDir, what: &str) -> PathBuf {
    let path = file(dir);
    let before = fs::read(&path).expect("a file");
    let opened = Sqlite::open(&path).unwrap_or_else(|error| panic!("{what}: {error}"));
    let MovedAside { to, reason } = opened.moved_aside.unwrap_or_else(|| panic!("{what}"));
    assert!(!reason.is_empty());
    assert_eq!(fs::read(&to).expect("the old file"), before, "{what}");
    let name = to
        .file_name()
        .expect("a name")
        .to_string_lossy()
        .into_owned();
    let stamp = name
        .strip_prefix("visitors.db.damaged-")
        .expect("its new name");
    assert_eq!((stamp.len(), stamp.find('-')), (15, Some(8)), "{name}");
    let mut store = opened.store;
    store
        .insert(&[row(NOON, "DE", 5)])
        .expect("the new file is whole");
    assert_eq!(totals(&path).connections, 1, "{what}");
    to
}

#[test]
fn damaged_files_are_moved_aside() {
    let damages: [(&str, Damage); 8] = [
        ("magic", |path| write_at(path, 0, b"SQLite formaT")),
        ("page size", |path| write_at(path, 16, &[3, 3])),
        ("first table", |path| write_at(path, 100, &[0xff; 60])),
        ("schema", |path| {
            let bytes = fs::read(path).expect("a file");
            let text = b"CREATE TABLE connection";
            // Unused parts of a page may have old copies.
            let copies = bytes.windows(text.len()).enumerate();
            for (at, _) in copies.filter(|(_, it)| it == text) {
                write_at(path, at as u64, &[0; 300]);
            }
        }),
        ("a page in the middle", |path| {
            let middle = fs::metadata(path).expect("a file").len() / PAGE / 2;
            write_at(path, middle * PAGE, &[0xa5; PAGE as usize]);
        }),
        ("last page", |path| {
            let last = fs::metadata(path).expect("a file").len() - PAGE;
            write_at(path, last, &[0x5a; 64]);
        }),
        ("cut in the middle", |path| {
            let length = fs::metadata(path).expect("a file").len();
            let file = fs::OpenOptions::new()
                .write(true)
                .open(path)
                .expect("a file");
            file.set_len(length / 2 + 100).expect("it is cut");
        }),
        ("cut in the header", |path| {
            let file = fs::OpenOptions::new()
                .write(true)
                .open(path)
                .expect("a file");
            file.set_len(60).expect("it is cut");
        }),
    ];
    let first = TempDir::new();
    filled(&file(&first));
    for (what, damage) in damages {
        let dir = TempDir::new();
        fs::copy(file(&first), file(&dir)).expect("a copy");
        damage(&file(&dir));
        moved(&dir, what);
    }
}

#[test]
fn several_files_are_moved_aside_within_a_second() {
    let dir = TempDir::new();
    let mut found = std::collections::BTreeSet::new();
    for _ in 0..4 {
        filled(&file(&dir));
        write_at(&file(&dir), 0, b"?");
        let opened = Sqlite::open(&file(&dir)).expect("it opens");
        found.insert(opened.moved_aside.expect("it was damaged").to);
        drop(opened.store);
        fs::remove_file(file(&dir)).expect("it is removed");
    }
    assert_eq!(found.len(), 4);
}

/// A write-ahead log of garbage is no log: SQLite checks its frames.
#[test]
fn garbage_in_the_log_loses_nothing_older() {
    let dir = TempDir::new();
    let path = file(&dir);
    filled(&path);
    let wal = dir.path().join("visitors.db-wal");
    fs::write(&wal, [0x37; 5000]).expect("it is written");
    drop(open(&path));
    assert_eq!(totals(&path).connections, 20_000);
    // A log that is cut in a transaction lacks this transaction alone.
    let mut store = open(&path);
    store.insert(&[row(NOON, "DE", 1)]).expect("it is stored");
    let whole = fs::metadata(&wal).expect("a log").len();
    store.insert(&[row(NOON, "DE", 1)]).expect("it is stored");
    let copy = TempDir::new();
    fs::copy(&path, file(&copy)).expect("a copy");
    let bytes = fs::read(&wal).expect("a log");
    fs::write(
        copy.path().join("visitors.db-wal"),
        &bytes[..whole as usize + 100],
    )
    .expect("a copy");
    drop(open(&file(&copy)));
    assert_eq!(totals(&file(&copy)).connections, 20_001);
}

#[test]
fn files_of_other_programs_stay() {
    let dir = TempDir::new();
    let path = file(&dir);
    let other = rusqlite::Connection::open(&path).expect("it opens");
    other
        .execute_batch("CREATE TABLE t (x); INSERT INTO t VALUES (1);")
        .expect("a table");
    drop(other);
    let whole = fs::read(&path).expect("a file");
    let mut damaged = whole.clone();
    damaged[100..160].fill(0xff);
    let texts: [&[u8]; 5] = [&whole, &damaged, b"text", &[0; 8192], &[b'x'; 20_000]];
    for content in texts {
        fs::write(&path, content).expect("it is written");
        for open in [
            Sqlite::open(&path).map(|_| ()),
            Sqlite::open_to_read(&path).map(|_| ()),
        ] {
            assert_eq!(open, Err(Error::Foreign(path.clone())));
        }
        assert_eq!(fs::read(&path).expect("a file"), content);
        assert_eq!(names(&dir), ["visitors.db"]);
    }
}

#[test]
fn newer_schemas_stay() {
    let dir = TempDir::new();
    let path = file(&dir);
    drop(open(&path));
    let version = |version: i64| {
        let db = rusqlite::Connection::open(&path).expect("it opens");
        db.pragma_update(None, "user_version", version)
            .expect("a version");
    };
    version(4);
    let newer = Error::Newer {
        path: path.clone(),
        version: 4,
    };
    assert_eq!(Sqlite::open(&path).map(|_| ()), Err(newer.clone()));
    assert_eq!(Sqlite::open_to_read(&path).map(|_| ()), Err(newer));
    version(3);
    drop(open(&path));
    version(0);
    moved(&dir, "no version");
}

#[test]
fn other_kinds_of_files_are_errors() {
    let dir = TempDir::new();
    let path = file(&dir);
    assert!(Sqlite::open_to_read(&path).is_err());
    assert_eq!(names(&dir), [""; 0]);
    fs::create_dir(&path).expect("a directory");
    for error in [
        Sqlite::open(&path).map(|_| ()),
        Sqlite::open_to_read(&path).map(|_| ()),
    ] {
        let error = error.expect_err("a directory is no store").to_string();
        assert!(error.contains("no regular file"), "{error}");
    }
    let missing = dir.path().join("missing/visitors.db");
    let error = Sqlite::open(&missing)
        .expect_err("no directory")
        .to_string();
    assert!(error.contains("missing/visitors.db"), "{error}");
}

/// A file without content is a new store: a process may have been killed between the two.
#[test]
fn empty_files_become_stores() {
    let dir = TempDir::new();
    fs::write(file(&dir), "").expect("it is written");
    drop(open(&file(&dir)));
    assert_eq!(totals(&file(&dir)).connections, 0);
}

#[test]
fn others_cannot_read_files() {
    let dir = TempDir::new();
    let mut store = open(&file(&dir));
    store.insert(&[row(NOON, "DE", 5)]).expect("it is stored");
    for name in names(&dir) {
        let mode = fs::metadata(dir.path().join(&name))
            .expect("a file")
            .permissions()
            .mode();
        assert_eq!(mode & 0o7777, 0o640, "{name}");
    }
    assert_eq!(names(&dir).len(), 3);
}

/// A page that is found to be damaged at a commit: the store is replaced, unless another process has done it.
#[test]
fn damage_that_is_met_later_replaces_the_store() {
    let dir = TempDir::new();
    let path = file(&dir);
    let (one, two) = (open(&path), open(&path));
    let opened = one.replace("a test").expect("it is replaced");
    let moved = opened.moved_aside.expect("its new name");
    assert_eq!(moved.reason, "a test");
    assert!(opened.store.is_in_place());
    assert!(!two.is_in_place());
    let again = two.replace("a test").expect("it is opened");
    assert_eq!(again.moved_aside, None);
    assert!(again.store.is_in_place() && opened.store.is_in_place());
}

/// A roll-up that is no histogram, in pages that are whole.
#[test]
fn damaged_histograms_are_found() {
    let dir = TempDir::new();
    let path = file(&dir);
    let mut store = open(&path);
    store.insert(&[row(NOON, "DE", 5)]).expect("it is stored");
    maintain(&mut store, NOON, &Retention::default());
    let db = rusqlite::Connection::open(&path).expect("it opens");
    db.execute_batch("UPDATE rollup SET min_rtt = x'80'")
        .expect("damage");
    let wanted = Error::Damaged("a histogram is unreadable".to_owned());
    let query = Query {
        to_s: u64::MAX,
        ..Query::default()
    };
    assert_eq!(store.answer(&query), Err(wanted.clone()));
    assert_eq!(store.totals(&query).expect("totals").connections, 1);
    store.insert(&[row(NOON, "DE", 5)]).expect("it is stored");
    let limit = std::time::Duration::from_secs(60);
    let done = store.maintain(NOON, &Retention::default(), limit);
    assert_eq!(done, Err(wanted));
}

/// Bytes changed at random: the file is moved aside, or later work has an error of damage.
#[test]
fn random_damage_is_an_error_at_most() {
    let seed = std::process::id().into();
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let first = TempDir::new();
    let mut store = open(&file(&first));
    let rows: Vec<_> = (0..300)
        .map(|n| row(NOON + 60 * n, "DE", 1000 + n as u32))
        .collect();
    store.insert(&rows).expect("they are stored");
    maintain(&mut store, NOON, &Retention::default());
    drop(store);
    let whole = fs::read(file(&first)).expect("a file");
    const ROUNDS: u32 = 50;
    let mut outcomes = [0; 3];
    for _ in 0..ROUNDS {
        let dir = TempDir::new();
        let mut bytes = whole.clone();
        for _ in 0..random.usize(1..4) {
            let at = random.usize(0..bytes.len());
            bytes[at] = random.u8(..);
        }
        fs::write(file(&dir), bytes).expect("it is written");
        let opened = match Sqlite::open(&file(&dir)) {
            Ok(opened) => opened,
            Err(error) => {
                assert!(
                    matches!(error, Error::Foreign(_) | Error::Newer { .. }),
                    "{error}"
                );
                outcomes[0] += 1;
                continue;
            }
        };
        outcomes[1] += usize::from(opened.moved_aside.is_some());
        let mut store = opened.store;
        let query = Query {
            to_s: u64::MAX,
            ..Query::default()
        };
        let limit = std::time::Duration::from_secs(60);
        for done in [
            store.answer(&query).map(|_| ()),
            store.insert(&rows),
            store
                .maintain(NOON, &Retention::default(), limit)
                .map(|_| ()),
        ] {
            let is_known = matches!(done, Ok(()) | Err(Error::Damaged(_)));
            assert!(is_known, "{done:?}");
            outcomes[2] += usize::from(done.is_err());
        }
    }
    assert!(outcomes[1] > 0, "{outcomes:?}");
    println!("foreign, moved aside, found later: {outcomes:?}");
}

/// A process that hangs while it opens a store holds the lock of the directory.
#[test]
fn opening_waits_for_a_while() {
    let dir = TempDir::new();
    let lock = fs::File::open(dir.path()).expect("a directory");
    lock.lock().expect("a lock");
    assert_eq!(Sqlite::open(&file(&dir)).map(|_| ()), Err(Error::Busy));
    drop(lock);
    drop(open(&file(&dir)));
}

#[test]
fn child_reads_without_rights() {
    let Some(argument) = child_argument() else {
        return;
    };
    let path = PathBuf::from(argument);
    assert_eq!(totals(&path).connections, 1);
    let error = Sqlite::open(&path).expect_err("it may not write");
    assert_eq!(error, Error::ReadOnly);
}

/// A user who may neither write the file nor its directory reads a store that no server has open.
#[test]
fn readers_need_no_right_to_write() {
    let nobody = [
        "setpriv",
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
    ];
    let this = std::env::current_exe().expect("this program");
    let mut test = std::process::Command::new(nobody[0]);
    test.args(&nobody[1..]).args(["test", "-x"]).arg(this);
    if !test.status().is_ok_and(|status| status.success()) {
        skip("there is no other user who may run this program");
        return;
    }
    let dir = TempDir::new();
    let path = dir.path().join("a?b#c%20.db");
    let mut store = open(&path);
    store.insert(&[row(NOON, "DE", 5)]).expect("it is stored");
    drop(store);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("a mode");
    let argument = path.display().to_string();
    let mut process = child("opening::child_reads_without_rights", &argument, &nobody);
    succeeds(process.spawn().expect("it starts"));
}
