//! Beacons: no proper prefix of a beacon is a beacon, and a beacon keeps its limits.
#![no_main]

use engines::beacon::{AGE_MAX_MS, AHEAD_MAX_US, BEACON_MAX_BYTES, SHIFT_MAX, parse};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Ok(beacon) = parse(input) else {
        return;
    };
    beacon.check_invariants();
    assert!(input.len() <= BEACON_MAX_BYTES);
    assert!(beacon.view_age_ms() <= beacon.age_ms);
    let latest = u64::from(AGE_MAX_MS) * 1000 + u64::from(AHEAD_MAX_US);
    let files = beacon.hosts.iter().filter_map(|host| beacon.files_us(host));
    let times = [
        beacon.lookup_us(),
        beacon.connect_us(),
        beacon.tls_us(),
        beacon.first_byte_us(),
        beacon.response_end_us(),
        beacon.dom_content_loaded_us(),
        beacon.load_us(),
        beacon.first_paint_us(),
        beacon.largest_paint_us(),
        beacon.interaction_us,
    ];
    assert!(
        times
            .into_iter()
            .flatten()
            .chain(files)
            .all(|us| u64::from(us) <= latest)
    );
    assert!(beacon.shift.is_none_or(|shift| shift <= SHIFT_MAX));
    // The script writes each field in only one form. So a shortened or lengthened text is never a beacon.
    for end in 0..input.len() {
        assert!(parse(&input[..end]).is_err());
    }
    assert!(parse(&[input, b"\n"].concat()).is_err());
});
