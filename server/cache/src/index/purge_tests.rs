//! Purges: nothing purged is served after the answer, and a walk ends them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::examples_tests::*;
use super::*;
use crate::key::{CacheKey, EntryId};

/// Whether a request would be served from its entry, fresh.
fn is_served(index: &Index, id: EntryId, key: &CacheKey, tags: &[u8]) -> bool {
    match look_up(index, id, key) {
        Lookup::Stored(entry) => {
            let checked = index.check_hit(Some(&entry), entry.uniq, &facts(key, tags));
            !entry.is_stale && checked.is_none()
        }
        Lookup::Unseen { .. } => index.check_hit(None, 0, &facts(key, tags)).is_none(),
        _ => false,
    }
}

/// Walks over all entries. `tags_of` returns key and tags of an entry.
fn walk(index: &Index, tags_of: impl Fn(&EntryId) -> Option<(CacheKey, &'static [u8])>) -> u64 {
    let mut walk = index.begin_walk(NOW.mono_ms).expect("a purge is in effect");
    let mut entries = Vec::new();
    while index.walk_step(&mut walk, &mut entries) {
        for entry in entries.drain(..) {
            let found = tags_of(&entry.id);
            let facts = found.as_ref().map(|(key, tags)| facts(key, tags));
            index.judge(&mut walk, &entry, facts.as_ref());
        }
    }
    let purged = walk.purged();
    index.end_walk(walk);
    purged
}

#[test]
fn a_purged_key_is_gone_with_its_variants() {
    let index = index(100);
    let (one, other) = (key("/a"), key("/b"));
    for (id, key) in [(one.id(), &one), (variant(1), &one), (other.id(), &other)] {
        store(&index, id, key, b"");
    }
    let soft = index
        .purge_key(&one, PurgeMode::Soft)
        .expect("there are few");
    assert_eq!(soft.entries, 2);
    let is_stale = |id| stored(&index, id, &one).is_stale;
    assert!(is_stale(one.id()) && is_stale(variant(1)));
    let purged = index
        .purge_key(&one, PurgeMode::Hard)
        .expect("there are few");
    assert_eq!(purged.ids, [one.id(), variant(1)]);
    for id in purged.ids {
        assert!(!is_served(&index, id, &one, b"") && !index.has_file(&id));
    }
    assert!(is_served(&index, other.id(), &other, b""));
    assert_eq!(index.stats().purged, 4);
    assert_eq!(index.begin_walk(NOW.mono_ms), None, "nothing is left to do");
}

#[test]
fn variants_that_were_loaded_are_purged_with_their_key() {
    let index = Arc::new(Index::new(100));
    let one = key("/a");
    // Purged before it is loaded.
    index
        .purge_key(&one, PurgeMode::Hard)
        .expect("there are few");
    assert!(
        !is_served(&index, one.id(), &one, b""),
        "its file may exist"
    );
    index.load(&one.id(), 1, NOW_S);
    index.load(&variant(1), 1, NOW_S);
    assert!(!is_served(&index, one.id(), &one, b""));
    assert!(!is_served(&index, variant(1), &one, b""));
    assert_eq!(
        index.begin_walk(NOW.mono_ms),
        None,
        "some files may not be loaded yet"
    );
    index.set_loaded();
    let other = key("/b");
    index.load(&other.id(), 1, NOW_S);
    index.load(&variant(2), 1, NOW_S);
    index.learn(&other.id(), &other.id());
    let purged = index
        .purge_key(&other, PurgeMode::Hard)
        .expect("there are few");
    assert_eq!(purged.ids, [other.id()], "its variant is not known");
    assert!(!is_served(&index, variant(2), &other, b""));
    let of = |id: &EntryId| {
        let is_other = [other.id(), variant(2)].contains(id);
        Some((key(if is_other { "/b" } else { "/a" }), &b""[..]))
    };
    assert_eq!(walk(&index, of), 3);
    assert_eq!(index.stats().entries, 0);
    assert_eq!(index.begin_walk(NOW.mono_ms), None);
}

#[test]
fn tags_and_prefixes_are_purged_at_once_and_removed_by_a_walk() {
    let index = index(5000);
    let text = |n: u32| format!("/{}/{n}", n % 3);
    let tags = |n: u32| match n % 5 {
        0 => &b"five\tall"[..],
        _ => b"all",
    };
    let all: Vec<CacheKey> = (0..3000).map(|n| key(&text(n))).collect();
    for (n, key) in all.iter().enumerate() {
        store(&index, key.id(), key, tags(n as u32));
    }
    let epoch = index
        .purge_tag(b"five", PurgeMode::Hard)
        .expect("there are few");
    index
        .purge_prefix(b"/1/", PurgeMode::Soft)
        .expect("there are few");
    let served = |n: u32, key: &CacheKey| is_served(&index, key.id(), key, tags(n));
    let expected = |n: u32| !n.is_multiple_of(5) && n % 3 != 1;
    for (n, key) in all.iter().enumerate() {
        assert_eq!(served(n as u32, key), expected(n as u32), "{n}");
    }
    assert!(!index.has_purge_ended(epoch));
    let of = |id: &EntryId| {
        let n = all.iter().position(|key| key.id() == *id)?;
        Some((all[n].clone(), tags(n as u32)))
    };
    assert_eq!(walk(&index, of), 600 + 800);
    assert!(index.has_purge_ended(epoch) && index.begin_walk(NOW.mono_ms).is_none());
    assert_eq!(index.stats().entries, 2400);
    for (n, key) in all.iter().enumerate() {
        assert_eq!(served(n as u32, key), expected(n as u32), "{n}");
    }
    // A prefix of no bytes is everything.
    index
        .purge_prefix(b"", PurgeMode::Hard)
        .expect("there are few");
    assert!(
        all.iter()
            .enumerate()
            .all(|(n, key)| !served(n as u32, key))
    );
    assert_eq!(walk(&index, |_| None), 2400, "unreadable files go as well");
    assert_eq!(index.stats().entries, 0);
}

#[test]
fn a_fill_from_before_a_purge_keeps_it_in_effect() {
    let index = index(100);
    let key = key("/a");
    let token = start(&index, key.id(), &key, OFF);
    let epoch = index
        .purge_tag(b"x", PurgeMode::Hard)
        .expect("there are few");
    walk(&index, |_| None);
    assert!(
        !index.has_purge_ended(epoch),
        "the fill could be stored now"
    );
    let committed = token.commit(&facts(&key, b"x"), || unreachable!());
    assert_eq!(committed, Committed::Refused);
    walk(&index, |_| None);
    assert!(index.has_purge_ended(epoch));
}

#[test]
fn an_entry_that_was_stored_again_survives_the_walk() {
    let index = index(100);
    let key = key("/a");
    store(&index, key.id(), &key, b"x");
    index
        .purge_tag(b"x", PurgeMode::Hard)
        .expect("there are few");
    let mut walk = index.begin_walk(NOW.mono_ms).expect("a purge is in effect");
    let mut entries = Vec::new();
    while index.walk_step(&mut walk, &mut entries) {}
    store(&index, key.id(), &key, b"x");
    let facts = facts(&key, b"x");
    let action = index.judge(&mut walk, &entries[0], Some(&facts));
    assert_eq!(action, WalkAction::Keep);
    index.end_walk(walk);
    assert!(is_served(&index, key.id(), &key, b"x"));
}

/// A request has found an entry when a walk removes it and ends its purge.
#[test]
fn a_walk_between_lookup_and_check_is_noticed() {
    let index = index(100);
    let keys = ["/purged", "/kept"].map(key);
    for (key, tag) in keys.iter().zip([&b"x"[..], b"y"]) {
        let token = start(&index, key.id(), key, OFF);
        let committed = token.commit(&facts(key, tag), || Some(file(1)));
        assert_eq!(committed, Committed::Stored);
    }
    index
        .purge_tag(b"x", PurgeMode::Hard)
        .expect("there are few");
    let entry = stored(&index, keys[0].id(), &keys[0]);
    let tags_of = |id: &EntryId| {
        let is_first = *id == keys[0].id();
        Some(match is_first {
            true => (keys[0].clone(), &b"x"[..]),
            false => (keys[1].clone(), &b"y"[..]),
        })
    };
    assert_eq!(walk(&index, tags_of), 1);
    let checked = index.check_hit(Some(&entry), entry.uniq, &facts(&keys[0], b"x"));
    assert_eq!(checked, Some(PurgeMode::Hard));
    let checked = index.check_hit(None, 0, &facts(&keys[0], b"x"));
    assert_eq!(checked, Some(PurgeMode::Hard));
    assert!(is_served(&index, keys[1].id(), &keys[1], b"y"));
}

/// A site with purges and requests at once. A response has the number of purges begun when its server made it.
/// After the answer to a purge of its key, no response with a lower number may be served.
struct PurgedSite {
    index: Arc<Index>,
    /// Keys and ids of entries.
    keys: Vec<CacheKey>,
    ids: Vec<EntryId>,
    /// Whether a purge concerns an entry.
    concerns: fn(u64, usize) -> bool,
    /// The file of each entry: the number in its response.
    files: Vec<AtomicU64>,
    begun: AtomicU64,
    answered: AtomicU64,
    /// Requests, and those served from an entry.
    requests: AtomicU64,
    hits: AtomicU64,
    /// Purged responses that were served.
    faults: AtomicU64,
}

impl PurgedSite {
    /// Serves a request from its entry, or stores it.
    fn request(&self, n: usize) {
        let (index, key, id) = (&self.index, &self.keys[n], self.ids[n]);
        self.requests.fetch_add(1, Ordering::SeqCst);
        let before = self.answered.load(Ordering::SeqCst);
        if let Lookup::Stored(entry) = look_up(index, id, key) {
            // The head is read from the file, and then verified.
            let version = self.files[n].load(Ordering::SeqCst);
            let checked = index.check_hit(Some(&entry), entry.uniq, &facts(key, b"x"));
            if checked.is_none() {
                let concerns = |purge: &u64| (self.concerns)(*purge, n);
                let last = (0..before).rev().find(concerns);
                let needed = last.map_or(0, |purge| purge + 1);
                self.hits.fetch_add(1, Ordering::SeqCst);
                if version < needed {
                    self.faults.fetch_add(1, Ordering::SeqCst);
                }
            }
            return;
        }
        let Begin::Started(token) = index.begin_fill(id, key, OFF, NOW) else {
            return;
        };
        let version = self.begun.load(Ordering::SeqCst);
        let _ = token.commit(&facts(key, b"x"), || {
            // A purge comes meanwhile.
            std::thread::yield_now();
            self.files[n].store(version, Ordering::SeqCst);
            std::thread::yield_now();
            Some(file(1))
        });
    }

    /// Sends requests while `purge` is called for each number.
    fn run(&self, purges: u64, mut purge: impl FnMut(u64)) {
        std::thread::scope(|scope| {
            for thread in 0..4 {
                scope.spawn(move || {
                    let mut rng = fastrand::Rng::with_seed(thread);
                    while self.answered.load(Ordering::SeqCst) < purges {
                        self.request(rng.usize(..self.ids.len()));
                    }
                });
            }
            for n in 0..purges {
                // Other threads store and serve some responses in between.
                while self.requests.load(Ordering::SeqCst) < 20 * n {
                    std::thread::yield_now();
                }
                self.begun.store(n + 1, Ordering::SeqCst);
                purge(n);
                self.answered.store(n + 1, Ordering::SeqCst);
            }
        });
        let hits = self.hits.load(Ordering::SeqCst);
        assert!(hits > purges, "only {hits} hits");
        assert_eq!(self.faults.load(Ordering::SeqCst), 0);
    }

    fn new(
        index: Arc<Index>,
        entries: Vec<(CacheKey, EntryId)>,
        concerns: fn(u64, usize) -> bool,
    ) -> Self {
        let (keys, ids): (Vec<_>, Vec<_>) = entries.into_iter().unzip();
        Self {
            index,
            files: ids.iter().map(|_| AtomicU64::new(0)).collect(),
            keys,
            ids,
            concerns,
            begun: AtomicU64::new(0),
            answered: AtomicU64::new(0),
            requests: AtomicU64::new(0),
            hits: AtomicU64::new(0),
            faults: AtomicU64::new(0),
        }
    }
}

#[test]
fn no_thread_serves_a_purged_response() {
    let entries = (0..4).map(|n| key(&format!("/{n}")));
    let entries = entries.map(|key| (key.clone(), key.id())).collect();
    let concerns = |purge, n| purge % 3 == 2 || purge % 4 == n as u64;
    let site = PurgedSite::new(index(16), entries, concerns);
    site.run(3000, |n| {
        let (index, key, mode) = (&site.index, &site.keys[n as usize % 4], PurgeMode::Hard);
        let purged = match n % 3 {
            0 => index.purge_key(key, mode).map(|_| 0),
            1 => index.purge_prefix(key.text(), mode),
            _ => index.purge_tag(b"x", mode),
        };
        purged.expect("there are few");
        if n % 50 == 0 && index.begin_walk(NOW.mono_ms).is_some() {
            walk(index, |id| {
                let key = site.keys.iter().find(|key| key.id() == *id)?;
                Some((key.clone(), &b"x"[..]))
            });
        }
    });
}

/// Entries are removed meanwhile, so that variants leave and join the lists of their keys.
#[test]
fn no_thread_serves_a_variant_of_a_purged_key() {
    let entries = (0..6).map(|n| {
        let key = key(if n < 3 { "/a" } else { "/b" });
        let id = if n % 3 == 0 { key.id() } else { variant(n) };
        (key, id)
    });
    let concerns = |purge, n| purge % 2 == n as u64 / 3;
    let site = PurgedSite::new(index(100_000), entries.collect(), concerns);
    site.run(3000, |n| {
        site.index.evict_one();
        let key = &site.keys[n as usize % 2 * 3];
        let purged = site.index.purge_key(key, PurgeMode::Hard);
        purged.expect("there are few");
        site.index.evict_one();
    });
}
