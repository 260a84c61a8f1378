//! Averages of response times.

use super::*;

#[test]
fn an_average_moves_by_a_twentieth_and_is_rounded() {
    let mut times = ResponseTimes::default();
    times.add_header(0);
    assert_eq!(times.header_ms(), 0);
    for (ms, average) in [
        (100, 100),
        (100, 100),
        (0, 95),
        (0, 90),
        (1000, 136),
        (135, 136),
    ] {
        times.add_header(ms);
        assert_eq!(times.header_ms(), average, "{ms}");
    }
    times.add_response(7);
    assert_eq!((times.header_ms(), times.response_ms()), (136, 7));
}

#[test]
fn attempts_in_progress_count_by_their_mean_age() {
    let mut times = ResponseTimes::default();
    times.average_in_flight(900);
    assert_eq!(times.in_flight_ms(), 0, "there are none");
    times.begin(1000);
    times.begin(1100);
    times.average_in_flight(1200);
    assert_eq!(times.in_flight_ms(), 150, "of 200 and 100");
    times.end(1000);
    times.average_in_flight(1251);
    assert_eq!(times.in_flight_ms(), 150, "151 adds a twentieth");
    times.end(1100);
    assert_eq!(times.in_flight_ms(), 0);
}
