//! Groups of key exchange, by OpenSSL's names; and P-521, which rustls does not provide.
//!
//! Source: SSL_CTX_set1_groups_list(3); RFC 8446 section 4.2.8.2 for the form of a public key.

use aws_lc_rs::agreement::{self, EphemeralPrivateKey, PublicKey, UnparsedPublicKey};
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::rand::SystemRandom;
use rustls::crypto::aws_lc_rs::kx_group::{
    MLKEM768, MLKEM1024, SECP256R1, SECP256R1MLKEM768, SECP384R1, X25519, X25519MLKEM768,
};
use rustls::crypto::{ActiveKeyExchange, GetRandomFailed, SharedSecret, SupportedKxGroup};
use rustls::ffdhe_groups::FfdheGroup;
use rustls::{Error, NamedGroup, PeerMisbehaved};

/// Groups in order.
#[derive(Clone, Debug)]
pub struct Groups {
    pub(crate) list: Vec<&'static dyn SupportedKxGroup>,
    /// Names of OpenSSL's groups that are not available.
    pub ignored: Vec<String>,
}

impl Default for Groups {
    /// `auto`: the available groups of OpenSSL 3.5, the hybrid one first.
    fn default() -> Self {
        Self {
            list: vec![X25519MLKEM768, X25519, SECP256R1, SECP384R1, &P521],
            ignored: Vec::new(),
        }
    }
}

impl Groups {
    /// Reads a list: `X25519:prime256v1`, `auto`; `None` if OpenSSL does not know a name, or no group is left.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if text == "auto" {
            return Some(Self::default());
        }
        let mut groups = Self {
            list: Vec::new(),
            ignored: Vec::new(),
        };
        for word in text.split([':', '/']) {
            // Newer versions mark groups with a predicted key share (`*`), and optional groups (`?`).
            let name = word.trim_start_matches(['*', '?']);
            let optional = word[..word.len() - name.len()].contains('?');
            let found = GROUPS
                .iter()
                .find(|(known, _)| known.eq_ignore_ascii_case(name));
            match found {
                Some((_, group)) => {
                    if groups.list.iter().all(|other| other.name() != group.name()) {
                        groups.list.push(*group);
                    }
                }
                None if NOT_BUILT
                    .iter()
                    .any(|known| known.eq_ignore_ascii_case(name)) =>
                {
                    groups.ignored.push(name.to_owned());
                }
                None if optional => {}
                None => return None,
            }
        }
        (!groups.list.is_empty()).then_some(groups)
    }
}

const GROUPS: &[(&str, &dyn SupportedKxGroup)] = &[
    ("X25519MLKEM768", X25519MLKEM768),
    ("X25519", X25519),
    ("prime256v1", SECP256R1),
    ("secp256r1", SECP256R1),
    ("P-256", SECP256R1),
    ("secp384r1", SECP384R1),
    ("P-384", SECP384R1),
    ("secp521r1", &P521),
    ("P-521", &P521),
    ("SecP256r1MLKEM768", SECP256R1MLKEM768),
    ("MLKEM768", MLKEM768),
    ("MLKEM1024", MLKEM1024),
];

const NOT_BUILT: &[&str] = &[
    "X448",
    "secp224r1",
    "P-224",
    "secp256k1",
    "sect283k1",
    "sect283r1",
    "sect409k1",
    "sect409r1",
    "sect571k1",
    "sect571r1",
    "brainpoolP256r1",
    "brainpoolP384r1",
    "brainpoolP512r1",
    "ffdhe2048",
    "ffdhe3072",
    "ffdhe4096",
    "ffdhe6144",
    "ffdhe8192",
    "MLKEM512",
    "SecP384r1MLKEM1024",
];

/// Diffie-Hellman on the curve P-521.
#[derive(Debug)]
struct Secp521r1;

static P521: Secp521r1 = Secp521r1;

impl SupportedKxGroup for Secp521r1 {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        let failed = |_: Unspecified| Error::from(GetRandomFailed);
        let key = EphemeralPrivateKey::generate(&agreement::ECDH_P521, &SystemRandom::new())
            .map_err(failed)?;
        let public = key.compute_public_key().map_err(failed)?;
        Ok(Box::new(Exchange { key, public }))
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        None
    }

    fn name(&self) -> NamedGroup {
        NamedGroup::secp521r1
    }
}

struct Exchange {
    key: EphemeralPrivateKey,
    public: PublicKey,
}

impl ActiveKeyExchange for Exchange {
    fn complete(self: Box<Self>, peer: &[u8]) -> Result<SharedSecret, Error> {
        let misbehaved = || Error::from(PeerMisbehaved::InvalidKeyShare);
        if peer.first() != Some(&UNCOMPRESSED_POINT) {
            return Err(misbehaved());
        }
        let peer = UnparsedPublicKey::new(&agreement::ECDH_P521, peer);
        agreement::agree_ephemeral(self.key, peer, Unspecified, |secret| {
            Ok(SharedSecret::from(secret))
        })
        .map_err(|_| misbehaved())
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        None
    }

    fn pub_key(&self) -> &[u8] {
        self.public.as_ref()
    }

    fn group(&self) -> NamedGroup {
        NamedGroup::secp521r1
    }
}

/// First byte of the only form of points in TLS.
const UNCOMPRESSED_POINT: u8 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Option<Vec<NamedGroup>> {
        Groups::parse(text).map(|groups| groups.list.iter().map(|group| group.name()).collect())
    }

    #[test]
    fn groups_have_the_names_of_openssl() {
        assert_eq!(
            names("X25519:prime256v1:P-384:secp521r1"),
            Some(vec![
                NamedGroup::X25519,
                NamedGroup::secp256r1,
                NamedGroup::secp384r1,
                NamedGroup::secp521r1
            ])
        );
        assert_eq!(
            names("x25519mlkem768:P-256:secp256r1").map(|list| list.len()),
            Some(2)
        );
        assert_eq!(
            names("?nonsense:*X25519/P-256").map(|list| list.len()),
            Some(2)
        );
        assert_eq!(names("auto").map(|list| list.len()), Some(5));
    }

    #[test]
    fn groups_that_are_not_built_are_told_and_unknown_ones_refused() {
        let groups = Groups::parse("X448:X25519").expect("one is built");
        assert_eq!(groups.ignored, ["X448"]);
        for wrong in ["X448", "", "nonsense", "X25519:nonsense"] {
            assert!(Groups::parse(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn both_sides_of_p521_find_the_same_secret() {
        let [a, b] = [P521.start(), P521.start()].map(|side| side.expect("there is randomness"));
        let (a_public, b_public) = (a.pub_key().to_vec(), b.pub_key().to_vec());
        let secret = |side: Box<dyn ActiveKeyExchange>, peer: &[u8]| {
            let secret = side.complete(peer).expect("the point is on the curve");
            secret.secret_bytes().to_vec()
        };
        assert_eq!(secret(a, &b_public), secret(b, &a_public));
        let c = P521.start().expect("there is randomness");
        assert!(c.complete(&[UNCOMPRESSED_POINT; 133]).is_err());
        let c = P521.start().expect("there is randomness");
        assert!(c.complete(&a_public[1..]).is_err());
    }
}
