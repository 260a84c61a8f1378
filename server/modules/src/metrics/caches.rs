//! Families of caches: requests by result, bytes, entries.

use server_http::cache::counts::CacheResult;
use server_http::http::Http;

use super::format::{MetricType, Writer};
use super::upstreams::quoted;

/// Figures of caches.
#[derive(Default)]
pub(super) struct CacheFacts(Vec<CacheSample>);

struct CacheSample {
    /// Its name, quoted.
    cache: String,
    results: Vec<(&'static str, [u64; 3])>,
    entries: u64,
    size_bytes: u64,
    evicted: u64,
    purged: u64,
}

impl CacheFacts {
    /// Reads the present values.
    pub(super) fn now(http: &Http) -> Self {
        let caches = http.caches.iter().map(|zone| {
            let stats = zone.shared.index.stats();
            let directory = zone.shared.directory();
            let block_bytes = directory.map_or(0, |directory| directory.block_bytes());
            let result = |result: CacheResult| {
                let counts = zone.shared.counts.of(result);
                let values = [counts.responses, counts.bytes, counts.bytes_written];
                (result.metric_label(), values)
            };
            CacheSample {
                cache: quoted(&String::from_utf8_lossy(&zone.name)),
                results: CacheResult::ALL.map(result).to_vec(),
                entries: stats.entries,
                size_bytes: stats.blocks * block_bytes,
                evicted: stats.evicted,
                purged: stats.purged,
            }
        });
        Self(caches.collect())
    }
}

/// Writes the families of caches.
pub(super) fn write(page: &mut Writer, facts: &CacheFacts) {
    if facts.0.is_empty() {
        return;
    }
    for (at, (name, unit, help)) in BY_RESULT.iter().enumerate() {
        page.family(name, MetricType::Counter, unit, help);
        for cache in &facts.0 {
            for (result, values) in &cache.results {
                let labels = [("cache", cache.cache.as_str()), ("result", *result)];
                page.sample(&format!("{name}_total"), &labels, values[at]);
            }
        }
    }
    for (name, kind, unit, help, value) in OF_CACHE {
        page.family(name, *kind, unit, help);
        let sample = match kind {
            MetricType::Counter => format!("{name}_total"),
            _ => (*name).to_owned(),
        };
        for cache in &facts.0 {
            page.sample(&sample, &[("cache", &cache.cache)], value(cache));
        }
    }
}

/// Name, unit and help of the families with a label for the result.
const BY_RESULT: [(&str, &str, &str); 3] = [
    (
        "firstbyte_cache_responses",
        "",
        "Responses to requests of a cache, by its part in them.",
    ),
    (
        "firstbyte_cache_bytes",
        "bytes",
        "Bytes of their bodies, from the cache or from a server.",
    ),
    (
        "firstbyte_cache_written_bytes",
        "bytes",
        "Bytes of their bodies that were stored.",
    ),
];

/// Name, type, unit, help and value of a family.
type CacheFamily = (
    &'static str,
    MetricType,
    &'static str,
    &'static str,
    fn(&CacheSample) -> u64,
);

#[rustfmt::skip] // One line a family.
const OF_CACHE: &[CacheFamily] = &[
    ("firstbyte_cache_entries", MetricType::Gauge, "", "Entries of a cache.", |it| it.entries),
    ("firstbyte_cache_size_bytes", MetricType::Gauge, "bytes", "Size of the files of a cache.", |it| it.size_bytes),
    ("firstbyte_cache_evictions", MetricType::Counter, "", "Entries removed from a cache without room.", |it| it.evicted),
    ("firstbyte_cache_purges", MetricType::Counter, "", "Entries purged from a cache.", |it| it.purged),
];

#[cfg(test)]
mod tests {
    use super::super::format::Format;
    use super::*;

    #[test]
    fn each_cache_has_all_results() {
        let sample = CacheSample {
            cache: "c".to_owned(),
            results: vec![("hit", [2, 30, 0]), ("miss", [1, 20, 10])],
            entries: 5,
            size_bytes: 4096,
            evicted: 6,
            purged: 7,
        };
        let mut page = Writer::new(Format::Prometheus);
        write(&mut page, &CacheFacts(vec![sample]));
        let page = page.end();
        for line in [
            "firstbyte_cache_responses_total{cache=\"c\",result=\"hit\"} 2",
            "firstbyte_cache_bytes_total{cache=\"c\",result=\"miss\"} 20",
            "firstbyte_cache_written_bytes_total{cache=\"c\",result=\"miss\"} 10",
            "firstbyte_cache_entries{cache=\"c\"} 5",
            "firstbyte_cache_size_bytes{cache=\"c\"} 4096",
            "firstbyte_cache_evictions_total{cache=\"c\"} 6",
            "firstbyte_cache_purges_total{cache=\"c\"} 7",
        ] {
            assert!(page.lines().any(|known| known == line), "{line}");
        }
        let mut none = Writer::new(Format::Prometheus);
        write(&mut none, &CacheFacts::default());
        assert_eq!(none.end(), "");
    }
}
