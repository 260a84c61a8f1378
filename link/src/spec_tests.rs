//! Tests of `spec`: each item at its limits and one past them, and the positions of errors.

use super::*;

fn read(text: &str) -> Spec {
    text.parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn refused(text: &str) -> String {
    let read = text.parse::<Spec>();
    read.map(|spec| panic!("{text} is {spec:?}"))
        .unwrap_or_else(|error| error.to_string())
}

#[test]
fn all_items_are_read() {
    let text = "50ms,20mbit,queue=100,loss=0.1%,jitter=2ms,reorder,delack=200ms,seed=7,mtu=1400,pcap=a.pcap";
    let spec = read(text);
    let ms = Duration::from_millis;
    assert_eq!(spec.round_trip, ms(50));
    assert_eq!((spec.up, spec.down), (Rate::from_bits(20_000_000), spec.up));
    assert_eq!((spec.queue_packets, spec.mtu), (Some(100), Some(1400)));
    assert_eq!(spec.loss.billionths(), 1_000_000);
    assert_eq!((spec.jitter, spec.reorder), (ms(2), true));
    assert_eq!((spec.ack_hold, spec.seed), (Some(ms(200)), Some(7)));
    assert_eq!(spec.pcap, Some(PathBuf::from("a.pcap")));
    let options = spec.options();
    assert_eq!((options.one_way, options.jitter), (ms(25), ms(1)));
    assert_eq!(options.client_ack_hold, options.server_ack_hold);
    assert_eq!((options.seed, options.queue_packets), (7, 100));
}

#[test]
fn what_is_shown_is_read_again() {
    for (text, shown) in [
        ("50ms", "50ms"),
        ("rtt=0.5ms", "500us"),
        ("1mbit,rtt=1s", ""),
        ("0ms,up=1mbit", "0s,up=1mbit"),
        ("50ms,down=1.5gbit,up=64kbit", "50ms,up=64kbit,down=1.5gbit"),
        ("50ms,up=1mbit,down=1000kbit", "50ms,1mbit"),
        ("50ms,rate=20mbit,queue=1", "50ms,20mbit,queue=1"),
        ("50ms,loss=0%,jitter=0ms,seed=0", "50ms,seed=0"),
        (
            "rtt=20s,seed=18446744073709551615,delack=1000ms,mtu=576,loss=100%",
            "20s,loss=100%,delack=1s,seed=18446744073709551615,mtu=576",
        ),
        (
            "10ms,reorder,jitter=10ms,pcap=x=y",
            "10ms,jitter=10ms,reorder,pcap=x=y",
        ),
    ] {
        if shown.is_empty() {
            assert!(text.parse::<Spec>().is_err(), "a time is first: {text}");
            continue;
        }
        let spec = read(text);
        assert_eq!(spec.to_string(), shown);
        assert_eq!(read(shown), spec);
    }
}

#[test]
fn limits_are_exact() {
    for (good, bad) in [
        ("20s", "20.000000001s"),
        ("5ms,1kbit", "5ms,999bit"),
        ("5ms,up=100gbit", "5ms,up=100.000000001gbit"),
        ("5ms,1mbit,queue=1", "5ms,1mbit,queue=0"),
        ("5ms,1mbit,queue=10000", "5ms,1mbit,queue=10001"),
        ("5ms,loss=100%", "5ms,loss=100.0000001%"),
        ("5ms,jitter=5ms", "5ms,jitter=5.000001ms"),
        ("5ms,delack=1s", "5ms,delack=1.000000001s"),
        (
            "5ms,seed=18446744073709551615",
            "5ms,seed=18446744073709551616",
        ),
        ("5ms,mtu=576", "5ms,mtu=575"),
        ("5ms,mtu=9216", "5ms,mtu=9217"),
        ("5ms,mtu=1400", "5ms,mtu=+1400"),
        ("5ms,seed=7", "5ms,seed=+7"),
        ("5ms,1mbit,queue=7", "5ms,1mbit,queue=+7"),
        ("5ms,pcap=a", "5ms,pcap="),
    ] {
        read(good);
        refused(bad);
    }
}

#[test]
fn errors_point_at_the_item() {
    for (text, said) in [
        (
            "",
            "\"\" at character 1: a time is a number with s, ms, us or ns",
        ),
        (
            "50",
            "\"50\" at character 1: a time is a number with s, ms, us or ns",
        ),
        (
            "50ms,loss=101%",
            "\"loss=101%\" at character 6: a loss is 0% to 100%",
        ),
        ("50ms,,seed=1", "\"\" at character 6: an item is missing"),
        (
            "50ms,seed=-1",
            "\"seed=-1\" at character 6: a seed is a number from 0 to 18446744073709551615",
        ),
        (
            "50ms,seed=1,seed=1",
            "\"seed=1\" at character 13: \"seed=1\" says that already",
        ),
        (
            "50ms,20mbit,up=1mbit",
            "\"up=1mbit\" at character 13: \"20mbit\" says that already",
        ),
        (
            "50ms,up=1mbit,20mbit",
            "\"20mbit\" at character 15: \"up=1mbit\" says that already",
        ),
        (
            "50ms,queue=9",
            "\"queue=9\" at character 6: without a rate nothing waits; say one, 20mbit",
        ),
        (
            "50ms,seed=1,reorder",
            "\"reorder\" at character 13: without jitter=TIME nothing overtakes",
        ),
        (
            "1ms,jitter=2ms",
            "\"jitter=2ms\" at character 5: jitter is at most the round trip",
        ),
        (
            "loss=1%",
            "\"loss=1%\" at character 1: the time of a round trip is missing; it is the first item, 50ms",
        ),
    ] {
        assert_eq!(refused(text), said, "{text}");
    }
    let names = "rtt, rate, up, down, queue, loss, jitter, delack, seed, mtu, pcap";
    let said = refused("50ms,los=1%");
    assert_eq!(
        said,
        format!("\"los=1%\" at character 6: there is no such item; there are {names}")
    );
    let said = refused("50ms,20ms");
    assert!(
        said.starts_with("\"20ms\" at character 6: an item is a rate"),
        "{said}"
    );
    refused("50ms,reorder=yes");
}
