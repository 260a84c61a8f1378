//! Certificate chains with a Certificate message of a chosen size.
//!
//! A chain is that of a public server: its own certificate and two intermediate ones, without the root. Further names
//! of the server make it as large as required; they compress worse than real ones. Source: RFC 8446 section 4.4.2.

use rcgen::{
    BasicConstraints, Certificate, CertificateParams, CertifiedIssuer, DistinguishedName, DnType,
    IsCa, KeyPair, KeyUsagePurpose, RsaKeySize,
};

/// Signing key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Algorithm {
    /// ECDSA with P-256.
    Ecdsa,
    /// RSA of 2048 bits.
    Rsa,
}

/// A server's certificates and its key, PEM.
#[derive(Clone, Debug)]
pub(crate) struct Chain {
    pub(crate) certificates: String,
    pub(crate) key: String,
    /// The Certificate message of TLS 1.3 with its header.
    pub(crate) message_bytes: usize,
}

/// Issues chains of one algorithm.
pub(crate) struct Issuer {
    intermediates: Vec<Certificate>,
    last: CertifiedIssuer<'static, KeyPair>,
    key: KeyPair,
}

impl Issuer {
    /// An authority with this many intermediate certificates.
    pub(crate) fn new(algorithm: Algorithm, intermediates: usize) -> Self {
        let mut last =
            CertifiedIssuer::self_signed(authority(0), key(algorithm)).expect("it can be signed");
        let mut chain = Vec::new();
        for n in 1..=intermediates {
            last = CertifiedIssuer::signed_by(authority(n), key(algorithm), &last)
                .expect("it can be signed");
            chain.insert(0, last.as_ref().clone());
        }
        Self {
            intermediates: chain,
            last,
            key: key(algorithm),
        }
    }

    /// A chain for this name with a message of about this many bytes.
    pub(crate) fn chain(&self, name: &str, message_bytes: usize) -> Chain {
        let mut names = vec![name.to_owned()];
        loop {
            let leaf = self.leaf(&names);
            let found = self.message_bytes(&leaf);
            // A further name has a tag and a length besides its text.
            let missing = message_bytes.saturating_sub(found) / (further(0).len() + 2);
            if missing == 0 {
                return self.finished(&leaf, found);
            }
            let so_far = names.len();
            names.extend((so_far..so_far + missing).map(further));
        }
    }

    fn leaf(&self, names: &[String]) -> Certificate {
        let mut params = CertificateParams::new(names).expect("host names");
        params.distinguished_name = common_name(&names[0]);
        params
            .signed_by(&self.key, &self.last)
            .expect("it can be signed")
    }

    fn message_bytes(&self, leaf: &Certificate) -> usize {
        let sent = std::iter::once(leaf).chain(&self.intermediates);
        // The handshake's header, an empty context, the list's length; with each a length and no extensions.
        4 + 1 + 3 + sent.map(|one| 3 + one.der().len() + 2).sum::<usize>()
    }

    fn finished(&self, leaf: &Certificate, message_bytes: usize) -> Chain {
        let sent = std::iter::once(leaf).chain(&self.intermediates);
        Chain {
            certificates: sent.map(Certificate::pem).collect(),
            key: self.key.serialize_pem(),
            message_bytes,
        }
    }
}

fn key(algorithm: Algorithm) -> KeyPair {
    let made = match algorithm {
        Algorithm::Ecdsa => KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256),
        Algorithm::Rsa => KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, RsaKeySize::_2048),
    };
    made.expect("the algorithm is built")
}

fn common_name(name: &str) -> DistinguishedName {
    let mut names = DistinguishedName::new();
    names.push(DnType::CommonName, name);
    names
}

fn authority(n: usize) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = common_name(&format!("Authority {n}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params
}

/// A name of constant length, half of it pseudo-random.
fn further(n: usize) -> String {
    // Knuth's multiplicative hash (The Art of Computer Programming, section 6.4).
    let mixed = (n as u32).wrapping_mul(2_654_435_761);
    format!("{mixed:08x}.example.org")
}
