//! Certificates of a server: their bytes, and those that no client needs.
//!
//! A client needs the path from the server's certificate to one issued by a trusted authority. Absent: checks of signatures,
//! dates and names; clients verify them.
//!
//! Source: RFC 8446 section 4.4.2, RFC 5280 section 4.1.2.

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;

/// A certificate as a server sent it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) bytes: u64,
    /// Names as in RFC 2253; empty if the certificate cannot be parsed.
    pub(super) subject: String,
    pub(super) issuer: String,
    /// Its name and key in DER, which identify an authority.
    pub(super) name_and_key: Vec<u8>,
    /// Whether it is one of the authorities that browsers have: the same name with the same key.
    pub(super) is_authority_of_browsers: bool,
    der: Vec<u8>,
}

/// A certificate that could be left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Needless {
    /// Its place in the chain; 0 is the server's own.
    pub(super) place: usize,
    pub(super) why: &'static str,
}

/// Reads a chain, the server's own certificate first.
pub(super) fn read(certificates: &[Vec<u8>]) -> Vec<Entry> {
    certificates.iter().map(|der| entry(der)).collect()
}

fn entry(der: &[u8]) -> Entry {
    let parsed = tls::Certificate::parse(der);
    let name_and_key = name_and_key(der).unwrap_or_default();
    let known = webpki_roots::TLS_SERVER_ROOTS.iter().any(|root| {
        let both = [root.subject.as_ref(), root.subject_public_key_info.as_ref()].concat();
        !both.is_empty() && both == name_and_key
    });
    Entry {
        bytes: der.len() as u64,
        subject: parsed
            .as_ref()
            .map(tls::Certificate::subject)
            .unwrap_or_default(),
        issuer: parsed
            .as_ref()
            .map(tls::Certificate::issuer)
            .unwrap_or_default(),
        name_and_key,
        is_authority_of_browsers: known,
        der: der.to_vec(),
    }
}

/// Subject and key in DER, as stores of authorities have them.
fn name_and_key(der: &[u8]) -> Option<Vec<u8>> {
    let mut store = RootCertStore::empty();
    store.add(CertificateDer::from(der)).ok()?;
    let anchor = store.roots.first()?;
    Some(
        [
            anchor.subject.as_ref(),
            anchor.subject_public_key_info.as_ref(),
        ]
        .concat(),
    )
}

/// Which certificates could be left out, by their places.
pub(super) fn needless(chain: &[Entry]) -> Vec<Needless> {
    let path = path(chain);
    let why = |place: usize| {
        let one = &chain[place];
        if chain[..place].iter().any(|before| before.der == one.der) {
            return Some("it is included twice");
        }
        if place == 0 || one.subject.is_empty() {
            return None;
        }
        if one.subject == one.issuer {
            return Some("it is a root: clients have it, or do not trust it");
        }
        if one.is_authority_of_browsers {
            return Some("it is cross-signed: browsers have this authority as a root");
        }
        if !path.contains(&place) {
            return Some("it is not on the path from the server's own certificate");
        }
        None
    };
    let all = 0..chain.len();
    all.filter_map(|place| why(place).map(|why| Needless { place, why }))
        .collect()
}

/// The certificates to leave out of the file, a line each.
pub(super) fn fixes(chain: &[Entry], needless: &[Needless]) -> Vec<String> {
    let line = |one: &Needless| {
        let entry = &chain[one.place];
        format!(
            "remove \"{}\" from the ssl_certificate file: {} ({} bytes)",
            short_name(&entry.subject),
            one.why,
            entry.bytes
        )
    };
    needless.iter().map(line).collect()
}

/// A name of a certificate, which may be of any length.
pub(super) fn short_name(name: &str) -> String {
    name.chars().take(NAME_CHARS_MAX).collect()
}

/// Characters of a certificate's name that are shown.
const NAME_CHARS_MAX: usize = 200;

/// Indices of the certificates on the path from the server's own to the last issuer in the chain.
fn path(chain: &[Entry]) -> Vec<usize> {
    let mut path = Vec::new();
    let mut next = (!chain.is_empty()).then_some(0);
    while let Some(place) = next {
        path.push(place);
        let issuer = &chain[place].issuer;
        let mut issuers = (0..chain.len())
            .filter(|other| !path.contains(other) && chain[*other].subject == *issuer);
        let ends = chain[place].subject == *issuer || issuer.is_empty();
        next = if ends { None } else { issuers.next() };
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(subject: &str, issuer: &str) -> Entry {
        Entry {
            bytes: 1000,
            subject: subject.to_owned(),
            issuer: issuer.to_owned(),
            der: format!("{subject} by {issuer}").into_bytes(),
            ..Entry::default()
        }
    }

    fn places(chain: &[Entry]) -> Vec<usize> {
        needless(chain).iter().map(|one| one.place).collect()
    }

    #[test]
    fn root_and_what_leads_nowhere_can_be_left_out() {
        let chain = [
            named("leaf", "one"),
            named("stray", "other"),
            named("one", "root"),
            named("root", "root"),
            named("one", "root"),
        ];
        assert_eq!(places(&chain), [1, 3, 4]);
        assert!(needless(&chain)[2].why.contains("twice"));
        assert!(places(&chain[..1]).is_empty());
        assert!(places(&[]).is_empty());
    }

    #[test]
    fn server_that_issued_its_own_certificate_needs_it() {
        assert!(places(&[named("leaf", "leaf")]).is_empty());
    }

    #[test]
    fn authority_of_browsers_needs_no_other_to_vouch_for_it() {
        let crossed = Entry {
            is_authority_of_browsers: true,
            ..named("new root", "old root")
        };
        let chain = [named("leaf", "one"), named("one", "new root"), crossed];
        assert_eq!(places(&chain), [2]);
        assert!(needless(&chain)[0].why.contains("cross-signed"));
        // Issuers that name each other end.
        let circle = [named("leaf", "a"), named("a", "b"), named("b", "a")];
        assert!(places(&circle).is_empty());
    }

    #[test]
    fn what_is_no_certificate_is_counted_and_never_called_needless() {
        let chain = read(&[vec![0x30, 0], b"nonsense".to_vec()]);
        assert_eq!((chain[0].bytes, chain[1].bytes), (2, 8));
        assert!(places(&chain).is_empty());
        let twice = read(&[b"nonsense".to_vec(), b"nonsense".to_vec()]);
        assert_eq!(places(&twice), [1]);
    }
}
