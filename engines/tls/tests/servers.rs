//! The client role with the settings of a configuration: trust in servers, names, certificates of ours, sessions.
//!
//! Source: nginx documentation, `proxy_ssl_*`; X509_check_host(3).

mod pair;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pair::{Authority, Leaf, OneKey, build, client, client_with, identity, intermediate, root, v1};
use rcgen::{
    CertificateParams, CertificateRevocationListParams, ExtendedKeyUsagePurpose, GeneralSubtree,
    KeyUsagePurpose, NameConstraints, RevokedCertParams, SanType, SerialNumber, date_time_ymd,
};
use tls::{
    Authorities, Chain, Ciphers, ClientAuth, ClientConfig, ClientConn, ClientMode, ClientSettings,
    Config, Conn, Crl, Fault, Identity, Key, KeyLog, PolicyDigest, ServerAuth, ServerName,
    Settings, Versions,
};

fn auth(authority: &Authority) -> ServerAuth {
    ServerAuth {
        trusted: Authorities::from_pem(authority.pem().as_bytes()).expect("it is one"),
        crls: Vec::new(),
        depth: 1,
    }
}

fn settings(auth: Option<ServerAuth>) -> ClientSettings {
    ClientSettings {
        ciphers: Ciphers::parse("HIGH").expect("it chooses some"),
        auth,
        ..ClientSettings::default()
    }
}

fn made(settings: ClientSettings) -> (ClientConfig, PolicyDigest) {
    settings.build().expect("the settings go together")
}

fn server(identity: Identity) -> Settings {
    Settings {
        identities: vec![identity],
        ciphers: Ciphers::parse("HIGH").expect("it chooses some"),
        tickets: Some(OneKey::ring()),
        ..Settings::default()
    }
}

/// Shakes hands with a server at an address. Returns both ends.
fn shake(
    client: &ClientConfig,
    config: &Arc<Config>,
    name: &str,
    peer: u64,
) -> Result<(ClientConn, Conn), Fault> {
    let name = ServerName::try_from(name.to_owned()).expect("a name");
    let mut client = ClientConn::to_peer(client, name, peer).expect("they go together");
    let mut server = Conn::new();
    loop {
        let (mut up, mut down) = (client.take_output(), server.take_output());
        if up.is_empty() && down.is_empty() {
            return Ok((client, server));
        }
        server.receive(&mut up, &mut |_| {})?;
        if server.hello().is_some() {
            server.start(config, &[], &mut |_| {})?;
        }
        client.receive(&mut down, &mut |_| {})?;
    }
}

/// The verdict on a server's certificate for a name: "" or the text of the log.
fn verdict(auth: ServerAuth, shown: Identity, name: &str) -> String {
    let config = build(server(shown));
    let mut verdicts: Vec<String> = Vec::new();
    for versions in [Versions::Tls12, Versions::Tls13] {
        let (client, _) = made(ClientSettings {
            versions,
            ..settings(Some(auth.clone()))
        });
        verdicts.push(match shake(&client, &config, name, 1) {
            Ok((client, _)) => {
                assert!(client.is_open());
                String::new()
            }
            Err(fault @ Fault::Server(_)) => fault.to_string(),
            Err(fault) => panic!("{fault}"),
        });
    }
    assert_eq!(verdicts[0], verdicts[1], "both versions");
    verdicts.remove(0)
}

/// A server's certificate with changed parameters.
fn site(by: &Authority, name: &str, change: impl FnOnce(&mut CertificateParams)) -> Leaf {
    client_with(name, by, |params| {
        params.extended_key_usages = Vec::new();
        change(params);
    })
}

fn untrusted(number: u32, reason: &str) -> String {
    format!("upstream SSL certificate verify error: ({number}:{reason})")
}

fn wrong_name(name: &str) -> String {
    format!("upstream SSL certificate does not match \"{name}\"")
}

#[test]
fn server_of_a_trusted_authority_is_trusted_for_its_names() {
    let authority = root("Authority");
    let leaf = site(&authority, "a.test", |params| {
        let more = [
            SanType::DnsName("*.b.test".try_into().expect("ASCII")),
            SanType::IpAddress([127, 0, 0, 1].into()),
            SanType::IpAddress("::1".parse().expect("an address")),
        ];
        params.subject_alt_names.extend(more);
    });
    let verdict = |name: &str| verdict(auth(&authority), identity(&leaf), name);
    for name in ["a.test", "A.TEST", "x.b.test", "127.0.0.1", "::1"] {
        assert_eq!(verdict(name), "", "{name}");
    }
    for name in ["b.test", "x.y.b.test", "a.a.test", "127.0.0.2", "::2"] {
        assert_eq!(verdict(name), wrong_name(name));
    }
}

#[test]
fn common_name_counts_without_other_names() {
    let authority = root("Authority");
    let without = site(&authority, "a.test", |params| {
        params.subject_alt_names.clear()
    });
    let verdict = |name: &str| verdict(auth(&authority), identity(&without), name);
    assert_eq!(verdict("a.test"), "");
    assert_eq!(verdict("b.test"), wrong_name("b.test"));
}

#[test]
fn certificate_of_version_1_is_trusted_as_well() {
    let authority = root("Authority");
    let leaf = v1::client("a.test", "Authority", &authority);
    let text = v1::der::pem("CERTIFICATE", &leaf.der, "\n");
    let chain = Chain::from_pem(text.as_bytes()).expect("it is one");
    let key = Key::from_pem(leaf.key.as_bytes(), &[]).expect("it is a key");
    let shown = Identity::new(chain, &key, None).expect("they belong together");
    assert_eq!(verdict(auth(&authority), shown.clone(), "a.test"), "");
    let others = verdict(auth(&root("Others")), shown, "a.test");
    assert_eq!(
        others,
        untrusted(21, "unable to verify the first certificate")
    );
}

#[test]
fn untrusted_server_is_named_with_the_reason() {
    let (authority, others) = (root("Authority"), root("Others"));
    let of = |leaf: &Leaf, by: &Authority| verdict(auth(by), identity(leaf), "a.test");
    let good = site(&authority, "a.test", |_| {});
    assert_eq!(
        of(&good, &others),
        untrusted(21, "unable to verify the first certificate")
    );
    let own = pair::self_signed("a.test", &rcgen::PKCS_ECDSA_P256_SHA256);
    assert_eq!(
        of(&own, &authority),
        untrusted(18, "self-signed certificate")
    );
    let expired = site(&authority, "a.test", |p| {
        p.not_after = date_time_ymd(2001, 1, 1)
    });
    assert_eq!(
        of(&expired, &authority),
        untrusted(10, "certificate has expired")
    );
    let future = site(&authority, "a.test", |p| {
        p.not_before = date_time_ymd(4000, 1, 1)
    });
    assert_eq!(
        of(&future, &authority),
        untrusted(9, "certificate is not yet valid")
    );
    // Trust is checked before the name.
    let both = site(&authority, "b.test", |p| {
        p.not_after = date_time_ymd(2001, 1, 1)
    });
    assert_eq!(
        of(&both, &authority),
        untrusted(10, "certificate has expired")
    );
}

#[test]
fn certificate_must_be_made_for_servers() {
    let authority = root("Authority");
    let with = |purposes: &[ExtendedKeyUsagePurpose], usages: &[KeyUsagePurpose]| {
        let leaf = site(&authority, "a.test", |params| {
            params.extended_key_usages = purposes.to_vec();
            params.key_usages = usages.to_vec();
        });
        verdict(auth(&authority), identity(&leaf), "a.test")
    };
    let wrong = untrusted(26, "unsuitable certificate purpose");
    assert_eq!(with(&[ExtendedKeyUsagePurpose::ServerAuth], &[]), "");
    assert_eq!(with(&[ExtendedKeyUsagePurpose::ClientAuth], &[]), wrong);
    assert_eq!(with(&[], &[KeyUsagePurpose::KeyEncipherment]), "");
    assert_eq!(with(&[], &[KeyUsagePurpose::CrlSign]), wrong);
}

#[test]
fn path_has_at_most_the_depth() {
    let top = root("Top");
    let middle = intermediate("Middle", &top);
    let low = intermediate("Low", &middle);
    let leaf = site(&low, "a.test", |_| {});
    let text = format!("{}{}{}", leaf.certificate, low.pem(), middle.pem());
    let chain = Chain::from_pem(text.as_bytes()).expect("they are certificates");
    let key = Key::from_pem(leaf.key.as_bytes(), &[]).expect("it is a key");
    let shown = Identity::new(chain, &key, None).expect("they belong together");
    let verdict = |depth: usize| {
        let auth = ServerAuth {
            depth,
            ..auth(&top)
        };
        verdict(auth, shown.clone(), "a.test")
    };
    assert_eq!((verdict(2), verdict(3)), (String::new(), String::new()));
    assert_ne!(verdict(1), "");
    assert_ne!(verdict(0), "");
}

#[test]
fn revoked_server_is_refused() {
    let authority = root("Authority");
    let leaf = site(&authority, "a.test", |params| {
        params.serial_number = Some(SerialNumber::from_slice(&[7]));
    });
    let with = |serial: u8| {
        let params = CertificateRevocationListParams {
            this_update: date_time_ymd(2020, 1, 1),
            next_update: date_time_ymd(4000, 1, 1),
            crl_number: SerialNumber::from_slice(&[1]),
            issuing_distribution_point: None,
            revoked_certs: vec![RevokedCertParams {
                serial_number: SerialNumber::from_slice(&[serial]),
                revocation_time: date_time_ymd(2020, 1, 1),
                reason_code: None,
                invalidity_date: None,
            }],
            key_identifier_method: rcgen::KeyIdMethod::Sha256,
        };
        let list = params.signed_by(&authority).expect("it can be signed");
        let crls = Crl::from_pem(list.pem().expect("it can be written").as_bytes());
        let auth = ServerAuth {
            crls: crls.expect("it is a list"),
            ..auth(&authority)
        };
        verdict(auth, identity(&leaf), "a.test")
    };
    assert_eq!(with(6), "");
    assert_eq!(with(7), untrusted(23, "certificate revoked"));
}

#[test]
fn limits_of_names_in_authorities_are_kept() {
    let top = root("Top");
    let key = rcgen::KeyPair::generate().expect("there is randomness");
    let mut params = CertificateParams::new(["Limited".to_owned()]).expect("a name");
    params
        .distinguished_name
        .push(rcgen::DnType::CommonName, "Limited");
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params.name_constraints = Some(NameConstraints {
        permitted_subtrees: vec![GeneralSubtree::DnsName("a.test".to_owned())],
        excluded_subtrees: Vec::new(),
    });
    let limited: Authority =
        rcgen::CertifiedIssuer::signed_by(params, key, &top).expect("it can be signed");
    let verdict_of = |name: &str, change: fn(&mut CertificateParams)| {
        let leaf = site(&limited, name, change);
        let text = format!("{}{}", leaf.certificate, limited.pem());
        let chain = Chain::from_pem(text.as_bytes()).expect("they are certificates");
        let key = Key::from_pem(leaf.key.as_bytes(), &[]).expect("it is a key");
        let shown = Identity::new(chain, &key, None).expect("they belong together");
        verdict(auth(&top), shown, name)
    };
    let verdict = |name: &str| verdict_of(name, |_| {});
    assert_eq!(verdict("x.a.test"), "");
    assert_eq!(
        verdict_of("b.test", |params| params.subject_alt_names.clear()),
        untrusted(47, "permitted subtree violation")
    );
    assert_eq!(
        verdict("b.test"),
        untrusted(47, "permitted subtree violation")
    );
}

#[test]
fn server_that_cannot_be_trusted_gets_no_certificate_of_ours() {
    let (authority, others) = (root("Authority"), root("Others"));
    let ours = identity(&client("ours", &authority));
    let config = build(Settings {
        client: Some(Arc::new(ClientAuth {
            mode: ClientMode::Optional,
            told: Authorities::default(),
            trusted: Authorities::default(),
            crls: Vec::new(),
            depth: 1,
        })),
        ..server(identity(&site(&authority, "a.test", |_| {})))
    });
    for (auth, shown) in [
        (None, 1),
        (Some(auth(&authority)), 1),
        (Some(auth(&others)), 0),
    ] {
        for versions in [Versions::Tls12, Versions::Tls13] {
            let (client, _) = made(ClientSettings {
                versions,
                identity: Some(ours.clone()),
                ..settings(auth.clone())
            });
            let done = shake(&client, &config, "a.test", 1);
            let sent = done.map_or(0, |(_, server)| {
                let info = server.info().expect("the handshake is over");
                info.certificates.len()
            });
            assert_eq!(sent, shown, "{versions:?}");
        }
    }
}

#[test]
fn name_is_sent_if_the_settings_want_it() {
    let config = build(server(identity(&site(
        &root("Authority"),
        "a.test",
        |_| {},
    ))));
    for (sends_name, name, sent) in [
        (true, "a.test", Some("a.test")),
        (false, "a.test", None),
        (true, "127.0.0.1", None),
    ] {
        let (client, _) = made(ClientSettings {
            sends_name,
            ..settings(None)
        });
        let (_, server) = shake(&client, &config, name, 1).expect("anybody is trusted");
        let info = server.info().expect("the handshake is over");
        assert_eq!(info.server_name.as_deref(), sent.map(str::as_bytes));
    }
}

#[test]
fn session_is_of_one_policy_name_address_and_certificate() {
    let authority = root("Authority");
    let config = build(server(identity(&site(&authority, "a.test", |_| {}))));
    for versions in [Versions::Tls12, Versions::Tls13] {
        let with = |auth| {
            made(ClientSettings {
                versions,
                ..settings(auth)
            })
        };
        let resumed = |client: &ClientConfig, name: &str, peer: u64| {
            let (client, _) = shake(client, &config, name, peer).expect("it is trusted");
            client.is_resumed()
        };
        let (open, digest) = with(None);
        assert!(!resumed(&open, "a.test", 1) && resumed(&open, "a.test", 1));
        assert!(!resumed(&open, "a.test", 2), "another address");
        assert!(!resumed(&open, "b.test", 1), "another name");
        assert!(resumed(&open, "a.test", 2) && resumed(&open, "b.test", 1));
        let (verifying, _) = with(Some(auth(&authority)));
        assert!(!resumed(&verifying, "a.test", 1), "another policy");
        let of =
            |name: &str| open.with_identity(&digest, &identity(&client(name, &authority)), true);
        let ((one, first), (two, second)) = (of("one"), of("two"));
        assert!(first != second && first != digest);
        assert!(!resumed(&one, "a.test", 1) && resumed(&one, "a.test", 1));
        assert!(!resumed(&two, "a.test", 1), "another certificate");
        let (again, _) = with(None);
        assert!(
            resumed(&again, "a.test", 1),
            "equal settings have the sessions"
        );
        let (never, _) = made(ClientSettings {
            versions,
            resumes: false,
            ..settings(None)
        });
        assert!(!resumed(&never, "a.test", 1) && !resumed(&never, "a.test", 1));
    }
}

/// Counts secrets.
#[derive(Debug, Default)]
struct Counting(AtomicUsize);

impl KeyLog for Counting {
    fn log(&self, _: &str, _: &[u8], _: &[u8]) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn policies_that_share_a_certificate_of_ours_have_logs_of_their_own() {
    let authority = root("Authority");
    let config = build(server(identity(&site(&authority, "a.test", |_| {}))));
    let ours = identity(&client("ours", &authority));
    let logs = [Arc::new(Counting::default()), Arc::default()];
    let of = |log: Option<&Arc<Counting>>| {
        let (policy, digest) = made(ClientSettings {
            key_log: log.map(|log| Arc::clone(log) as Arc<dyn KeyLog>),
            ..settings(None)
        });
        policy.with_identity(&digest, &ours, true).0
    };
    let all = [of(Some(&logs[0])), of(None), of(Some(&logs[1]))];
    let counts = || logs.each_ref().map(|log| log.0.load(Ordering::Relaxed) > 0);
    for (client, logged) in [
        (&all[1], [false, false]),
        (&all[2], [false, true]),
        (&all[0], [true, true]),
    ] {
        shake(client, &config, "a.test", 1).expect("it is trusted");
        assert_eq!(counts(), logged);
    }
}
