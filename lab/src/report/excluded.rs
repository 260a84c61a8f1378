//! Sentences about excluded samples: their number, their metrics, and a warning if there are too many.
//!
//! Source: docs/lab.md.

use super::server::{Excluded, ServerReport};
use crate::load::SampleFilter;
use crate::stats::Metric;

impl ServerReport {
    /// Number of excluded samples, if there is a filter.
    #[must_use]
    pub(super) fn excluded_sentence(&self) -> Option<String> {
        let sum = |count: fn(&Excluded) -> u64| self.excluded.values().map(count).sum::<u64>();
        match (sum(|one| one.excluded), sum(|one| one.of)) {
            (_, 0) => None,
            (0, of) => Some(format!(
                "0 of {of} samples voided: the link was on time for all"
            )),
            (excluded, of) => {
                let metrics = self.listed(|one| one.excluded > 0);
                Some(format!(
                    "{excluded} of {of} samples voided: the link was late ({metrics})"
                ))
            }
        }
    }

    /// A warning if too many samples are excluded.
    pub(super) fn warning(&self, filter: &dyn SampleFilter) -> Option<String> {
        let name = &self.name;
        let metrics = self.listed(|one| !filter.is_conclusive(one.of, one.excluded));
        (!metrics.is_empty()).then(|| {
            format!(
                "{name}: more than one sample in a hundred is void, because the link was late ({metrics}); \
                 measure again while the machine is less busy"
            )
        })
    }

    /// `service 3 of 100, connect 0 of 10`, of some metrics.
    fn listed(&self, which: impl Fn(&Excluded) -> bool) -> String {
        let metrics = Metric::ALL.iter().filter_map(|metric| {
            let one = self.excluded.get(metric.name())?;
            let name = metric.name().replace('_', " ");
            which(one).then(|| format!("{name} {} of {}", one.excluded, one.of))
        });
        metrics.collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Instant;

    use firstbyte_tests::answers::serve;

    use super::*;
    use crate::client::{Protocol, Request, Url};
    use crate::load::{Connect, Job, Measured, Plan, Server, bench};
    use crate::report::{Report, hdr, html, text};

    /// Says of every `exclude_each`th sample that the link was late for it; of none with 0.
    struct Planted {
        exclude_each: u64,
        seen: AtomicU64,
    }

    impl SampleFilter for Planted {
        fn excludes(&self, samples: &[(Instant, Instant)]) -> Vec<bool> {
            let answer = |(from, to): &(Instant, Instant)| {
                assert!(from <= to && *to <= Instant::now());
                let number = self.seen.fetch_add(1, Ordering::Relaxed) + 1;
                self.exclude_each > 0 && number.is_multiple_of(self.exclude_each)
            };
            samples.iter().map(answer).collect()
        }

        fn is_conclusive(&self, samples: u64, excluded: u64) -> bool {
            excluded * 100 <= samples
        }
    }

    const REQUESTS: u64 = 300;

    /// 300 requests on two connections to a server that answers them, with a filter or without.
    fn report(filter: Option<&dyn SampleFilter>) -> (Report, Measured) {
        let address = serve(|| ());
        let url = Url::parse(&format!("http://{address}/")).expect("a URL");
        let plan = Plan {
            address,
            tls: None,
            plain: Protocol::H1,
            requests: vec![Request::new(&url, "GET", "/", &[], b"")],
            passed_over: None,
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
        let measured = bench(&job, filter, |_| true).expect("it is measured");
        (Report::new(&job, &measured, filter), measured)
    }

    /// A text without its ends of lines.
    fn unbroken(text: &str) -> String {
        let words: Vec<&str> = text.split_whitespace().collect();
        words.join(" ")
    }

    #[test]
    fn excluded_samples_are_counted_and_too_many_are_warned_of() {
        let filter = Planted {
            exclude_each: 7,
            seen: AtomicU64::new(0),
        };
        let (report, measured) = report(Some(&filter));
        let server = &report.servers[0];
        // Service times and first bytes of all requests, and two connections.
        let all = 2 * REQUESTS + 2;
        let mut excluded = 0;
        for (name, of) in [
            ("service", REQUESTS),
            ("first_byte", REQUESTS),
            ("connect", 2),
        ] {
            let found = server.excluded[name];
            assert_eq!(found.of, of, "{name}");
            let valid = server.times.get(name).map_or(0, |times| times.n);
            assert_eq!(valid + found.excluded, of, "{name}");
            excluded += found.excluded;
        }
        assert_eq!((excluded, server.excluded.len()), (all / 7, 3));
        // An excluded sample still counts as a response.
        assert_eq!((server.done, server.blocks[0].done), (REQUESTS, REQUESTS));
        let sentence = format!("{excluded} of {all} samples voided: the link was late (service ");
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
        let filter = Planted {
            exclude_each: 0,
            seen: AtomicU64::new(0),
        };
        let (report, _) = report(Some(&filter));
        assert_eq!(report.servers[0].times["service"].n, REQUESTS);
        assert!(report.void.is_empty(), "{:?}", report.void);
        let text = text::render(&report);
        let sentence = "0 of 602 samples voided: the link was on time for all";
        assert!(unbroken(&text).contains(sentence), "{text}");
    }

    #[test]
    fn without_a_link_nothing_is_said_of_one() {
        let (report, _) = report(None);
        assert!(report.servers[0].excluded.is_empty());
        assert!(!text::render(&report).contains("samples"));
    }
}
