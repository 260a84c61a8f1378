//! A cache of verified certificates with their keys, kept from one load of the configuration to the next.
//!
//! The key is a digest of the bytes, so a changed file is never taken for the old one. A reload reuses identities with
//! equal bytes and builds the others. A process that only checks (the supervisor) stores digests without identities. A
//! successful load drops the identities that it did not use.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sha2::{Digest as _, Sha256};
use tls::{Identity, WeakIdentity};

/// A digest of the bytes that an identity is made of.
pub(super) type Digest = [u8; 32];

/// The state of a verified identity.
#[derive(Clone)]
pub(super) enum SoundIdentity {
    /// It is there.
    Made(Identity),
    /// Verified, but dropped since it was not needed.
    Sound,
}

/// An identity in the cache, which does not keep it in memory.
#[derive(Clone)]
enum CachedIdentity {
    /// It was made.
    Made(WeakIdentity),
    /// Verified and dropped.
    Sound,
}

impl CachedIdentity {
    fn new(identity: &SoundIdentity) -> Self {
        match identity {
            SoundIdentity::Made(identity) => Self::Made(identity.downgrade()),
            SoundIdentity::Sound => Self::Sound,
        }
    }

    /// Returns the identity. A freed one is returned, as [`SoundIdentity::Sound`], only if it is not `needed`.
    fn get(&self, needed: bool) -> Option<SoundIdentity> {
        let identity = match self {
            Self::Made(identity) => identity.upgrade(),
            Self::Sound => None,
        };
        match identity {
            Some(identity) => Some(SoundIdentity::Made(identity)),
            None => (!needed).then_some(SoundIdentity::Sound),
        }
    }
}

/// A certificate and its key as read from files, compared by address. The `Arc`s keep these addresses from being
/// reused.
#[derive(Clone)]
pub(super) struct FilePair([Arc<Vec<u8>>; 2]);

impl FilePair {
    pub(super) fn new(certificate: &Arc<Vec<u8>>, key: &Arc<Vec<u8>>) -> Self {
        Self([Arc::clone(certificate), Arc::clone(key)])
    }

    fn place(&self) -> [usize; 2] {
        self.0.each_ref().map(|text| Arc::as_ptr(text).addr())
    }
}

impl PartialEq for FilePair {
    fn eq(&self, other: &Self) -> bool {
        self.place() == other.place()
    }
}

impl Eq for FilePair {}

impl Hash for FilePair {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.place().hash(state);
    }
}

/// The identities of a load.
#[derive(Default)]
pub(super) struct IdentityCache {
    /// Identities made of two files alone, in the order of their first use.
    by_files: Vec<FileIdentity>,
    /// Identities that were not found by their files.
    by_digest: HashMap<Digest, CachedIdentity>,
    /// Index into `by_files` of the last load: the expected next lookup, since loads use identities in an equal order.
    next: usize,
    /// Number of linear searches in `by_files`, by files or by digest.
    searches: usize,
    /// The numbers of those of `by_files`, made when many searches come.
    numbers: HashMap<FilePair, usize>,
    /// `by_digest` has those of `by_files`, too.
    is_complete: bool,
}

/// An identity made of two files alone, without passwords and OCSP response.
#[derive(Clone)]
struct FileIdentity {
    texts: FilePair,
    digest: Digest,
    cached: CachedIdentity,
}

impl IdentityCache {
    /// Returns an empty cache with room for as many identities as the last load had.
    pub(super) fn with_room() -> Self {
        Self {
            by_files: Vec::with_capacity(count()),
            ..Self::default()
        }
    }

    /// Returns the identity of two files that the last load used as well, without reading them again.
    pub(super) fn take_over(&mut self, texts: &FilePair) -> Option<SoundIdentity> {
        let (kept, found) = {
            let mut last = last();
            let last = last.as_mut()?;
            let number = last.number(self.next, texts)?;
            self.next = number + 1;
            let kept = &last.by_files[number];
            (kept.clone(), kept.cached.get(true)?)
        };
        self.push(kept);
        Some(found)
    }

    /// Returns the index of the identity of these files; `next` is tried first.
    fn number(&mut self, next: usize, texts: &FilePair) -> Option<usize> {
        let expected = self.by_files.get(next);
        if expected.is_some_and(|expected| expected.texts == *texts) {
            return Some(next);
        }
        if self.may_search() {
            return self.by_files.iter().position(|of| of.texts == *texts);
        }
        if self.numbers.is_empty() {
            let all = self.by_files.iter().enumerate();
            self.numbers = all.map(|(n, of)| (of.texts.clone(), n)).collect();
        }
        self.numbers.get(texts).copied()
    }

    /// Whether those of `by_files` may be searched through once more, which counts as a search; else a table is made.
    fn may_search(&mut self) -> bool {
        self.searches += 1;
        self.searches <= SEARCHES_MAX
    }

    /// Adds an identity, unless it equals the last one: servers in a row often share it.
    fn push(&mut self, of: FileIdentity) {
        if self
            .by_files
            .last()
            .is_none_or(|last| last.texts != of.texts)
        {
            self.by_files.push(of);
        }
    }

    /// Returns the identity of these bytes, if this load or the last one verified it. A freed one is returned, as
    /// [`SoundIdentity::Sound`], only if it is not `needed`.
    pub(super) fn find(&self, digest: &Digest, needed: bool) -> Option<SoundIdentity> {
        let own = self.by_digest.get(digest);
        own.and_then(|own| own.get(needed)).or_else(|| {
            let mut last = last();
            last.as_mut()?.cached(digest)?.get(needed)
        })
    }

    /// Inserts an identity by the digest of its bytes, or by its files if it consists of these alone.
    pub(super) fn insert(
        &mut self,
        digest: Digest,
        texts: Option<FilePair>,
        found: &SoundIdentity,
    ) {
        let cached = CachedIdentity::new(found);
        if let Some(texts) = texts {
            self.push(FileIdentity {
                texts,
                digest,
                cached: cached.clone(),
            });
        }
        self.by_digest.insert(digest, cached);
    }

    /// Replaces the cache of the last load by this one; identities that are only in the old one are dropped.
    pub(super) fn remember(self) {
        *last() = Some(self);
    }

    /// Finds the identity of these bytes.
    fn cached(&mut self, digest: &Digest) -> Option<&CachedIdentity> {
        if !self.is_complete && self.may_search() {
            let of_texts = self.by_files.iter().find(|of| of.digest == *digest);
            let of_texts = of_texts.map(|of| &of.cached);
            return of_texts.or_else(|| self.by_digest.get(digest));
        }
        if !self.is_complete {
            let all = self.by_files.iter();
            let all = all.map(|of| (of.digest, of.cached.clone()));
            self.by_digest.extend(all);
            self.is_complete = true;
        }
        self.by_digest.get(digest)
    }
}

/// Returns the number of identities of the last load.
pub(super) fn count() -> usize {
    let last = last();
    let number = |last: &IdentityCache| last.by_files.len().max(last.by_digest.len());
    last.as_ref().map_or(0, number)
}

/// Returns the digest of parts, including their lengths.
pub(super) fn digest<'p>(parts: impl IntoIterator<Item = &'p [u8]>) -> Digest {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part);
    }
    digest.finalize().into()
}

fn last() -> MutexGuard<'static, Option<IdentityCache>> {
    LAST.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Linear searches before the identities of a load are indexed. Most reloads change few certificates and need no index;
/// a changed one takes three searches.
const SEARCHES_MAX: usize = 32;

/// The identities of the last load.
static LAST: Mutex<Option<IdentityCache>> = Mutex::new(None);

#[cfg(test)]
mod tests {
    use tls::{Chain, Key};

    use super::*;

    fn identity() -> Identity {
        let key = rcgen::KeyPair::generate().expect("there is randomness");
        let params = rcgen::CertificateParams::new(["a".to_owned()]).expect("a name");
        let certificate = params.self_signed(&key).expect("it can be signed");
        let chain = Chain::from_pem(certificate.pem().as_bytes()).expect("it is one");
        let key = Key::from_pem(key.serialize_pem().as_bytes(), &[]).expect("it is one");
        Identity::new(chain, &key, None).expect("they belong together")
    }

    fn is_same(found: Option<SoundIdentity>, kept: &Identity) -> bool {
        match found {
            Some(SoundIdentity::Made(found)) => found.place() == kept.place(),
            _ => false,
        }
    }

    #[test]
    fn parts_are_told_apart_by_where_they_end() {
        let one: [&[u8]; 2] = [b"ab", b"c"];
        let other: [&[u8]; 2] = [b"a", b"bc"];
        assert_ne!(digest(one), digest(other));
        assert_eq!(digest(one), digest(one));
    }

    #[test]
    fn an_identity_is_known_while_somebody_has_it_and_a_load_asks_for_it() {
        // One test, because the cache is shared by the process.
        let kept = identity();
        let names: [&[u8]; 4] = [b"kept", b"gone", b"sound", b"none"];
        let [by_kept, by_gone, by_sound, by_none] = names.map(|name| digest([name]));
        let files = [b"certificate", b"another one"].map(|text| Arc::new(text.to_vec()));
        let pair = FilePair::new(&files[0], &files[1]);
        let freed = FilePair::new(&files[1], &files[0]);
        let mut first = IdentityCache::with_room();
        assert!(first.take_over(&pair).is_none() && first.find(&by_kept, false).is_none());
        first.insert(
            by_kept,
            Some(pair.clone()),
            &SoundIdentity::Made(kept.clone()),
        );
        first.insert(
            by_gone,
            Some(freed.clone()),
            &SoundIdentity::Made(identity()),
        );
        first.insert(by_sound, None, &SoundIdentity::Sound);
        assert!(
            is_same(first.find(&by_kept, true), &kept),
            "by the load itself"
        );
        assert!(first.find(&by_none, false).is_none());
        first.remember();
        let mut second = IdentityCache::with_room();
        let equal = FilePair::new(&Arc::new(files[0].to_vec()), &files[1]);
        // Answers do not change when searches have become many.
        for _ in 0..=SEARCHES_MAX {
            assert!(
                second.take_over(&equal).is_none(),
                "other files of the same bytes"
            );
            assert!(second.take_over(&freed).is_none(), "nobody has it");
            assert!(is_same(second.take_over(&pair), &kept));
            for needed in [true, false] {
                assert!(is_same(second.find(&by_kept, needed), &kept));
            }
            for digest in [by_gone, by_sound] {
                assert!(second.find(&digest, true).is_none(), "it has to be made");
                assert!(matches!(
                    second.find(&digest, false),
                    Some(SoundIdentity::Sound)
                ));
            }
            assert!(second.find(&by_none, false).is_none());
        }
        assert!(is_same(second.take_over(&pair), &kept), "again");
        assert_eq!(second.by_files.len(), 1, "one for all servers that have it");
        second.remember();
        // An identity found by its files is also found by its bytes.
        let mut third = IdentityCache::with_room();
        assert!(is_same(third.find(&by_kept, true), &kept));
        assert!(
            third.find(&by_sound, false).is_none(),
            "the last load had none"
        );
        third.insert(by_sound, None, &SoundIdentity::Sound);
        third.remember();
        let mut fourth = IdentityCache::with_room();
        assert!(fourth.take_over(&pair).is_none() && fourth.find(&by_kept, false).is_none());
    }
}
