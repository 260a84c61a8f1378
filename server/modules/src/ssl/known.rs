//! Certificates with their keys that this process has verified and still uses.
//!
//! They are identified by a digest of the bytes they were made of, so nothing old can be taken for something new, whatever the file
//! is called and however it came about. A reload takes those over whose bytes are the same, and makes the others. Who only
//! checks (the supervisor) keeps none: for it a digest says enough. A load that succeeds forgets what it did not ask for.

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
    /// It is sound, and was not needed.
    Sound,
}

/// An identity in a table. To remember one keeps none in memory.
#[derive(Clone)]
enum Remembered {
    /// It was made.
    Made(WeakIdentity),
    /// It was found sound.
    Sound,
}

impl Remembered {
    fn new(identity: &SoundIdentity) -> Self {
        match identity {
            SoundIdentity::Made(identity) => Self::Made(identity.downgrade()),
            SoundIdentity::Sound => Self::Sound,
        }
    }

    /// The identity; one that has been freed is returned only if it is not `needed`.
    fn found(&self, needed: bool) -> Option<SoundIdentity> {
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

/// A certificate and its key as they were read. No other files are at the same place as long as it is there.
#[derive(Clone)]
pub(super) struct Texts([Arc<Vec<u8>>; 2]);

impl Texts {
    pub(super) fn new(certificate: &Arc<Vec<u8>>, key: &Arc<Vec<u8>>) -> Self {
        Self([Arc::clone(certificate), Arc::clone(key)])
    }

    fn place(&self) -> [usize; 2] {
        self.0.each_ref().map(|text| Arc::as_ptr(text).addr())
    }
}

impl PartialEq for Texts {
    fn eq(&self, other: &Self) -> bool {
        self.place() == other.place()
    }
}

impl Eq for Texts {}

impl Hash for Texts {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.place().hash(state);
    }
}

/// The identities of a load.
#[derive(Default)]
pub(super) struct Table {
    /// Those that nothing else than files is part of, in the order in which they were asked for.
    by_texts: Vec<OfTexts>,
    /// Those that were not found by their files.
    by_digest: HashMap<Digest, Remembered>,
    /// The number of the one of the last load that is expected next: a load asks as the last one did.
    next: usize,
    /// How often those of `by_texts` have been searched through, by their files or by digest.
    searches: usize,
    /// The numbers of those of `by_texts`, made when many searches come.
    numbers: HashMap<Texts, usize>,
    /// `by_digest` has those of `by_texts`, too.
    is_complete: bool,
}

/// An identity that nothing else than two files is part of.
#[derive(Clone)]
struct OfTexts {
    texts: Texts,
    digest: Digest,
    remembered: Remembered,
}

impl Table {
    /// An empty one with room for as many identities as the last load had.
    pub(super) fn with_room() -> Self {
        Self {
            by_texts: Vec::with_capacity(count()),
            ..Self::default()
        }
    }

    /// The identity of files that the last load had, too, where nothing else is part of it: they are not read through again.
    pub(super) fn take_over(&mut self, texts: &Texts) -> Option<SoundIdentity> {
        let (kept, found) = {
            let mut last = last();
            let last = last.as_mut()?;
            let number = last.number(self.next, texts)?;
            self.next = number + 1;
            let kept = &last.by_texts[number];
            (kept.clone(), kept.remembered.found(true)?)
        };
        self.push(kept);
        Some(found)
    }

    /// The number of the identity of these files, which is expected to be `next`.
    fn number(&mut self, next: usize, texts: &Texts) -> Option<usize> {
        let expected = self.by_texts.get(next);
        if expected.is_some_and(|expected| expected.texts == *texts) {
            return Some(next);
        }
        if self.may_search() {
            return self.by_texts.iter().position(|of| of.texts == *texts);
        }
        if self.numbers.is_empty() {
            let all = self.by_texts.iter().enumerate();
            self.numbers = all.map(|(n, of)| (of.texts.clone(), n)).collect();
        }
        self.numbers.get(texts).copied()
    }

    /// Whether those of `by_texts` may be searched through once more, which counts as a search; else a table is made.
    fn may_search(&mut self) -> bool {
        self.searches += 1;
        self.searches <= SEARCHES_MAX
    }

    /// Adds one that many servers may ask for in turn.
    fn push(&mut self, of: OfTexts) {
        if self
            .by_texts
            .last()
            .is_none_or(|last| last.texts != of.texts)
        {
            self.by_texts.push(of);
        }
    }

    /// The identity of these bytes, if it was verified in this load or the last one and is still there; one that has been
    /// freed is returned only if it is not `needed`.
    pub(super) fn find(&self, digest: &Digest, needed: bool) -> Option<SoundIdentity> {
        let own = self.by_digest.get(digest);
        own.and_then(|own| own.found(needed)).or_else(|| {
            let mut last = last();
            last.as_mut()?.remembered(digest)?.found(needed)
        })
    }

    /// Notes an identity by the digest of its bytes, and by its files where nothing else is part of it.
    pub(super) fn insert(&mut self, digest: Digest, texts: Option<Texts>, found: &SoundIdentity) {
        let remembered = Remembered::new(found);
        if let Some(texts) = texts {
            self.push(OfTexts {
                texts,
                digest,
                remembered: remembered.clone(),
            });
        }
        self.by_digest.insert(digest, remembered);
    }

    /// Makes the table the one of the last load: what is not in it is forgotten.
    pub(super) fn remember(self) {
        *last() = Some(self);
    }

    /// The identity of these bytes.
    fn remembered(&mut self, digest: &Digest) -> Option<&Remembered> {
        if !self.is_complete && self.may_search() {
            let of_texts = self.by_texts.iter().find(|of| of.digest == *digest);
            let of_texts = of_texts.map(|of| &of.remembered);
            return of_texts.or_else(|| self.by_digest.get(digest));
        }
        if !self.is_complete {
            let all = self.by_texts.iter();
            let all = all.map(|of| (of.digest, of.remembered.clone()));
            self.by_digest.extend(all);
            self.is_complete = true;
        }
        self.by_digest.get(digest)
    }
}

/// Number of identities that the last load had.
pub(super) fn count() -> usize {
    let last = last();
    let number = |last: &Table| last.by_texts.len().max(last.by_digest.len());
    last.as_ref().map_or(0, number)
}

/// A digest of parts: where each ends is part of it.
pub(super) fn digest<'p>(parts: impl IntoIterator<Item = &'p [u8]>) -> Digest {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part);
    }
    digest.finalize().into()
}

fn last() -> MutexGuard<'static, Option<Table>> {
    LAST.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Searches through the identities of a load before they are put into a table: most reloads change few certificates, for which
/// a table of all the others would be made. A changed one takes three.
const SEARCHES_MAX: usize = 32;

/// The identities of the last load.
static LAST: Mutex<Option<Table>> = Mutex::new(None);

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
        // One test, because the table is the process's.
        let kept = identity();
        let names: [&[u8]; 4] = [b"kept", b"gone", b"sound", b"none"];
        let [by_kept, by_gone, by_sound, by_none] = names.map(|name| digest([name]));
        let files = [b"certificate", b"another one"].map(|text| Arc::new(text.to_vec()));
        let pair = Texts::new(&files[0], &files[1]);
        let freed = Texts::new(&files[1], &files[0]);
        let mut first = Table::with_room();
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
        let mut second = Table::with_room();
        let equal = Texts::new(&Arc::new(files[0].to_vec()), &files[1]);
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
        assert_eq!(second.by_texts.len(), 1, "one for all servers that have it");
        second.remember();
        // What was taken over by its files is found by its bytes, too.
        let mut third = Table::with_room();
        assert!(is_same(third.find(&by_kept, true), &kept));
        assert!(
            third.find(&by_sound, false).is_none(),
            "the last load had none"
        );
        third.insert(by_sound, None, &SoundIdentity::Sound);
        third.remember();
        let mut fourth = Table::with_room();
        assert!(fourth.take_over(&pair).is_none() && fourth.find(&by_kept, false).is_none());
    }
}
