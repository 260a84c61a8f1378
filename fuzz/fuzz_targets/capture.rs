//! Packet captures: every file is read or refused with a message, and findings name existing packets.
#![no_main]

use std::sync::LazyLock;

use lab::capture::{KeyLog, Side, findings, read};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let mut capture = match read(input) {
        Ok(capture) => capture,
        Err(sentence) => {
            assert!(sentence.contains("capture"), "{sentence}");
            return;
        }
    };
    assert!(capture.decrypt(&KEYS) <= capture.flows.len());
    let mut last = 0;
    for flow in &capture.flows {
        assert!(flow.segment_bytes > 0);
        for segment in &flow.segments {
            assert!((1..=capture.packets).contains(&segment.packet));
            assert!(segment.end() >= segment.begin);
            last = last.max(segment.packet);
        }
        let servers = flow.segments.iter().filter(|one| one.from == Side::Server);
        assert!(servers.count() <= flow.segments.len());
    }
    assert!(last <= capture.packets);
    for finding in findings(&capture) {
        assert!(finding.lost_ms.is_finite() && finding.lost_ms >= 0.0);
        assert!(!finding.evidence.is_empty() && !finding.fixes.is_empty());
        for example in finding.evidence["examples"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let packet = |name: &str| example[name]["packet"].as_u64();
            if let (Some(segment), Some(ack), Some(next)) =
                (packet("segment"), packet("ack"), packet("withheld"))
            {
                assert!(segment < ack && ack < next && next <= capture.packets);
            }
        }
    }
});

/// Keys for the client random of the seeds' connections. They decrypt no record.
static KEYS: LazyLock<KeyLog> = LazyLock::new(|| {
    let random = "07".repeat(32);
    let labels = [
        "CLIENT_RANDOM",
        "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
        "SERVER_HANDSHAKE_TRAFFIC_SECRET",
        "CLIENT_TRAFFIC_SECRET_0",
        "SERVER_TRAFFIC_SECRET_0",
    ];
    let lines = labels.map(|label| format!("{label} {random} {}\n", "01".repeat(32)));
    KeyLog::read(lines.concat().as_bytes()).expect("there are keys")
});
