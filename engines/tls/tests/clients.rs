//! Verification of clients' certificates, in OpenSSL's words.

mod pair;

use std::sync::Arc;

use pair::{
    Authority, Leaf, OneKey, Pair, Wishes, build, client, client_config, client_with, intermediate,
    root, self_signed, settings, v1,
};
use rcgen::{
    CertificateRevocationListParams, ExtendedKeyUsagePurpose, GeneralSubtree, KeyUsagePurpose,
    NameConstraints, RevokedCertParams, SerialNumber, date_time_ymd,
};
use tls::{Authorities, ClientAuth, ClientCertError, ClientMode, Config, Crl, Settings, Verified};

const TLS12: &[&rustls::SupportedProtocolVersion] = &[&rustls::version::TLS12];
const TLS13: &[&rustls::SupportedProtocolVersion] = &[&rustls::version::TLS13];

fn authorities(list: &[&Authority]) -> Authorities {
    let text: String = list.iter().map(|authority| authority.pem()).collect();
    match text.is_empty() {
        true => Authorities::default(),
        false => Authorities::from_pem(text.as_bytes()).expect("they are certificates"),
    }
}

fn asks(told: &[&Authority]) -> ClientAuth {
    ClientAuth {
        mode: ClientMode::Required,
        told: authorities(told),
        trusted: Authorities::default(),
        crls: Vec::new(),
        depth: 1,
    }
}

fn server(client: ClientAuth) -> Arc<Config> {
    build(Settings {
        client: Some(Arc::new(client)),
        ..settings("localhost")
    })
}

/// The verdict on certificates: `SUCCESS`, `NONE`, or the reason.
fn verdict(client: ClientAuth, sent: &[&[u8]]) -> String {
    let sent: Vec<Vec<u8>> = sent.iter().map(|der| der.to_vec()).collect();
    match server(client).verify(&sent) {
        Verified::None => "NONE".to_owned(),
        Verified::Success => "SUCCESS".to_owned(),
        Verified::Failed(reason) => reason.to_string(),
    }
}

#[test]
fn a_certificate_of_a_trusted_authority_is_trusted() {
    let authority = root("Authority");
    let leaf = client("client", &authority);
    assert_eq!(verdict(asks(&[&authority]), &[&leaf.der]), "SUCCESS");
    assert_eq!(verdict(asks(&[&authority]), &[]), "NONE");
    let mut untold = asks(&[]);
    untold.trusted = authorities(&[&authority]);
    assert_eq!(verdict(untold, &[&leaf.der]), "SUCCESS");
}

#[test]
fn certificates_of_version_1_are_trusted_as_well() {
    let authority = root("Authority");
    let leaf = v1::client("client", "Authority", &authority);
    assert_eq!(verdict(asks(&[&authority]), &[&leaf.der]), "SUCCESS");
    let mut forged = leaf.der;
    let at = forged
        .windows(6)
        .position(|part| part == b"client")
        .expect("its name");
    forged[at] = b'k';
    let reason = "certificate signature failure";
    assert_eq!(verdict(asks(&[&authority]), &[&forged]), reason);
}

#[test]
fn an_unknown_issuer_is_named_as_openssl_does() {
    let (authority, other) = (root("Authority"), root("Other"));
    let below = intermediate("Below", &authority);
    let leaf = client("client", &below);
    let own = self_signed("own", &rcgen::PKCS_ECDSA_P256_SHA256);
    let all = |sent: &[&[u8]]| verdict(asks(&[&other]), sent);
    assert_eq!(all(&[&own.der]), "self-signed certificate");
    assert_eq!(all(&[&leaf.der]), "unable to verify the first certificate");
    assert_eq!(
        all(&[&leaf.der, below.der()]),
        "unable to get local issuer certificate"
    );
    let mut deep = asks(&[&other]);
    deep.depth = 2;
    assert_eq!(
        verdict(deep, &[&leaf.der, below.der(), authority.der()]),
        "self-signed certificate in certificate chain"
    );
    // Only the lower one is trusted: OpenSSL wants the root.
    assert_eq!(
        verdict(asks(&[&below]), &[&leaf.der]),
        "unable to get issuer certificate"
    );
}

#[test]
fn the_same_name_with_another_key_is_another_authority() {
    let (authority, forger) = (root("Authority"), root("Authority"));
    let leaf = client("client", &forger);
    let refused = verdict(asks(&[&authority]), &[&leaf.der]);
    assert_ne!(refused, "SUCCESS");
    let refused = verdict(asks(&[&authority]), &[&leaf.der, forger.der()]);
    assert_ne!(refused, "SUCCESS");
}

#[test]
fn a_path_is_as_long_as_allowed_and_no_longer() {
    let top = root("Top");
    let below = intermediate("Below", &top);
    let lowest = intermediate("Lowest", &below);
    let leaf = client("client", &lowest);
    let sent: [&[u8]; 3] = [&leaf.der, lowest.der(), below.der()];
    let at = |depth| {
        verdict(
            ClientAuth {
                depth,
                ..asks(&[&top])
            },
            &sent,
        )
    };
    assert_eq!(at(1), "unable to get local issuer certificate");
    assert_eq!(at(2), "SUCCESS");
    let near = client("client", &below);
    let sent: [&[u8]; 2] = [&near.der, below.der()];
    assert_eq!(verdict(asks(&[&top]), &sent), "SUCCESS");
    let zero = ClientAuth {
        depth: 0,
        ..asks(&[&top])
    };
    assert_ne!(verdict(zero, &sent), "SUCCESS");
}

#[test]
fn times_count() {
    let authority = root("Authority");
    let over = client_with("over", &authority, |params| {
        params.not_before = date_time_ymd(2000, 1, 1);
        params.not_after = date_time_ymd(2001, 1, 1);
    });
    let coming = client_with("coming", &authority, |params| {
        params.not_before = date_time_ymd(4000, 1, 1);
    });
    let verdict = |leaf: &Leaf| verdict(asks(&[&authority]), &[&leaf.der]);
    assert_eq!(verdict(&over), "certificate has expired");
    assert_eq!(verdict(&coming), "certificate is not yet valid");
}

#[test]
fn purposes_count() {
    let authority = root("Authority");
    let with = |purposes: &[ExtendedKeyUsagePurpose], usages: &[KeyUsagePurpose]| {
        let leaf = client_with("client", &authority, |params| {
            params.extended_key_usages = purposes.to_vec();
            params.key_usages = usages.to_vec();
        });
        verdict(asks(&[&authority]), &[&leaf.der])
    };
    let wrong = "unsuitable certificate purpose";
    assert_eq!(with(&[], &[]), "SUCCESS");
    assert_eq!(with(&[ExtendedKeyUsagePurpose::ServerAuth], &[]), wrong);
    assert_eq!(with(&[ExtendedKeyUsagePurpose::Any], &[]), wrong);
    assert_eq!(with(&[], &[KeyUsagePurpose::KeyEncipherment]), wrong);
    assert_eq!(with(&[], &[KeyUsagePurpose::DigitalSignature]), "SUCCESS");
}

#[test]
fn a_certificate_that_is_no_authoritys_issues_none() {
    let authority = root("Authority");
    let params = rcgen::CertificateParams::new(["no authority".to_owned()]).expect("a name");
    let key = rcgen::KeyPair::generate().expect("there is randomness");
    let pretender = rcgen::CertifiedIssuer::signed_by(params, key, &authority);
    let pretender = pretender.expect("it can be signed");
    let leaf = client("client", &pretender);
    assert_eq!(
        verdict(asks(&[&authority]), &[&leaf.der, pretender.der()]),
        "unsuitable certificate purpose"
    );
}

fn crl(issuer: &Authority, revoked: &[u8], until_year: i32) -> Crl {
    let revoked = revoked.iter().map(|serial| RevokedCertParams {
        serial_number: SerialNumber::from_slice(&[*serial]),
        revocation_time: date_time_ymd(2020, 1, 1),
        reason_code: None,
        invalidity_date: None,
    });
    let params = CertificateRevocationListParams {
        this_update: date_time_ymd(2020, 1, 1),
        next_update: date_time_ymd(until_year, 1, 1),
        crl_number: SerialNumber::from_slice(&[1]),
        issuing_distribution_point: None,
        revoked_certs: revoked.collect(),
        key_identifier_method: rcgen::KeyIdMethod::Sha256,
    };
    let list = params.signed_by(issuer).expect("it can be signed");
    let pem = list.pem().expect("it can be written");
    Crl::from_pem(pem.as_bytes())
        .expect("it is a list")
        .remove(0)
}

#[test]
fn a_revoked_certificate_is_refused() {
    let (authority, other) = (root("Authority"), root("Other"));
    let leaf = client_with("client", &authority, |params| {
        params.serial_number = Some(SerialNumber::from_slice(&[7]));
    });
    let with = |list: Crl| {
        let asks = ClientAuth {
            crls: vec![list],
            ..asks(&[&authority])
        };
        verdict(asks, &[&leaf.der])
    };
    assert_eq!(with(crl(&authority, &[6, 8], 4000)), "SUCCESS");
    assert_eq!(with(crl(&authority, &[6, 7], 4000)), "certificate revoked");
    assert_eq!(with(crl(&authority, &[], 2021)), "CRL has expired");
    assert_eq!(
        with(crl(&other, &[], 4000)),
        "unable to get certificate CRL"
    );
    let forged = root("Authority");
    assert_eq!(with(crl(&forged, &[], 4000)), "CRL signature failure");
}

#[test]
fn limits_of_names_are_kept() {
    let authority = root("Authority");
    let mut params = rcgen::CertificateParams::new(Vec::<String>::new()).expect("no names");
    params
        .distinguished_name
        .push(rcgen::DnType::CommonName, "Limited");
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params.name_constraints = Some(NameConstraints {
        permitted_subtrees: vec![GeneralSubtree::DnsName("example.com".to_owned())],
        excluded_subtrees: Vec::new(),
    });
    let key = rcgen::KeyPair::generate().expect("there is randomness");
    let limited = rcgen::CertifiedIssuer::signed_by(params, key, &authority);
    let limited = limited.expect("it can be signed");
    let of = |name| {
        let leaf = client(name, &limited);
        verdict(asks(&[&authority]), &[&leaf.der, limited.der()])
    };
    assert_eq!(of("a.example.com"), "SUCCESS");
    assert_eq!(of("a.example.org"), "permitted subtree violation");
}

#[test]
fn modes_decide_what_becomes_of_a_verdict() {
    let authority = root("Authority");
    let own = self_signed("own", &rcgen::PKCS_ECDSA_P256_SHA256).der;
    let over = client_with("over", &authority, |params| {
        params.not_before = date_time_ymd(2000, 1, 1);
        params.not_after = date_time_ymd(2001, 1, 1);
    });
    let becomes = |mode, sent: &[Vec<u8>]| {
        let server = server(ClientAuth {
            mode,
            ..asks(&[&authority])
        });
        server.refuses(server.verify(sent))
    };
    let is_bad = |refusal| matches!(refusal, Some(ClientCertError::BadCertificate(_)));
    use ClientMode::{Optional, OptionalNoCa, Required};
    assert_eq!(becomes(Required, &[]), Some(ClientCertError::NoCertificate));
    assert_eq!(becomes(Optional, &[]), None);
    assert_eq!(becomes(OptionalNoCa, &[]), None);
    assert!(is_bad(becomes(Required, std::slice::from_ref(&own))));
    assert!(is_bad(becomes(Optional, std::slice::from_ref(&own))));
    assert_eq!(becomes(OptionalNoCa, &[own]), None);
    assert!(is_bad(becomes(OptionalNoCa, &[over.der])));
}

#[test]
fn a_handshake_takes_any_certificate_and_a_resumed_one_remembers_it() {
    let authority = root("Authority");
    let server = build(Settings {
        client: Some(Arc::new(asks(&[&authority]))),
        tickets: Some(OneKey::ring()),
        ..settings("localhost")
    });
    let trusted = client("client", &authority);
    let own = self_signed("own", &rcgen::PKCS_RSA_SHA256);
    for (leaf, expected) in [(&trusted, true), (&own, false)] {
        for versions in [TLS12, TLS13] {
            let client = client_config(Wishes {
                versions,
                certificate: Some(leaf.clone()),
                ..Wishes::default()
            });
            for resumed in [false, true] {
                let pair = Pair::shake(&client, &server, "localhost").expect("any is taken");
                let info = pair.server.info().expect("it is open");
                assert_eq!(info.resumed, resumed);
                assert_eq!(info.certificates, std::slice::from_ref(&leaf.der));
                let verified = server.verify(&info.certificates);
                assert_eq!(verified == Verified::Success, expected);
            }
        }
    }
}

#[test]
fn a_session_without_a_certificate_is_none_where_one_is_asked_for() {
    let authority = root("Authority");
    let ring = OneKey::ring();
    let plain = settings("localhost");
    let asking = Settings {
        client: Some(Arc::new(asks(&[&authority]))),
        tickets: Some(Arc::clone(&ring)),
        ..plain.clone()
    };
    let (open, asking) = (
        build(Settings {
            tickets: Some(ring),
            ..plain
        }),
        build(asking),
    );
    let client = client_config(Wishes::default());
    Pair::shake(&client, &open, "localhost").expect("they agree");
    let pair = Pair::shake(&client, &asking, "localhost").expect("they agree");
    assert!(!pair.server.info().expect("it is open").resumed);
    assert!(!asking.has_policy_of(&open));
}
