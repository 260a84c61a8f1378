//! Tests of `value`: values at their limits, units and errors.

use super::*;
use crate::Memory;
use crate::testing::directive;

fn message<T: std::fmt::Debug>(result: Result<T, ConfError>) -> String {
    result.expect_err("the value is bad").message().to_owned()
}

#[test]
fn flags_are_on_or_off_in_any_case() {
    assert_eq!(parse_flag(b"on"), Some(true));
    assert_eq!(parse_flag(b"OFF"), Some(false));
    assert_eq!(parse_flag(b"yes"), None);
    let expected = "invalid value \"yes\" in \"gzip\" directive, it must be \"on\" or \"off\"";
    assert_eq!(message(flag(&directive("gzip yes;"))), expected);
}

#[test]
fn numbers_are_digits_up_to_the_signed_maximum() {
    assert_eq!(parse_number(b"0012"), Some(12));
    assert_eq!(parse_number(b"9223372036854775807"), Some(NUMBER_MAX));
    for bad in [
        "",
        "-1",
        "+1",
        "1k",
        "0x1",
        " 1",
        "9223372036854775808",
        "99999999999999999999",
    ] {
        assert_eq!(parse_number(bad.as_bytes()), None, "{bad}");
    }
    assert_eq!(
        message(number(&directive("worker_connections x;"))),
        "\"worker_connections\" directive invalid number"
    );
}

#[test]
fn sizes_have_k_and_m_and_offsets_g_too() {
    assert_eq!(parse_size(b"10"), Some(10));
    assert_eq!(parse_size(b"1k"), Some(1024));
    assert_eq!(parse_size(b"2M"), Some(2 << 20));
    assert_eq!(parse_offset(b"3g"), Some(3 << 30));
    assert_eq!(parse_offset(b"3G"), Some(3 << 30));
    for bad in ["", "k", "1kk", "1 k", "1g", "9007199254740992k", "-1"] {
        assert_eq!(parse_size(bad.as_bytes()), None, "{bad}");
    }
    assert_eq!(
        parse_size(b"9007199254740991k"),
        Some(9007199254740991 << 10)
    );
    assert_eq!(parse_offset(b"8589934592g"), None);
    assert_eq!(
        message(size(&directive("a x;"))),
        "\"a\" directive invalid value"
    );
    assert_eq!(
        message(offset(&directive("a x;"))),
        "\"a\" directive invalid value"
    );
}

#[test]
fn times_are_sums_of_units_in_order() {
    assert_eq!(parse_time_ms(b"5"), Some(5000));
    assert_eq!(parse_time_ms(b"10ms"), Some(10));
    assert_eq!(parse_time_ms(b"1h30m"), Some(5_400_000));
    assert_eq!(parse_time_ms(b"1h 30m"), Some(5_400_000));
    assert_eq!(parse_time_ms(b"1m 1s 1ms"), Some(61_001));
    assert_eq!(parse_time_ms(b"1M"), Some(2_592_000_000));
    assert_eq!(
        parse_time_s(b"1y 1M 1w 1d 1h 1m 1s"),
        Some(31_536_000 + 2_592_000 + 604_800 + 86_400 + 3600 + 61)
    );
    assert_eq!(parse_time_s(b"1h 5"), Some(3605));
    assert_eq!(parse_time_s(b"5 "), Some(5));
    assert_eq!(parse_time_s(b"0"), Some(0));
}

#[test]
fn times_out_of_order_or_with_foreign_units_are_refused() {
    for bad in [
        "", "s", "1m1h", "1h1h", "1s1s", "-1", "1x", "1s 1m", "1 1s", "1ms", "off",
    ] {
        assert_eq!(parse_time_s(bad.as_bytes()), None, "{bad}");
    }
    for bad in [
        "1y",
        "1ms1s",
        "1ms 1ms",
        "9223372036854775807",
        "9223372036854776s",
    ] {
        assert_eq!(parse_time_ms(bad.as_bytes()), None, "{bad}");
    }
    assert_eq!(
        message(time_ms(&directive("a x;"))),
        "\"a\" directive invalid value"
    );
    assert_eq!(
        message(time_s(&directive("a x;"))),
        "\"a\" directive invalid value"
    );
}

#[test]
fn buffers_are_a_count_and_a_size() {
    assert_eq!(buffers(&directive("a 4 8k;")), Ok((4, 8192)));
    for bad in ["a 0 8k;", "a 4 0;", "a x 8k;", "a 4 x;"] {
        assert_eq!(
            message(buffers(&directive(bad))),
            "\"a\" directive invalid value",
            "{bad}"
        );
    }
}

#[test]
fn bounds_are_told() {
    let d = directive("a 5;");
    assert_eq!(between(&d, 5, 1, 9), Ok(5));
    assert_eq!(
        message(between(&d, 5, 6, 9)),
        "value must be between 6 and 9"
    );
    assert_eq!(at_least(&d, 5, 5), Ok(5));
    assert_eq!(
        message(at_least(&d, 5, 6)),
        "value must be equal to or greater than 6"
    );
}

#[test]
fn a_choice_is_one_of_its_names() {
    let names = [("off", 0), ("clean", 1)];
    assert_eq!(choice(&directive("a CLEAN;"), &names), Ok(1));
    let error = choice(&directive("a b;"), &names).expect_err("b is no name");
    assert_eq!(
        (error.message(), error.hint()),
        ("invalid value \"b\"", Some("it can be: off, clean"))
    );
}

#[test]
fn a_mask_is_the_union_and_a_repetition_a_warning() {
    let names = [("a", 1), ("b", 2)];
    let mut loader = Loader::new(Memory::default(), "/");
    assert_eq!(mask(&mut loader, &directive("x a b a;"), &names), Ok(3));
    assert_eq!(
        loader.warnings()[0].1.to_string(),
        "duplicate value \"a\" in /a.conf:1"
    );
    assert_eq!(
        message(mask(&mut loader, &directive("x a c;"), &names)),
        "invalid value \"c\""
    );
    assert_eq!(parse_mask(&directive("x a c;").args, &names), Err(1));
    assert_eq!(parse_mask(&directive("x b a;").args, &names), Ok(3));
    let names = [("a", 1), ("b", 2 | 4), ("c", 2 | 8)];
    let mut loader = Loader::new(Memory::default(), "/");
    assert_eq!(mask(&mut loader, &directive("x a b c;"), &names), Ok(7));
    let more = mask_more(&mut loader, &directive("x c b;"), &names, 1);
    assert_eq!((more, loader.warnings().len()), (Ok(11), 2));
}
