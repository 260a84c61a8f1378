//! kernel-settings with `--try`: measures each setting of the target's kernel and an alternative, in blocks.
//!
//! A block measures both values in random order, with the same requests over the emulated link. So changes of the machine
//! between blocks affect both. Settings of a route or a device are set on the link's own, first to the value that visitors'
//! connections have, then to the alternative. Sysctls are set for the network namespace of the server. Each setting is restored
//! before the next one is tried.
//!
//! Absent: effects of a visitor's own network, such as loss, and queues and offloads of real devices.

use std::time::Duration;

use serde_json::{Value, json};
use sys::os_error;

use super::kernel::{Figures, USUAL_WINDOW};
use super::pick::{self, Picked};
use crate::client::Url;
use crate::doctor::code::kernel_settings;
use crate::doctor::figures::estimate;
use crate::doctor::judge::interval;
use crate::doctor::judge::sample::average;
use crate::doctor::tunable::{Changed, Tunable, Tuner};
use crate::doctor::{
    Body, CONNECTIONS_MAX, Examination, Failure, Finding, NetworkPath, Severity, TRIAL_REQUESTS,
    Visitor,
};
use crate::stats::{Comparison, Estimate, VERDICT_LEVEL, mean, paired};

/// A setting, its value, and the one that it is compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Trial {
    tunable: Tunable,
    own: String,
    other: String,
}

/// The times of a trial.
#[derive(Clone, Debug, Default, PartialEq)]
struct Times {
    /// Of each block the time with the setting's own value and with the other one, ms.
    pairs: Vec<(f64, f64)>,
}

/// Tries all settings with a known value.
pub(super) fn run(x: &mut Examination<'_>) -> Result<Vec<Finding>, Failure> {
    let network = x.network;
    let Some(tuner) = network.tuner() else {
        return Ok(Vec::new());
    };
    let body = body(x)?;
    let (mut findings, mut measured) = (Vec::new(), Vec::new());
    for trial in trials(&Figures::here(x)) {
        match times(x, tuner, &trial, &body) {
            Ok(times) => {
                measured.push(times.measured(&trial, &body));
                x.notes.push(times.sentence(&trial, &body));
                let found = judge(&trial, &times, &body, x.round_trip_ms());
                findings.extend(x.with_command(found));
            }
            Err(Failure::Interrupted) => return Err(Failure::Interrupted),
            // If one setting cannot be set here, others may.
            Err(failure) => {
                let note = format!("{} was not tried: {failure}", trial.tunable.name());
                x.notes.push(note);
            }
        }
    }
    x.measure("kernel_trials", measured);
    Ok(findings)
}

/// The body of all trials: the largest one of `--url`. Without any, one of the docroot or of the site, of a few flights.
///
/// # Errors
/// The site has no body.
fn body(x: &mut Examination<'_>) -> Result<Picked, Failure> {
    if !x.plan.more.is_empty() {
        if let Some(body) = largest_of(&x.site()?, &x.plan.more) {
            return Ok(body);
        }
        let note = "--try: no --url has a 200 response with a body, so another body was used";
        x.notes.push(note.to_owned());
    }
    let body = pick::large(x, 1..=BODY_MAX_BYTES, BODY_BYTES)?;
    body.ok_or_else(|| Failure::other("the site has no known body"))
}

/// The largest body of some URLs.
fn largest_of(site: &[Body], urls: &[Url]) -> Option<Picked> {
    let named = site.iter();
    let named = named.filter(|body| body.bytes > 0 && urls.contains(&body.url));
    let largest = named.max_by_key(|body| body.bytes)?;
    Some(Picked {
        url: largest.url.clone(),
        bytes: largest.bytes,
    })
}

/// Returns the trials: each setting with an alternative that may serve first bytes better, or with its other value.
fn trials(figures: &Figures) -> Vec<Trial> {
    let flag = |is_on: bool| if is_on { "1" } else { "0" }.to_owned();
    let values = |tunable| match tunable {
        Tunable::InitialWindow => {
            let window = figures.initial_window.unwrap_or(USUAL_WINDOW);
            let other = match window < USUAL_WINDOW {
                true => USUAL_WINDOW,
                false => window.saturating_mul(2),
            };
            Some((window.to_string(), other.to_string()))
        }
        Tunable::SlowStartAfterIdle => figures
            .slow_start_after_idle
            .map(|is_on| (flag(is_on), flag(!is_on))),
        Tunable::Autocorking => figures.autocorking.map(|is_on| (flag(is_on), flag(!is_on))),
        Tunable::CongestionControl => {
            let own = figures.congestion_control.clone()?;
            let known =
                |name: &&str| *name != own && figures.available.iter().any(|one| one == name);
            let other = ["cubic", "bbr", "reno"].iter().find(|name| known(name))?;
            Some((own, (*other).to_owned()))
        }
        Tunable::SegmentationOffload => {
            let word = |is_on: bool| if is_on { "on" } else { "off" }.to_owned();
            let (_, offloads) = figures.device.as_ref()?;
            offloads.gso.map(|is_on| (word(is_on), word(!is_on)))
        }
    };
    let all = Tunable::ALL.into_iter().filter_map(|tunable| {
        let (own, other) = values(tunable)?;
        Some(Trial {
            tunable,
            own,
            other,
        })
    });
    all.collect()
}

/// Measures both values in blocks, two in a round.
fn times(
    x: &Examination<'_>,
    tuner: &dyn Tuner,
    trial: &Trial,
    body: &Picked,
) -> Result<Times, Failure> {
    let mut seed = [0; 8];
    let drawn = sys::random::fill(&mut seed);
    drawn.map_err(|error| Failure::other(format!("no random number: {}", os_error(&error))))?;
    let mut random = fastrand::Rng::with_seed(u64::from_ne_bytes(seed));
    let changed = Changed::begin(tuner, trial.tunable, &trial.own);
    let mut times = Times::default();
    for _ in 0..BLOCKS_MAX / 2 {
        if times.pairs.len() >= BLOCKS {
            break;
        }
        let first = random.bool();
        let order = [first, !first, !first, first];
        let took = x.visit(NetworkPath::Delayed(None), |visitor| {
            round(visitor, &changed, trial, body, order)
        })??;
        for (block, took) in order.chunks_exact(2).zip(took.chunks_exact(2)) {
            if let [Some(a), Some(b)] = *took {
                times.pairs.push(if block[0] { (b, a) } else { (a, b) });
            }
        }
    }
    Ok(times)
}

/// Returns times of a response, ms, each with the value that `order` selects. The response is the first one of a connection, or
/// the second one behind a pause for `SlowStartAfterIdle`. `None` if the network was late meanwhile, or the server closed.
fn round(
    visitor: &Visitor<'_>,
    changed: &Changed<'_>,
    trial: &Trial,
    body: &Picked,
    order: [bool; CONNECTIONS_MAX],
) -> Result<Vec<Option<f64>>, Failure> {
    let request = visitor.get(&body.url, &[]);
    let is_of_idle = trial.tunable == Tunable::SlowStartAfterIdle;
    // All have their pause at once.
    let mut idle = Vec::new();
    while is_of_idle && idle.len() < order.len() {
        let mut session = visitor.open(&visitor.dial())?;
        session.exchange(&request)?;
        idle.push(session);
    }
    if idle.last_mut().is_some_and(|one| !one.watch(PAUSE)) {
        return Ok(vec![None; order.len()]);
    }
    let take = |is_other: bool| {
        let value = if is_other { &trial.other } else { &trial.own };
        changed.set(value).map_err(Failure::Other)?;
        let mut session = match idle.pop() {
            Some(session) => session,
            None => visitor.open(&visitor.dial())?,
        };
        let response = session.exchange(&request)?;
        Ok(visitor.valid_ms(&[(response.sent, response.end)]).pop())
    };
    order.into_iter().map(take).collect()
}

impl Times {
    fn comparison(&self) -> Option<Comparison> {
        let (own, other): (Vec<f64>, Vec<f64>) = self.pairs.iter().copied().unzip();
        paired(&own, &other).filter(|_| self.pairs.len() >= BLOCKS)
    }

    /// Time that the setting's own value costs a response beyond the alternative, ms.
    fn lost_ms(&self) -> Option<Estimate> {
        let lost: Vec<f64> = self.pairs.iter().map(|(own, other)| own - other).collect();
        mean(&lost, VERDICT_LEVEL)
    }

    fn measured(&self, trial: &Trial, body: &Picked) -> Value {
        let shown = |times: Option<Estimate>| times.as_ref().map(estimate);
        let comparison = self.comparison();
        json!({
            "setting": trial.tunable.name(),
            "value": trial.own,
            "tried": trial.other,
            "url": body.url.to_string(),
            "bytes": body.bytes,
            "took_ms": shown(average(self.pairs.iter().map(|pair| pair.0))),
            "took_tried_ms": shown(average(self.pairs.iter().map(|pair| pair.1))),
            "ratio": comparison.as_ref().map(|one| estimate(&one.ratio)),
            "differs": comparison.is_some_and(|one| one.differs),
            "blocks_needed": comparison.and_then(|one| one.needed),
        })
    }

    /// The result in a sentence.
    fn sentence(&self, trial: &Trial, body: &Picked) -> String {
        let name = trial.tunable.name();
        let tried = format!("tried {name} = {}, which is {}", trial.other, trial.own);
        let (Some(comparison), Some(lost)) = (self.comparison(), self.lost_ms()) else {
            let pairs = self.pairs.len();
            return format!(
                "{tried}: no verdict, only {pairs} of {BLOCKS} blocks could be measured"
            );
        };
        let verdict = match (comparison.differs, lost.value > 0.0) {
            (false, _) => "no difference seen",
            (true, true) => "faster",
            (true, false) => "slower",
        };
        // Seen from the value that was tried.
        let (value, low, high, n) = (-lost.value, -lost.high, -lost.low, lost.n);
        format!(
            "{tried}: {verdict}, {value:+.1} ms ({low:+.1} to {high:+.1}, n = {n}), with {}",
            in_words(body)
        )
    }
}

/// kernel-settings: a finding if the alternative is better and the interval's low end is at least [`LEAST_MS`].
fn judge(trial: &Trial, times: &Times, body: &Picked, round_trip_ms: f64) -> Option<Finding> {
    times.comparison().filter(|one| one.differs)?;
    let lost = times.lost_ms().filter(|lost| lost.low >= LEAST_MS)?;
    let pause = match trial.tunable {
        Tunable::SlowStartAfterIdle => format!(" after a pause of {:.1} s", PAUSE.as_secs_f64()),
        _ => String::new(),
    };
    let setting = format!("{} = {}", trial.tunable.name(), trial.own);
    let (severity, caveat) = weight(trial);
    let text = kernel_settings::tried(
        setting,
        in_words(body) + &pause,
        lost.value,
        interval(&lost, 0),
        &trial.other,
        trial.tunable.command(&trial.other),
        caveat,
    );
    let trips = lost.value / round_trip_ms.max(f64::EPSILON);
    let mut found = Finding::of(text, severity).costs(lost.value, trips);
    if let Value::Object(measured) = times.measured(trial, body) {
        found.evidence = measured;
    }
    Some(found.proof("lost_ms", estimate(&lost)))
}

/// A body by its URL and size.
fn in_words(body: &Picked) -> String {
    format!("{} ({} bytes)", body.url, body.bytes)
}

/// Returns the severity for an alternative that was better over a link without loss, and a caveat about its command.
fn weight(trial: &Trial) -> (Severity, &'static str) {
    let at_start = "set it at system start, too";
    match trial.tunable {
        Tunable::InitialWindow if trial.other == USUAL_WINDOW.to_string() => {
            (Severity::Bad, at_start)
        }
        Tunable::InitialWindow => (
            Severity::Note,
            "RFC 6928 recommends ten; with more, visitors behind slow links may lose packets",
        ),
        Tunable::CongestionControl => (
            Severity::Note,
            "the emulated link loses no packets: measure it on visitors' networks",
        ),
        Tunable::SlowStartAfterIdle | Tunable::Autocorking | Tunable::SegmentationOffload => {
            (Severity::Warn, at_start)
        }
    }
}

/// Blocks of a verdict, and the limit of measured blocks, since some may be void.
const BLOCKS: usize = 6;
const BLOCKS_MAX: usize = 8;
/// Requests of a block: one with each value, and one more before a pause.
const REQUESTS: usize = 2 * (Tunable::ALL.len() + 1);
const _: () = assert!(BLOCKS_MAX * REQUESTS <= TRIAL_REQUESTS as usize);
/// Idle time of two retransmission timeouts at a round trip of 50 ms; each timeout halves the window.
const PAUSE: Duration = Duration::from_millis(600);
/// Least saving that justifies a change, ms: a tenth of the link's round trip.
const LEAST_MS: f64 = 5.0;
/// A body of some flights, for which the window of a warm connection is large enough.
const BODY_BYTES: usize = 100_000;
const BODY_MAX_BYTES: u64 = 200_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Offloads;

    fn figures() -> Figures {
        let offloads = Offloads {
            tso: Some(true),
            gso: Some(false),
            gro: None,
        };
        Figures {
            autocorking: Some(true),
            slow_start_after_idle: Some(false),
            congestion_control: Some("cubic".to_owned()),
            available: vec!["reno".to_owned(), "cubic".to_owned()],
            initial_window: Some(3),
            device: Some(("eth0".to_owned(), offloads)),
            ..Figures::default()
        }
    }

    fn values(figures: &Figures) -> Vec<(&'static str, String, String)> {
        let all = trials(figures).into_iter();
        all.map(|one| (one.tunable.name(), one.own, one.other))
            .collect()
    }

    #[test]
    fn each_setting_that_is_known_has_an_alternative() {
        let expected = [
            ("initcwnd", "3", "10"),
            ("tcp_slow_start_after_idle", "0", "1"),
            ("tcp_congestion_control", "cubic", "reno"),
            ("tcp_autocorking", "1", "0"),
            ("gso", "off", "on"),
        ];
        let expected = expected.map(|(name, own, other)| (name, own.to_owned(), other.to_owned()));
        assert_eq!(values(&figures()), expected);
        let usual = ("initcwnd", "10".to_owned(), "20".to_owned());
        assert_eq!(values(&Figures::default()), [usual]);
    }

    fn trial(tunable: Tunable, own: &str, other: &str) -> Trial {
        Trial {
            tunable,
            own: own.to_owned(),
            other: other.to_owned(),
        }
    }

    fn found(trial: &Trial, pairs: &[(f64, f64)]) -> Option<Finding> {
        let times = Times {
            pairs: pairs.to_vec(),
        };
        judge(trial, &times, &picked("http://h/", 100_000), 50.0)
    }

    fn picked(url: &str, bytes: u64) -> Picked {
        let url = Url::parse(url).expect("a URL");
        Picked { url, bytes }
    }

    #[test]
    fn largest_body_of_url_options_is_tried_whatever_its_size() {
        let body = |path: &str, bytes| Body {
            url: picked(&format!("http://h/{path}"), 0).url,
            bytes,
            is_compressed: false,
            sent_bytes: bytes,
            fields: Vec::new(),
        };
        let site = [
            body("page", 900_000),
            body("a", BODY_MAX_BYTES),
            body("b", BODY_MAX_BYTES + 1),
            body("empty", 0),
        ];
        let url = |path: &str| body(path, 0).url;
        let largest = largest_of(&site, &[url("a"), url("b"), url("empty")]);
        assert_eq!(largest, Some(picked("http://h/b", BODY_MAX_BYTES + 1)));
        assert_eq!(largest_of(&site, &[url("empty"), url("missing")]), None);
    }

    #[test]
    fn findings_and_sentences_name_the_body() {
        let one = trial(Tunable::InitialWindow, "10", "20");
        let found = found(&one, &SLOWER).expect("it is better");
        let title = "With initcwnd = 10, http://h/ (100000 bytes) takes 100 ms (";
        assert!(found.title.starts_with(title), "{}", found.title);
        assert_eq!(found.evidence["url"], "http://h/");
        assert_eq!(found.evidence["bytes"], 100_000);
    }

    const SLOWER: [(f64, f64); BLOCKS] = [
        (201.0, 101.0),
        (200.0, 100.5),
        (202.0, 101.0),
        (200.5, 100.0),
        (201.0, 102.0),
        (200.0, 100.0),
    ];

    #[test]
    fn an_alternative_that_is_better_is_found_as_bad_as_it_is() {
        let small = trial(Tunable::InitialWindow, "1", "10");
        let bad = found(&small, &SLOWER).expect("it is better");
        assert_eq!(bad.severity, Severity::Bad);
        assert!((bad.lost_ms - 100.0).abs() < 1.0 && (bad.lost_round_trips - 2.0).abs() < 0.1);
        assert!(bad.fixes[0].contains("initcwnd 10;"), "{:?}", bad.fixes);
        for (tunable, severity) in [
            (Tunable::InitialWindow, Severity::Note),
            (Tunable::CongestionControl, Severity::Note),
            (Tunable::SlowStartAfterIdle, Severity::Warn),
        ] {
            let one = found(&trial(tunable, "1", "20"), &SLOWER).expect("it is better");
            assert_eq!(one.severity, severity, "{tunable:?}");
        }
    }

    #[test]
    fn samples_that_carry_no_verdict_are_no_finding() {
        let one = trial(Tunable::Autocorking, "1", "0");
        assert_eq!(found(&one, &SLOWER[1..]), None, "a block is missing");
        let worse = SLOWER.map(|(own, other)| (other, own));
        assert_eq!(found(&one, &worse), None);
        // Ends of the interval on both sides of none, and above it by too little.
        let mut mixed = SLOWER;
        mixed[2] = (101.0, 202.0);
        assert_eq!(found(&one, &mixed), None);
        let little = SLOWER.map(|(own, other)| (own, own - (LEAST_MS - 1.0) - other * 0.001));
        assert_eq!(found(&one, &little), None);
        assert_eq!(found(&one, &[]), None);
    }

    #[test]
    fn results_are_sentences_without_a_finding_too() {
        let one = trial(Tunable::Autocorking, "1", "0");
        let of = |pairs: &[(f64, f64)]| {
            let pairs = pairs.to_vec();
            Times { pairs }.sentence(&one, &picked("http://h/a", 7))
        };
        let begin = "tried tcp_autocorking = 0, which is 1: ";
        let few = of(&SLOWER[..2]);
        assert!(few.starts_with(begin) && few.contains("no verdict, only 2 of 6 blocks"));
        assert!(
            of(&SLOWER).contains("faster, -100.0 ms (-10")
                && of(&SLOWER).ends_with("n = 6), with http://h/a (7 bytes)"),
            "{}",
            of(&SLOWER)
        );
        let worse = SLOWER.map(|(own, other)| (other, own));
        assert!(of(&worse).contains("slower, +100.0 ms (+9"));
        let mut mixed = SLOWER;
        mixed[2] = (101.0, 202.0);
        assert!(of(&mixed).contains("no difference seen"));
    }
}
