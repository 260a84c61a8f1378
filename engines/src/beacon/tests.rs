//! Beacons at each limit, and invalid texts.

use super::*;

const WHOLE: &str = "firstbyte 1\nv 00c0ffee00c0ffee\na 5230\n\
    n 0 3000 9000 9000 14000 31000 31000 80000 95000 900000 950000\n\
    p 700000 800000 48000 103\n\
    h www.example.com 20 1 2 48213 940000\nh s1.example.com 3 0 0 0 -\n.";

/// The beacon with a part of its text replaced.
#[track_caller]
fn with(old: &str, new: &str) -> Result<Beacon, Fault> {
    assert_eq!(WHOLE.matches(old).count(), 1, "{old} is there once");
    parse(WHOLE.replacen(old, new, 1).as_bytes())
}

/// Host lines with names of some length.
fn hosts(count: usize, name_bytes: usize) -> String {
    let line = |n: usize| {
        let name = format!("{n:0>name_bytes$}");
        format!("h {name} {FILES_MAX} {FILES_MAX} 0 {BYTES_MAX} {TIME_MAX_US}\n")
    };
    (0..count).map(line).collect()
}

/// The longest beacon with these host lines.
fn longest(hosts: &str) -> String {
    let times = format!(" {TIME_MAX_US}").repeat(POINTS);
    format!(
        "firstbyte 1\nv ffffffffffffffff\na {AGE_MAX_MS}\nn{times}\n\
         p {TIME_MAX_US} {TIME_MAX_US} {TIME_MAX_US} {SHIFT_MAX}\n{hosts}."
    )
}

#[test]
fn whole_beacon_is_read() {
    let beacon = parse(WHOLE.as_bytes()).expect("it is whole");
    beacon.check_invariants();
    assert_eq!(beacon.view, 0x00c0_ffee_00c0_ffee);
    assert_eq!((beacon.age_ms, beacon.view_age_ms()), (5230, 5230));
    assert_eq!(beacon.lookup_us(), Some(6000));
    assert_eq!(beacon.connect_us(), Some(5000));
    assert_eq!(beacon.tls_us(), Some(17_000));
    assert_eq!(beacon.first_byte_us(), Some(80_000));
    assert_eq!(beacon.response_end_us(), Some(95_000));
    assert_eq!(beacon.dom_content_loaded_us(), Some(900_000));
    assert_eq!(beacon.load_us(), Some(950_000));
    assert_eq!(beacon.first_paint_us(), Some(700_000));
    assert_eq!(beacon.largest_paint_us(), Some(800_000));
    assert_eq!(beacon.interaction_us, Some(48_000));
    assert_eq!(beacon.shift, Some(103));
    let [own, other] = &beacon.hosts[..] else {
        panic!("{:?}", beacon.hosts);
    };
    assert_eq!(&*own.host, "www.example.com");
    assert_eq!((own.files, own.failed, own.truncated), (20, 1, 2));
    assert_eq!((own.bytes, beacon.files_us(own)), (48_213, Some(940_000)));
    assert_eq!((other.files, other.end_us), (3, None));
}

#[test]
fn no_beginning_and_no_continuation_of_a_beacon_is_one() {
    for end in 0..WHOLE.len() {
        let cut = parse(&WHOLE.as_bytes()[..end]);
        assert_eq!(cut, Err(Fault::Malformed), "{end}");
    }
    for more in ["\n", ".", " ", "\n."] {
        let longer = parse(format!("{WHOLE}{more}").as_bytes());
        assert_eq!(longer, Err(Fault::Malformed), "{more:?}");
    }
}

#[test]
fn other_version_is_told_apart() {
    for version in ["2", "0", "10", "", "1 "] {
        let other = with("firstbyte 1", &format!("firstbyte {version}"));
        assert_eq!(other, Err(Fault::Version), "{version:?}");
    }
    assert_eq!(with("firstbyte 1", "secondbyte 1"), Err(Fault::Malformed));
    assert_eq!(parse(b""), Err(Fault::Malformed));
}

#[test]
fn fields_have_one_form() {
    for (old, new) in [
        ("a 5230", "a 05230"),
        ("a 5230", "a +5230"),
        ("a 5230", "a -5230"),
        ("a 5230", "a 5230.0"),
        ("a 5230", "a 5e3"),
        ("a 5230", "a NaN"),
        ("a 5230", "a -"),
        ("a 5230", "a "),
        ("a 5230", "a  5230"),
        ("a 5230", "a 5230 "),
        ("a 5230", "a 5230\r"),
        ("a 5230\n", ""),
        ("a 5230\n", "a 5230\na 5230\n"),
        ("v 00c0", "v 00C0"),
        ("v 00c0", "v 0c0"),
        ("v 00c0", "v 000c0"),
        ("n 0 ", "n "),
        ("n 0 ", "n 0 0 "),
        ("p 700000", "p 1 700000"),
        (" 103\n", " 103 1\n"),
        ("h www.example.com 20", "h WWW.example.com 20"),
        ("h www.example.com 20", "h www.exämple.com 20"),
        ("h www.example.com 20", "h www/example 20"),
        ("h www.example.com 20", "h  20"),
        ("h www.example.com 20", "h s1.example.com 20"),
        ("h www.example.com 20", "h www.example.com -"),
        ("h www.example.com 20", "x www.example.com 20"),
        ("48213 940000", "48213"),
        ("48213 940000", "48213 940000 1"),
    ] {
        assert_eq!(with(old, new), Err(Fault::Malformed), "{new:?}");
    }
    let mut nul = WHOLE.as_bytes().to_vec();
    nul[0] = 0;
    assert_eq!(parse(&nul), Err(Fault::Malformed));
}

#[test]
fn numbers_are_accepted_up_to_their_limits() {
    let age = |age: u64| with("a 5230", &format!("a {age}")).map(|beacon| beacon.age_ms);
    let most = u64::from(AGE_MAX_MS);
    assert_eq!(age(most - 1), Ok(AGE_MAX_MS - 1));
    assert_eq!(age(most), Ok(AGE_MAX_MS));
    assert_eq!(age(most + 1), Err(Fault::Old));
    assert_eq!(age(u64::from(u32::MAX) + 1), Err(Fault::Old));
    assert_eq!(with("a 5230", "a 99999999999999999999"), Err(Fault::Limit));
    let shift = |shift: u32| with(" 103\n", &format!(" {shift}\n")).map(|beacon| beacon.shift);
    assert_eq!(shift(SHIFT_MAX - 1), Ok(Some(SHIFT_MAX - 1)));
    assert_eq!(shift(SHIFT_MAX), Ok(Some(SHIFT_MAX)));
    assert_eq!(shift(SHIFT_MAX + 1), Err(Fault::Limit));
    let bytes = |n: u64| with("2 48213", &format!("2 {n}")).map(|beacon| beacon.hosts[0].bytes);
    assert_eq!(bytes(BYTES_MAX - 1), Ok(BYTES_MAX - 1));
    assert_eq!(bytes(BYTES_MAX), Ok(BYTES_MAX));
    assert_eq!(bytes(BYTES_MAX + 1), Err(Fault::Limit));
    let files =
        |n: u32| with("com 20 1", &format!("com {n} 1")).map(|beacon| beacon.hosts[0].files);
    assert_eq!(files(FILES_MAX - 1), Ok(FILES_MAX - 1));
    assert_eq!(files(FILES_MAX), Ok(FILES_MAX));
    assert_eq!(files(FILES_MAX + 1), Err(Fault::Limit));
    // Failed and truncated files are among all files.
    assert!(with("20 1 2", "3 1 2").is_ok());
    assert_eq!(with("20 1 2", "2 1 2"), Err(Fault::Limit));
    assert_eq!(with("20 1 2", "20 21 0"), Err(Fault::Limit));
}

#[test]
fn times_are_accepted_up_to_an_hour() {
    let load = |us: u32| {
        let text = longest("").replacen(&format!(" {TIME_MAX_US}\np"), &format!(" {us}\np"), 1);
        parse(text.as_bytes()).map(|beacon| beacon.points[Point::Load as usize])
    };
    assert_eq!(load(TIME_MAX_US), Ok(Some(TIME_MAX_US)));
    assert_eq!(load(TIME_MAX_US - 1), Err(Fault::Backwards));
    assert_eq!(load(TIME_MAX_US + 1), Err(Fault::Limit));
}

#[test]
fn hosts_are_accepted_up_to_their_number_and_length() {
    let count = |n: usize| parse(longest(&hosts(n, 5)).as_bytes()).map(|beacon| beacon.hosts.len());
    assert_eq!(count(HOSTS_MAX - 1), Ok(HOSTS_MAX - 1));
    assert_eq!(count(HOSTS_MAX), Ok(HOSTS_MAX));
    assert_eq!(count(HOSTS_MAX + 1), Err(Fault::Limit));
    assert_eq!(count(0), Ok(0));
    let length =
        |n: usize| parse(longest(&hosts(1, n)).as_bytes()).map(|beacon| beacon.hosts[0].host.len());
    assert_eq!(length(1), Ok(1));
    assert_eq!(length(HOST_MAX_BYTES - 1), Ok(HOST_MAX_BYTES - 1));
    assert_eq!(length(HOST_MAX_BYTES), Ok(HOST_MAX_BYTES));
    assert_eq!(length(HOST_MAX_BYTES + 1), Err(Fault::Limit));
}

/// The default of `max_size` refuses no valid beacon.
#[test]
fn longest_beacon_fits_the_default_size() {
    let text = longest(&hosts(HOSTS_MAX, HOST_MAX_BYTES));
    assert!(parse(text.as_bytes()).is_ok());
    assert!(text.len() <= BEACON_MAX_BYTES, "{}", text.len());
}

#[test]
fn times_that_run_backwards_are_refused() {
    for (old, new) in [
        (" 3000 9000 9000", " 3000 2999 9000"),
        ("9000 14000 31000", "9000 8999 31000"),
        ("14000 31000 31000", "14000 13999 31000"),
        ("31000 80000 95000", "31000 30999 95000"),
        ("80000 95000 900000", "80000 79999 900000"),
        ("95000 900000 950000", "95000 79999 950000"),
        ("95000 900000 950000", "95000 950001 950000"),
        ("9000 9000 14000 31000 31000", "32000 - - - 31000"),
    ] {
        assert_eq!(with(old, new), Err(Fault::Backwards), "{new}");
    }
    // A stopped load ends after its events.
    assert!(with("80000 95000 900000", "80000 1000000 900000").is_ok());
    assert!(with("80000 95000 900000", "80000 - 900000").is_ok());
}

#[test]
fn times_after_the_beacon_are_refused() {
    let latest = 5_230_000 + AHEAD_MAX_US;
    for (old, new) in [
        ("950000\np", "{}\np"),
        ("p 700000", "p {}"),
        ("800000 48000", "{} 48000"),
        ("48000 103", "{} 103"),
        ("940000\nh", "{}\nh"),
    ] {
        let with_time = |us: u32| with(old, &new.replace("{}", &us.to_string()));
        assert!(with_time(latest - 1).is_ok(), "{old}");
        assert!(with_time(latest).is_ok(), "{old}");
        assert_eq!(with_time(latest + 1), Err(Fault::Future), "{old}");
    }
}

#[test]
fn prerendered_page_begins_with_its_activation() {
    let beacon = with("n 0 ", "n 90000 ").expect("it is whole");
    assert_eq!(beacon.view_age_ms(), 5140);
    assert_eq!(beacon.first_byte_us(), Some(0));
    assert_eq!(beacon.load_us(), Some(860_000));
    assert_eq!(beacon.first_paint_us(), Some(610_000));
    assert_eq!(beacon.lookup_us(), Some(6000));
    assert_eq!(beacon.files_us(&beacon.hosts[0]), Some(850_000));
    assert_eq!(with("n 0 ", "n 5430001 "), Err(Fault::Future));
}

#[test]
fn reused_connection_has_no_times_of_connecting() {
    let beacon = with(
        "3000 9000 9000 14000 31000 31000",
        "3000 3000 3000 3000 3000 3000",
    );
    let beacon = beacon.expect("it is whole");
    assert_eq!((beacon.lookup_us(), beacon.connect_us()), (None, None));
    assert_eq!(beacon.tls_us(), None);
    let plain = with("9000 14000", "9000 -").expect("it is whole");
    assert_eq!((plain.tls_us(), plain.connect_us()), (None, Some(22_000)));
}

#[test]
fn page_that_was_not_loaded_has_no_load_time() {
    let beacon = with("950000\np", "-\np").expect("it is whole");
    assert_eq!(beacon.load_us(), None);
    assert_eq!(beacon.dom_content_loaded_us(), Some(900_000));
}
