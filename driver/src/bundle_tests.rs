//! Messages on their way between supervisor and worker.

use super::*;
use crate::inbox::MESSAGE_TIME;
use std::fs::File;
use std::os::unix::fs::MetadataExt;

fn null(name: &str) -> (String, OwnedFd) {
    (
        name.to_owned(),
        File::open("/dev/null").expect("/dev/null").into(),
    )
}

fn zero(name: &str) -> (String, OwnedFd) {
    (
        name.to_owned(),
        File::open("/dev/zero").expect("/dev/zero").into(),
    )
}

fn device(fd: OwnedFd) -> u64 {
    File::from(fd).metadata().expect("fstat").rdev()
}

fn bundle() -> Bundle {
    let every_byte: Vec<u8> = (0..=255).collect();
    Bundle {
        generation: 3,
        step: Step::Prepare {
            fingerprint: 1 << 63,
            base: Some(2),
        },
        renewed: true,
        conf_path: "/etc/nginx/nginx.conf".to_owned(),
        prefix: "/etc/nginx/".to_owned(),
        globals: Some("daemon off; \"\\".to_owned()),
        error_log: None,
        access_log: "/var/log/nginx/access.log".to_owned(),
        files: vec![
            ("/a".to_owned(), Arc::new(every_byte)),
            ("/b".to_owned(), Arc::default()),
        ],
        globs: vec![("/x/*".to_owned(), vec!["/x/1".to_owned()])],
        data: vec![zero("/usr/share/a.mmdb")],
        hosts: vec![(
            "localhost".to_owned(),
            vec![[127, 0, 0, 1].into(), [0; 16].into()],
        )],
        listeners: vec![null("0.0.0.0:80"), null("0.0.0.0:80")],
        logs: vec![zero("/var/log/nginx/access.log")],
        samples: Some(SampleChannel {
            socket: zero("").1,
            figures: null("").1,
        }),
    }
}

#[test]
fn bundle_survives_the_way() {
    let (ours, theirs) = fdpass::pair().expect("a pair");
    let sent = ToWorker::Configure(Box::new(bundle()));
    sent.send(&ours, MESSAGE_TIME).expect("send");
    ToWorker::Quit.send(&ours, MESSAGE_TIME).expect("send");
    let received = ToWorker::receive(&theirs).expect("receive");
    let Ok(ToWorker::Configure(received)) = received else {
        panic!("another message came")
    };
    let expected = bundle();
    assert_eq!(received.files, expected.files);
    assert_eq!(received.globs, expected.globs);
    assert_eq!(received.hosts, expected.hosts);
    assert_eq!(
        (received.generation, received.renewed, received.globals),
        (3, true, expected.globals)
    );
    assert_eq!(received.step, expected.step);
    assert_eq!(
        (received.conf_path, received.prefix),
        (expected.conf_path, expected.prefix)
    );
    assert_eq!(
        (received.error_log, received.access_log),
        (None, expected.access_log)
    );
    assert_eq!(received.listeners.len(), 2);
    let zero_device = device(zero("").1);
    for ((name, fd), (expected, _)) in received.data.into_iter().zip(expected.data) {
        assert_eq!((name, device(fd)), (expected, zero_device));
    }
    for ((name, fd), (expected, _)) in received.logs.into_iter().zip(expected.logs) {
        assert_eq!((name, device(fd)), (expected, zero_device));
    }
    assert!(matches!(
        ToWorker::receive(&theirs).expect("receive"),
        Ok(ToWorker::Quit)
    ));
}

#[test]
fn damaged_message_is_invalid_data() {
    let sent = ToWorker::Configure(Box::new(bundle()));
    let (payload, _) = sent.encode().expect("encode");
    for payload in [
        &payload[..4],
        &payload[..40],
        &payload[..payload.len() - 1],
        &payload[..],
    ] {
        let error = ToWorker::decode(payload, Vec::new()).expect_err("damaged");
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
    let (quit, _) = ToWorker::Quit.encode().expect("encode");
    ToWorker::decode(&quit, vec![null("").1]).expect_err("a descriptor too many");
}
