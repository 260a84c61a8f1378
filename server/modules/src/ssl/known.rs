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

/// An identity in the table of a load. The table is kept for the next load, for which it is that of the last one.
pub(super) enum Remembered {
    /// The load that is going on has it.
    Asked(SoundIdentity),
    /// The last load made it.
    Made(WeakIdentity),
    /// The last load found it sound.
    Sound,
}

impl Remembered {
    /// The identity that the load itself has asked for.
    pub(super) fn asked(&self) -> Option<&SoundIdentity> {
        match self {
            Self::Asked(identity) => Some(identity),
            Self::Made(_) | Self::Sound => None,
        }
    }

    /// The identity as the next load finds it: to remember one keeps none in memory.
    fn let_go(&mut self) {
        *self = match self {
            Self::Asked(SoundIdentity::Made(identity)) => Self::Made(identity.downgrade()),
            Self::Asked(SoundIdentity::Sound) | Self::Sound => Self::Sound,
            Self::Made(_) => return,
        };
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

/// The digest of files that the last load had, too, where nothing else is part of it: they are not read through again.
pub(super) fn digest_of(texts: &Texts) -> Option<Digest> {
    table().as_ref()?.digests.get(texts).copied()
}

/// The identity of these bytes, if it was verified before; one that has been freed is returned only if it is not
/// `needed`.
pub(super) fn find(digest: &Digest, needed: bool) -> Option<SoundIdentity> {
    let table = table();
    let identity = match table.as_ref()?.identities.get(digest)? {
        Remembered::Made(identity) => identity.upgrade(),
        Remembered::Sound | Remembered::Asked(_) => None,
    };
    match identity {
        Some(identity) => Some(SoundIdentity::Made(identity)),
        None => (!needed).then_some(SoundIdentity::Sound),
    }
}

/// Number of identities that the last load had.
pub(super) fn count() -> usize {
    table().as_ref().map_or(0, |table| table.identities.len())
}

/// Remembers what a configuration has, and nothing else.
pub(super) fn replace(
    mut identities: HashMap<Digest, Remembered>,
    digests: HashMap<Texts, Digest>,
) {
    identities.values_mut().for_each(Remembered::let_go);
    *table() = Some(Table {
        identities,
        digests,
    });
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

fn table() -> MutexGuard<'static, Option<Table>> {
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Table {
    /// By digest.
    identities: HashMap<Digest, Remembered>,
    /// By the files, where nothing else is part of an identity.
    digests: HashMap<Texts, Digest>,
}

static TABLE: Mutex<Option<Table>> = Mutex::new(None);

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
        let names: [&[u8]; 3] = [b"kept", b"gone", b"sound"];
        let [by_kept, by_gone, by_sound] = names.map(|name| digest([name]));
        let all = HashMap::from([
            (by_kept, SoundIdentity::Made(kept.clone())),
            (by_gone, SoundIdentity::Made(identity())),
            (by_sound, SoundIdentity::Sound),
        ]);
        let all = all.into_iter();
        let all = all.map(|(digest, identity)| (digest, Remembered::Asked(identity)));
        let texts = [b"certificate", b"another one"].map(|text| Arc::new(text.to_vec()));
        let pair = Texts::new(&texts[0], &texts[1]);
        replace(all.collect(), HashMap::from([(pair.clone(), by_kept)]));
        assert_eq!(digest_of(&pair), Some(by_kept));
        let equal = Texts::new(&Arc::new(texts[0].to_vec()), &texts[1]);
        assert_eq!(digest_of(&equal), None, "other files of the same bytes");
        let is_kept = |needed| match find(&by_kept, needed) {
            Some(SoundIdentity::Made(found)) => found.place() == kept.place(),
            _ => false,
        };
        assert!(is_kept(true) && is_kept(false));
        for digest in [by_gone, by_sound] {
            assert!(find(&digest, true).is_none(), "it has to be made");
            assert!(matches!(find(&digest, false), Some(SoundIdentity::Sound)));
        }
        replace(
            HashMap::from([(by_sound, Remembered::Asked(SoundIdentity::Sound))]),
            HashMap::new(),
        );
        assert_eq!(digest_of(&pair), None);
        assert!(find(&by_kept, false).is_none(), "the last load had none");
    }
}
