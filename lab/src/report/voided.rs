//! What is told of samples that are void: how many, of which kinds, and when they are too many.
//!
//! Source: docs/lab.md.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::ServerReport;
use crate::judge::Judge;
use crate::outcome::{Kind, Outcome};

/// How many samples of a kind were void, because the link was late meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Voided {
    /// Those that are left out.
    pub void: u64,
    /// All that were taken.
    pub of: u64,
}

/// By kind; nothing where nobody has judged.
pub(super) fn of(outcome: &Outcome) -> BTreeMap<String, Voided> {
    let kinds = Kind::ALL.iter().filter(|_| outcome.is_judged());
    let taken = kinds.filter_map(|kind| {
        let times = outcome.times(*kind);
        let (void, of) = (times.void, times.taken());
        (of > 0).then(|| (kind.name().to_owned(), Voided { void, of }))
    });
    taken.collect()
}

impl ServerReport {
    /// How many samples are void, where they were judged.
    #[must_use]
    pub fn voided_sentence(&self) -> Option<String> {
        let sum = |count: fn(&Voided) -> u64| self.voided.values().map(count).sum::<u64>();
        match (sum(|voided| voided.void), sum(|voided| voided.of)) {
            (_, 0) => None,
            (0, of) => Some(format!(
                "0 of {of} samples voided: the link was on time for all"
            )),
            (void, of) => {
                let kinds = self.told(|voided| voided.void > 0);
                Some(format!(
                    "{void} of {of} samples voided: the link was late ({kinds})"
                ))
            }
        }
    }

    /// What is to be said when too many samples are void.
    pub(crate) fn warning(&self, judge: &dyn Judge) -> Option<String> {
        let name = &self.name;
        let kinds = self.told(|voided| !judge.is_conclusive(voided.of, voided.void));
        (!kinds.is_empty()).then(|| {
            format!(
                "{name}: more than one sample in a hundred is void, because the link was late ({kinds}); \
                 measure again while the machine is less busy"
            )
        })
    }

    /// `service 3 of 100, connect 0 of 10`, of some kinds.
    fn told(&self, which: impl Fn(&Voided) -> bool) -> String {
        let kinds = Kind::ALL.iter().filter_map(|kind| {
            let voided = self.voided.get(kind.name());
            let voided = voided.filter(|voided| which(voided))?;
            let name = kind.name().replace('_', " ");
            Some(format!("{name} {} of {}", voided.void, voided.of))
        });
        kinds.collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Instant;

    use firstbyte_tests::answers::serve;

    use super::*;
    use crate::bench::{Job, Measured, Server, bench};
    use crate::engine::Protocol;
    use crate::hdr;
    use crate::load::{Connect, Plan};
    use crate::mix::Request;
    use crate::report::{Report, html, text};
    use crate::url::Url;

    /// Says of every `void_each`th sample that the link was late for it; of none with 0.
    struct Planted {
        void_each: u64,
        judged: AtomicU64,
    }

    impl Judge for Planted {
        fn are_void(&self, samples: &[(Instant, Instant)]) -> Vec<bool> {
            let judge = |(from, to): &(Instant, Instant)| {
                assert!(from <= to && *to <= Instant::now());
                let number = self.judged.fetch_add(1, Ordering::Relaxed) + 1;
                self.void_each > 0 && number.is_multiple_of(self.void_each)
            };
            samples.iter().map(judge).collect()
        }

        fn is_conclusive(&self, samples: u64, void: u64) -> bool {
            void * 100 <= samples
        }
    }

    const REQUESTS: u64 = 300;

    /// 300 requests on two connections to a server that answers them, judged.
    fn report(judge: Option<&dyn Judge>) -> (Report, Measured) {
        let address = serve(|| ());
        let url = Url::parse(&format!("http://{address}/")).expect("a URL");
        let plan = Plan {
            address,
            tls: None,
            plain: Protocol::H1,
            requests: vec![Request::new(&url, "GET", "/", &[], b"")],
            connections: 2,
            streams: 1,
            threads: 1,
            total: Some(REQUESTS),
            duration_ns: None,
            rate: None,
            connect: Connect::Warm,
            timeout_ns: 30_000_000_000,
            spdy_level: 6,
            pid: None,
        };
        let server = Server {
            name: "one".to_owned(),
            url: url.to_string(),
            plan,
        };
        let job = Job {
            servers: vec![server],
            blocks: 1,
            warm_up_ns: 0,
            seed: 1,
            insecure: false,
        };
        bench(&job, judge, |_| true).expect("it is measured")
    }

    /// A text without its ends of lines.
    fn unbroken(text: &str) -> String {
        let words: Vec<&str> = text.split_whitespace().collect();
        words.join(" ")
    }

    #[test]
    fn void_samples_are_left_out_and_told_and_too_many_are_warned_of() {
        let judge = Planted {
            void_each: 7,
            judged: AtomicU64::new(0),
        };
        let (report, measured) = report(Some(&judge));
        let server = &report.servers[0];
        // Service times and first bytes of all requests, and two connections.
        let all = 2 * REQUESTS + 2;
        let mut void = 0;
        for (name, of) in [
            ("service", REQUESTS),
            ("first_byte", REQUESTS),
            ("connect", 2),
        ] {
            let voided = server.voided[name];
            assert_eq!(voided.of, of, "{name}");
            let valid = server.times.get(name).map_or(0, |times| times.n);
            assert_eq!(valid + voided.void, of, "{name}");
            void += voided.void;
        }
        assert_eq!((void, server.voided.len()), (all / 7, 3));
        // What is void was a response all the same.
        assert_eq!((server.done, server.blocks[0].done), (REQUESTS, REQUESTS));
        let sentence = format!("{void} of {all} samples voided: the link was late (service ");
        let warning = "one: more than one sample in a hundred is void, because the link was late";
        let log = hdr::log(&report, &measured).expect("it is a log");
        assert!(log.contains(&format!("#one: {sentence}")), "{log}");
        let (as_text, as_page) = (unbroken(&text::render(&report)), html::render(&report));
        for told in [&as_text, &as_page] {
            assert!(told.contains(&sentence), "{told}");
            assert!(told.contains(warning), "{told}");
        }
        assert!(as_text.starts_with("WARNING: one: "), "{as_text}");
        assert!(text::table(&report).starts_with("WARNING: one: "));
        let json = serde_json::to_value(&report).expect("it is JSON");
        assert_eq!(json["servers"][0]["voided"]["service"]["of"], REQUESTS);
        let said = json["warnings"][0].as_str();
        assert!(said.is_some_and(|said| said.starts_with(warning)));
    }

    #[test]
    fn samples_of_a_link_on_time_all_count() {
        let judge = Planted {
            void_each: 0,
            judged: AtomicU64::new(0),
        };
        let (report, _) = report(Some(&judge));
        assert_eq!(report.servers[0].times["service"].n, REQUESTS);
        assert!(report.warnings.is_empty(), "{:?}", report.warnings);
        let text = text::render(&report);
        let sentence = "0 of 602 samples voided: the link was on time for all";
        assert!(unbroken(&text).contains(sentence), "{text}");
    }

    #[test]
    fn without_a_link_nothing_is_said_of_one() {
        let (report, _) = report(None);
        assert!(report.servers[0].voided.is_empty());
        assert!(!text::render(&report).contains("samples"));
    }
}
