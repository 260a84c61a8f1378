//! Files kept in memory.

use super::*;

pub(crate) fn glob_paths(source: &mut impl Source, pattern: &str) -> Vec<String> {
    let paths = source.glob(pattern).expect("the source can be searched");
    paths
        .iter()
        .map(|path| path.display().to_string())
        .collect()
}

pub(crate) fn site() -> Memory {
    [
        "/c/b.conf",
        "/c/a.conf",
        "/c/.x.conf",
        "/c/a.txt",
        "/c/sub/d.conf",
        "/d/sub/e.conf",
    ]
    .into_iter()
    .fold(Memory::default(), |memory, path| {
        memory.with_file(path, path)
    })
}

#[test]
fn memory_reads_what_it_was_given_and_nothing_else() {
    let mut memory = Memory::default().with_file("/a", "x");
    assert_eq!(memory.read(Path::new("/a")).expect("it is there"), b"x");
    assert_eq!(
        memory
            .read(Path::new("/b"))
            .expect_err("it is not")
            .raw_os_error(),
        Some(ENOENT)
    );
}

#[test]
fn what_was_not_recorded_is_noted_where_that_is_wanted() {
    let missed = Arc::new(AtomicBool::new(false));
    let asked = |ask: fn(&mut Memory)| {
        missed.store(false, Ordering::Relaxed);
        let mut memory = site().recording_misses(Arc::clone(&missed));
        memory.add_glob("/c/*", vec!["/c/a.txt".into()]);
        memory.add_host("a", vec![[127, 0, 0, 1].into()]);
        ask(&mut memory);
        missed.load(Ordering::Relaxed)
    };
    assert!(!asked(|m| drop(m.read(Path::new("/c/a.txt")))));
    assert!(!asked(|m| drop(m.glob("/c/*"))));
    assert!(!asked(|m| drop(m.addresses("a"))));
    assert!(asked(|m| drop(m.read(Path::new("/none")))));
    assert!(asked(|m| drop(m.read_text(Path::new("/none")))));
    assert!(asked(|m| drop(m.open(Path::new("/none")))));
    assert!(asked(|m| assert!(m.glob("/d/*").is_err())));
    assert!(asked(|m| drop(m.addresses("b"))));
}

#[test]
fn packed_memory_is_equal_and_shares_what_an_earlier_one_has() {
    let earlier = site().with_file("/changed", "old");
    let mut memory = Memory::default().with_file("/changed", "new");
    let (same, _) = earlier
        .file_with_stamp(Path::new("/c/a.txt"))
        .expect("it is there");
    memory.add_read(Path::new("/c/a.txt"), Arc::clone(same), None);
    memory.add_glob("/c/*", vec!["/c/a.txt".into()]);
    memory.add_host("a", vec![[127, 0, 0, 1].into()]);
    memory.add_opened("/data", DataFile::from(b"x".as_slice()));
    let packed = memory.for_checks().packed(Some(&earlier));
    let mut texts: Vec<_> = packed.files().map(|(_, text)| text.to_vec()).collect();
    texts.sort();
    assert_eq!(texts, [b"/c/a.txt".to_vec(), b"new".to_vec()]);
    let (kept, _) = packed
        .file_with_stamp(Path::new("/c/a.txt"))
        .expect("it is there");
    assert!(Arc::ptr_eq(kept, same));
    assert_eq!(packed.globs().count(), 1);
    assert_eq!((packed.hosts().count(), packed.opened().count()), (1, 1));
    assert!(packed.only_checks());
}

#[test]
fn a_difference_has_what_is_new_or_changed_unless_something_is_gone() {
    let mut earlier = site();
    earlier.add_glob("/c/*", vec!["/c/a.txt".into()]);
    earlier.add_glob("/d/*", Vec::new());
    let mut now = earlier.clone();
    let files = |memory: &Memory| -> Vec<String> {
        let paths = memory.files().map(|(path, _)| path.display().to_string());
        let mut paths: Vec<_> = paths.collect();
        paths.sort();
        paths
    };
    let none = now.difference(&earlier).expect("nothing is gone");
    assert_eq!((files(&none), none.globs().count()), (vec![], 0));
    now.add_host("a", Vec::new());
    now.add_opened("/data", DataFile::from(b"x".as_slice()));
    now.add_file("/c/a.conf", "other");
    now.add_file("/new", "new");
    now.add_glob("/d/*", vec!["/d/b".into()]);
    let some = now.difference(&earlier).expect("nothing is gone");
    assert_eq!(files(&some), ["/c/a.conf", "/new"]);
    assert_eq!(some.glob_result("/d/*"), Some(&["/d/b".into()][..]));
    assert_eq!(some.globs().count(), 1);
    assert_eq!((some.hosts().count(), some.opened().count()), (1, 1));
    assert!(earlier.difference(&now).is_none(), "a file is gone");
    let mut answers = earlier.clone();
    answers.add_glob("/e/*", Vec::new());
    assert!(earlier.difference(&answers).is_none(), "a pattern is gone");
}

#[test]
fn patterns_match_paths_in_byte_order() {
    let mut memory = site();
    assert_eq!(
        glob_paths(&mut memory, "/c/*.conf"),
        ["/c/a.conf", "/c/b.conf"]
    );
    assert_eq!(
        glob_paths(&mut memory, "/*/sub/?.conf"),
        ["/c/sub/d.conf", "/d/sub/e.conf"]
    );
    assert_eq!(glob_paths(&mut memory, "/c/[b]*"), ["/c/b.conf"]);
    assert_eq!(glob_paths(&mut memory, "/none/*"), [""; 0]);
    assert_eq!(glob_paths(&mut memory, "/*/none"), [""; 0]);
}
