//! Certificates and OCSP responses made for tests.

use aws_lc_rs::digest::{self, SHA1_FOR_LEGACY_USE_ONLY, SHA256};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, CustomExtension, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyPair, SigningKey,
};

use super::super::keys::Chain;
use super::super::verify::Authorities;
use super::super::x509::der::{self, encode};
use super::super::x509::{Certificate, pem};
use super::{OCSP, Question};

pub(super) type Authority = CertifiedIssuer<'static, KeyPair>;

/// A root, one below it, and a server's certificate from that one.
pub(super) struct World {
    pub(super) root: Authority,
    pub(super) issuer: Authority,
    pub(super) server: String,
}

impl World {
    pub(super) fn new() -> Self {
        let root = CertifiedIssuer::self_signed(authority("root"), key()).expect("a root");
        let issuer = CertifiedIssuer::signed_by(authority("issuer"), key(), &root);
        let issuer = issuer.expect("an authority");
        let mut params = named("server");
        let url = encode(0x86, &[b"http://ocsp.test/status"]);
        let access = encode(der::SEQUENCE, &[&encode(der::OID, &[OCSP]), &url]);
        let access = encode(der::SEQUENCE, &[&access]);
        let id = [1, 3, 6, 1, 5, 5, 7, 1, 1];
        let access = CustomExtension::from_oid_content(&id, access);
        params.custom_extensions.push(access);
        let server = params.signed_by(&key(), &issuer).expect("a certificate");
        Self {
            root,
            issuer,
            server: server.pem(),
        }
    }

    /// Returns a server's chain: its certificate, and its issuer's if `whole`.
    pub(super) fn chain(&self, whole: bool) -> Chain {
        let issuer = if whole {
            self.issuer.pem()
        } else {
            String::new()
        };
        Chain::from_pem(format!("{}{issuer}", self.server).as_bytes()).expect("certificates")
    }

    pub(super) fn authorities(&self) -> Authorities {
        let text = self.root.pem() + &self.issuer.pem();
        Authorities::from_pem(text.as_bytes()).expect("certificates")
    }

    pub(super) fn question(&self) -> Question {
        let question = Question::about(&self.chain(true), &Authorities::default());
        question.expect("the issuer is there")
    }

    /// A responder with a certificate made by the issuer, or by another authority.
    pub(super) fn delegate(&self, by: &Authority, usages: Vec<ExtendedKeyUsagePurpose>) -> Signer {
        let mut params = named("responder");
        params.extended_key_usages = usages;
        let key = key();
        let certificate = params.signed_by(&key, by).expect("a certificate");
        Signer {
            certificate: certificate.der().to_vec(),
            key,
        }
    }
}

/// One that signs.
pub(super) struct Signer {
    pub(super) certificate: Vec<u8>,
    pub(super) key: KeyPair,
}

/// Parts of a response.
pub(super) struct Plan<'a> {
    /// The certificate that the signer is named by, DER.
    pub(super) signer: &'a [u8],
    /// By its key, not its name.
    pub(super) by_key: bool,
    pub(super) certificates: Vec<&'a [u8]>,
    pub(super) sha256: bool,
    pub(super) status: &'a [u8],
    pub(super) from: &'a [u8],
    pub(super) until: Option<&'a [u8]>,
    /// Extensions of the whole.
    pub(super) extensions: Vec<u8>,
}

impl<'a> Plan<'a> {
    /// Good from 2024-01-01 to 2024-01-08.
    pub(super) fn good(signer: &'a [u8]) -> Self {
        Self {
            signer,
            by_key: false,
            certificates: Vec::new(),
            sha256: false,
            status: &[0x80, 0],
            from: b"20240101000000Z",
            until: Some(b"20240108000000Z"),
            extensions: Vec::new(),
        }
    }

    /// The response about a question's certificate.
    pub(super) fn sign(&self, question: &Question, key: &KeyPair) -> Vec<u8> {
        let [certificate, issuer] = question
            .certificates()
            .map(|der| Certificate::parse(der).expect("a certificate"));
        let (oid, algorithm): (&[u8], _) = match self.sha256 {
            true => (&[0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 1], &SHA256),
            false => (&[0x2b, 14, 3, 2, 26], &SHA1_FOR_LEGACY_USE_ONLY),
        };
        let octets = |bytes: &[u8]| encode(der::OCTET_STRING, &[bytes]);
        let hash = |bytes| octets(digest::digest(algorithm, bytes).as_ref());
        let sequence = |parts: &[&[u8]]| encode(der::SEQUENCE, parts);
        let time = |text| encode(der::GENERALIZED_TIME, &[text]);
        let id = sequence(&[
            &sequence(&[&encode(der::OID, &[oid]), &[der::NULL, 0]]),
            &hash(certificate.issuer),
            &hash(issuer.key),
            &encode(der::INTEGER, &[certificate.serial]),
        ]);
        let until = self
            .until
            .map(|text| encode(der::context(0), &[&time(text)]));
        let until = until.unwrap_or_default();
        let single = sequence(&[&id, self.status, &time(self.from), &until]);
        let signer = Certificate::parse(self.signer).expect("a certificate");
        let responder = match self.by_key {
            true => {
                let hash = digest::digest(&SHA1_FOR_LEGACY_USE_ONLY, signer.key);
                encode(der::context(2), &[&octets(hash.as_ref())])
            }
            false => encode(der::context(1), &[signer.subject]),
        };
        let extensions = match self.extensions.is_empty() {
            true => Vec::new(),
            false => encode(der::context(1), &[&sequence(&[&self.extensions])]),
        };
        let list = sequence(&[&single]);
        let signed = sequence(&[&responder, &time(self.from), &list, &extensions]);
        let signature = encode(
            der::BIT_STRING,
            &[&[0], &key.sign(&signed).expect("a signature")],
        );
        let algorithm = sequence(&[&encode(der::OID, &[ECDSA_SHA256])]);
        let certificates = match self.certificates.is_empty() {
            true => Vec::new(),
            false => encode(der::context(0), &[&sequence(&self.certificates)]),
        };
        let basic = sequence(&[&signed, &algorithm, &signature, &certificates]);
        let basic = sequence(&[&encode(der::OID, &[BASIC]), &octets(&basic)]);
        sequence(&[&[0x0a, 1, 0], &encode(der::context(0), &[&basic])])
    }
}

/// The certificates of a PEM text, DER.
pub(super) fn der_of(text: &str) -> Vec<u8> {
    pem::parts(text.as_bytes()).expect("PEM").remove(0).der
}

fn key() -> KeyPair {
    KeyPair::generate().expect("a key")
}

fn named(name: &str) -> CertificateParams {
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

fn authority(name: &str) -> CertificateParams {
    let mut params = named(name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
}

const BASIC: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 48, 1, 1];
/// `ecdsa-with-SHA256`.
const ECDSA_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2];
