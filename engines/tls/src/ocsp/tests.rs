//! Requests and the verdicts on responses: good, wrong and tampered ones.

use rcgen::ExtendedKeyUsagePurpose::{OcspSigning, ServerAuth};

use super::made::{Plan, World, der_of};
use super::*;

/// 2024-01-02.
const NOW_S: i64 = 1_704_153_600;

fn good() -> Answer {
    Answer {
        status: Status::Good,
        from_s: NOW_S - 86_400,
        until_s: Some(NOW_S + 6 * 86_400),
    }
}

#[test]
fn a_question_names_issuer_and_number() {
    let world = World::new();
    let question = world.question();
    let request = question.request();
    let certificate = Certificate::parse(&question.certificate).expect("a certificate");
    let mut id = der::Reader::new(&request);
    for _ in 0..5 {
        id = id.sequence().expect("a sequence inside");
    }
    let digest = id.sequence().and_then(|mut oid| oid.body(der::OID));
    assert_eq!(digest, Some(&SHA1_OID[2..]));
    let lengths = [id.body(der::OCTET_STRING), id.body(der::OCTET_STRING)];
    assert_eq!(lengths.map(|body| body.map(<[u8]>::len)), [Some(20); 2]);
    assert_eq!(id.body(der::INTEGER), Some(certificate.serial));
    assert!(id.is_empty());
    assert_eq!(question.responder(), Some("http://ocsp.test/status"));
}

#[test]
fn the_issuer_is_in_the_chain_or_among_the_authorities() {
    let world = World::new();
    let none = Authorities::default();
    let from_chain = Question::about(&world.chain(true), &none);
    assert_eq!(
        from_chain,
        Question::about(&world.chain(false), &world.authorities())
    );
    assert!(from_chain.is_some());
    assert_eq!(Question::about(&world.chain(false), &none), None);
    let root = Authorities::from_pem(world.root.pem().as_bytes()).expect("a certificate");
    assert_eq!(Question::about(&world.chain(false), &root), None);
}

#[test]
fn the_issuers_answer_is_taken() {
    let world = World::new();
    let (question, issuer) = (world.question(), der_of(&world.issuer.pem()));
    let authorities = world.authorities();
    for (by_key, sha256) in [(false, false), (true, true)] {
        let plan = Plan {
            by_key,
            sha256,
            ..Plan::good(&issuer)
        };
        let response = plan.sign(&question, world.issuer.key());
        for (whole, trust) in [
            (true, Trust::Named),
            (true, Trust::Below(&Authorities::default())),
            (false, Trust::Named),
            (false, Trust::Below(&authorities)),
        ] {
            let answer = question.judge(&response, &world.chain(whole), trust, NOW_S);
            assert_eq!(answer, Ok(good()));
        }
        // The issuer is neither shown nor below an authority.
        let none = Authorities::default();
        let answer = question.judge(&response, &world.chain(false), Trust::Below(&none), NOW_S);
        assert!(matches!(answer, Err(Fault::NotTrusted(_))), "{answer:?}");
    }
}

#[test]
fn a_responder_needs_the_usage_and_the_very_issuer() {
    let world = World::new();
    let (question, chain) = (world.question(), world.chain(true));
    let authorities = world.authorities();
    let judged = |by, usages, authorities: &Authorities| {
        let signer = world.delegate(by, usages);
        let plan = Plan {
            certificates: vec![&signer.certificate],
            ..Plan::good(&signer.certificate)
        };
        let response = plan.sign(&question, &signer.key);
        let answer = question.judge(&response, &chain, Trust::Below(authorities), NOW_VALID_S);
        // Without verification whoever signed is taken.
        let named = question.judge(&response, &chain, Trust::Named, NOW_S);
        assert_eq!(named, Ok(good()));
        answer.map_err(|fault| fault.to_string())
    };
    assert_eq!(
        judged(&world.issuer, vec![OcspSigning], &authorities),
        Ok(good())
    );
    let usage = Err(Fault::NotAllowed.to_string());
    assert_eq!(judged(&world.issuer, vec![], &authorities), usage);
    assert_eq!(judged(&world.issuer, vec![ServerAuth], &authorities), usage);
    assert_eq!(judged(&world.root, vec![OcspSigning], &authorities), usage);
    let lost = judged(&world.issuer, vec![OcspSigning], &Authorities::default());
    assert_eq!(
        lost.expect_err("no authority"),
        "OCSP_basic_verify() failed (certificate verify error: unable to get local issuer certificate)"
    );
}

/// Certificates of these tests are valid always, so the same time will do.
const NOW_VALID_S: i64 = NOW_S;

#[test]
fn a_signer_that_is_not_there_or_another_is_refused() {
    let world = World::new();
    let (question, chain) = (world.question(), world.chain(true));
    let signer = world.delegate(&world.issuer, vec![OcspSigning]);
    let plan = Plan::good(&signer.certificate);
    let response = plan.sign(&question, &signer.key);
    let judge = |response: &[u8]| question.judge(response, &chain, Trust::Named, NOW_S);
    assert_eq!(judge(&response), Err(Fault::NoSigner));
    let issuer = der_of(&world.issuer.pem());
    let response = Plan::good(&issuer).sign(&question, &signer.key);
    assert_eq!(judge(&response), Err(Fault::BadSignature));
}

#[test]
fn revoked_and_unknown_certificates_are_told() {
    let world = World::new();
    let (question, issuer) = (world.question(), der_of(&world.issuer.pem()));
    let revoked = encode_revoked();
    for (status, told) in [
        (&revoked[..], Status::Revoked),
        (&[0x82, 0], Status::Unknown),
    ] {
        let plan = Plan {
            status,
            ..Plan::good(&issuer)
        };
        let response = plan.sign(&question, world.issuer.key());
        let answer = question.judge(&response, &world.chain(true), Trust::Named, NOW_S);
        assert_eq!(answer.map(|answer| answer.status), Ok(told));
    }
}

fn encode_revoked() -> Vec<u8> {
    der::encode(
        der::context(1),
        &[&der::encode(der::GENERALIZED_TIME, &[b"20240101000000Z"])],
    )
}

#[test]
fn an_answer_about_another_certificate_is_none() {
    let (world, other) = (World::new(), World::new());
    let issuer = der_of(&world.issuer.pem());
    let response = Plan::good(&issuer).sign(&other.question(), world.issuer.key());
    let question = world.question();
    let answer = question.judge(&response, &world.chain(true), Trust::Named, NOW_S);
    assert_eq!(answer, Err(Fault::NotFound));
}

#[test]
fn answers_hold_in_their_time_give_or_take_five_minutes() {
    let world = World::new();
    let (question, issuer) = (world.question(), der_of(&world.issuer.pem()));
    let chain = world.chain(true);
    let response = Plan::good(&issuer).sign(&question, world.issuer.key());
    let (from_s, until_s) = (NOW_S - 86_400, NOW_S + 6 * 86_400);
    for (now_s, told) in [
        (from_s - SKEW_S - 1, Err(Fault::NotYetValid)),
        (from_s - SKEW_S, Ok(good())),
        (until_s + SKEW_S, Ok(good())),
        (until_s + SKEW_S + 1, Err(Fault::Expired)),
        (i64::MIN, Err(Fault::NotYetValid)),
        (i64::MAX, Err(Fault::Expired)),
    ] {
        let answer = question.judge(&response, &chain, Trust::Named, now_s);
        assert_eq!(answer, told, "{now_s}");
    }
    let sign = |from, until| {
        let plan = Plan {
            from,
            until,
            ..Plan::good(&issuer)
        };
        let response = plan.sign(&question, world.issuer.key());
        question.judge(&response, &chain, Trust::Named, NOW_S)
    };
    let endless = sign(b"20240101000000Z", None).expect("it holds");
    assert_eq!(endless.until_s, None);
    let backwards = sign(b"20240102000100Z", Some(b"20240101235959Z"));
    assert_eq!(backwards, Err(Fault::EndsBefore));
    let no_time = sign(b"20241301000000Z", None);
    assert_eq!(no_time, Err(Fault::NotBasic));
}

#[test]
fn a_critical_extension_is_not_passed_over() {
    let world = World::new();
    let (question, issuer) = (world.question(), der_of(&world.issuer.pem()));
    let judge = |critical: &[u8]| {
        let oid = der::encode(der::OID, &[&[0x2a, 3, 4]]);
        let value = der::encode(der::OCTET_STRING, &[b"x"]);
        let plan = Plan {
            extensions: der::encode(der::SEQUENCE, &[&oid, critical, &value]),
            ..Plan::good(&issuer)
        };
        let response = plan.sign(&question, world.issuer.key());
        question.judge(&response, &world.chain(true), Trust::Named, NOW_S)
    };
    assert_eq!(judge(&[]), Ok(good()));
    assert_eq!(judge(&[der::BOOLEAN, 1, 0xff]), Err(Fault::Critical));
}

#[test]
fn responders_that_give_no_answer_are_quoted() {
    let world = World::new();
    let judge = |response: &[u8]| {
        let chain = world.chain(true);
        let answer = world
            .question()
            .judge(response, &chain, Trust::Named, NOW_S);
        answer.expect_err("no answer").to_string()
    };
    for (status, text) in [
        (1, "OCSP response not successful (1: malformedrequest)"),
        (3, "OCSP response not successful (3: trylater)"),
        (6, "OCSP response not successful (6: unauthorized)"),
        (9, "OCSP response not successful (9: (UNKNOWN))"),
    ] {
        assert_eq!(judge(&[0x30, 3, 0x0a, 1, status]), text);
    }
    assert_eq!(judge(b"<html>"), "d2i_OCSP_RESPONSE() failed");
    assert_eq!(
        judge(&[0x30, 3, 0x0a, 1, 0]),
        "OCSP_response_get1_basic() failed"
    );
}

#[test]
fn whatever_is_cut_off_or_changed_is_refused() {
    let world = World::new();
    let (question, issuer) = (world.question(), der_of(&world.issuer.pem()));
    let (chain, authorities) = (world.chain(true), world.authorities());
    let response = Plan::good(&issuer).sign(&question, world.issuer.key());
    let trust = Trust::Below(&authorities);
    assert_eq!(question.judge(&response, &chain, trust, NOW_S), Ok(good()));
    for end in 0..response.len() {
        let cut = question.judge(&response[..end], &chain, trust, NOW_S);
        assert!(cut.is_err(), "cut at {end}");
    }
    for n in 0..response.len() {
        let mut changed = response.clone();
        changed[n] ^= 1;
        let answer = question.judge(&changed, &chain, trust, NOW_S);
        assert!(answer.is_err(), "changed at {n}");
    }
    let longer = [&response[..], &[0]].concat();
    assert_eq!(
        question.judge(&longer, &chain, trust, NOW_S),
        Err(Fault::NotDer)
    );
}

#[test]
fn certificates_of_a_response_are_read_to_their_limit() {
    let world = World::new();
    let (question, issuer) = (world.question(), der_of(&world.issuer.pem()));
    let judge = |count| {
        let plan = Plan {
            certificates: vec![&issuer; count],
            ..Plan::good(&issuer)
        };
        let response = plan.sign(&question, world.issuer.key());
        question.judge(&response, &world.chain(true), Trust::Named, NOW_S)
    };
    assert_eq!(judge(response::CERTIFICATES_MAX), Ok(good()));
    assert_eq!(judge(response::CERTIFICATES_MAX + 1), Err(Fault::NotBasic));
}
