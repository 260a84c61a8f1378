//! poor-caching: the caching fields of static files.
//!
//! Few false alarms come before completeness. A file is static by the extension of its path and by its type. A response with
//! a cookie is not static. A file with a validator and a short lifetime is a choice of its server, unless its name has a
//! hash of the content.
//!
//! Source: RFC 9111 sections 4.2 and 5.2.2, RFC 9110 section 8.8, RFC 8246.

use engines::http::{parse_decimal, parse_http_date};
use serde_json::{Value, json};

use crate::doctor::code::{EXPIRE, KEEP_LONG, REVALIDATE, STORE, poor_caching};
use crate::doctor::slow_start::further_round_trips;
use crate::doctor::{Finding, Severity};

/// The caching fields of a static file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StaticFile {
    /// Its URL.
    pub(crate) url: String,
    /// Bytes of its body as they were sent.
    pub(crate) bytes: u64,
    lifetime: Lifetime,
    has_hash: bool,
    has_etag: bool,
    has_date: bool,
    /// Whether the server answers a conditional request by 304; `None` if none was sent.
    pub(crate) is_revalidated: Option<bool>,
    /// `Cache-Control` and `Expires`, for the report.
    shown: String,
}

/// Time for which a client may use a response without revalidation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lifetime {
    /// `no-store`.
    Never,
    /// Seconds; 0 for `no-cache`.
    Seconds(u64),
    /// The server does not specify it: clients guess by `Last-Modified`.
    Unknown,
}

/// A fault, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// Each visit downloads the file again: it may not be stored, or there is no validator to ask with.
    Downloaded,
    /// A conditional request downloads the file again.
    ValidatorIgnored,
    /// The name has a hash of the content, and clients ask about the file within [`HASHED_SECONDS_MIN`].
    ShortLife,
    /// There is a validator but no lifetime, so clients guess one, or revalidate at each visit.
    Guessed,
}

impl StaticFile {
    /// The file of a response; `None` if that is not surely static.
    pub(crate) fn of(
        url: &str,
        mime_type: &str,
        fields: &[(String, String)],
        bytes: u64,
    ) -> Option<Self> {
        let values = |name: &'static str| {
            let own = fields.iter();
            let own = own.filter(move |(known, _)| known.eq_ignore_ascii_case(name));
            own.map(|(_, value)| value.trim())
        };
        let name = file_name(url);
        let is_static = has_extension(name) && !mime_type.trim_start().starts_with("text/html");
        if !is_static || values("set-cookie").next().is_some() {
            return None;
        }
        let shown = ["cache-control", "expires"].map(|name| {
            let all: Vec<&str> = values(name).collect();
            match all.is_empty() {
                true => String::new(),
                false => format!("{name}: {}", all.join(", ")),
            }
        });
        let shown: Vec<&str> = shown.iter().map(String::as_str).collect();
        let shown = shown.join(" ");
        Some(Self {
            url: url.chars().take(SHOWN_CHARS_MAX).collect(),
            bytes,
            lifetime: lifetime(values("cache-control"), values("expires"), values("date")),
            has_hash: has_hash(name),
            has_etag: values("etag").any(|value| !value.is_empty()),
            has_date: values("last-modified")
                .any(|value| parse_http_date(value.as_bytes()).is_some()),
            is_revalidated: None,
            shown: shown.trim().chars().take(SHOWN_CHARS_MAX).collect(),
        })
    }

    /// Whether a client can ask if its copy is still good.
    pub(crate) fn has_validator(&self) -> bool {
        self.has_etag || self.has_date
    }

    /// The worst fault.
    pub(crate) fn fault(&self) -> Option<Fault> {
        let is_fresh = matches!(self.lifetime, Lifetime::Seconds(1..));
        let is_kept_long = matches!(self.lifetime, Lifetime::Seconds(HASHED_SECONDS_MIN..));
        match self.lifetime {
            Lifetime::Never => Some(Fault::Downloaded),
            _ if !is_fresh && !self.has_validator() => Some(Fault::Downloaded),
            // Clients do not revalidate a fresh file.
            _ if self.has_hash && is_kept_long => None,
            _ if self.is_revalidated == Some(false) => Some(Fault::ValidatorIgnored),
            _ if self.has_hash => Some(Fault::ShortLife),
            Lifetime::Unknown => Some(Fault::Guessed),
            Lifetime::Seconds(_) => None,
        }
    }

    pub(crate) fn measured(&self) -> Value {
        json!({
            "url": self.url,
            "bytes": self.bytes,
            "fields": self.shown,
            "etag": self.has_etag,
            "last_modified": self.has_date,
            "lifetime_s": match self.lifetime {
                Lifetime::Seconds(seconds) => Some(seconds),
                Lifetime::Never => Some(0),
                Lifetime::Unknown => None,
            },
            "hash_in_name": self.has_hash,
            "revalidated": self.is_revalidated,
            "fault": self.fault().map(Fault::name),
        })
    }
}

impl Fault {
    const ALL: [Self; 4] = [
        Self::Downloaded,
        Self::ValidatorIgnored,
        Self::ShortLife,
        Self::Guessed,
    ];

    /// Its name in JSON.
    const fn name(self) -> &'static str {
        match self {
            Self::Downloaded => "downloaded_again",
            Self::ValidatorIgnored => "validator_ignored",
            Self::ShortLife => "short_life_of_a_hashed_name",
            Self::Guessed => "no_lifetime",
        }
    }

    /// The end of a sentence about `n` files.
    const fn words(self) -> &'static str {
        match self {
            Self::Downloaded => "downloaded again at each visit",
            Self::ValidatorIgnored => "downloaded again although the copy is valid",
            Self::ShortLife => "revalidated although the name has a hash",
            Self::Guessed => "without a lifetime, so clients guess one",
        }
    }

    const fn fix(self) -> &'static str {
        match self {
            Self::Downloaded => STORE,
            Self::ValidatorIgnored => REVALIDATE,
            Self::ShortLife => KEEP_LONG,
            Self::Guessed => EXPIRE,
        }
    }
}

/// The finding about all static files of a page, with the cost of the worst: a round trip, and the flights of its download.
pub(crate) fn judge(files: &[StaticFile], round_trip_ms: f64) -> Option<Finding> {
    let with = |fault: Fault| files.iter().filter(move |one| one.fault() == Some(fault));
    let faults = Fault::ALL.into_iter();
    let faults: Vec<(Fault, usize)> = faults
        .map(|fault| (fault, with(fault).count()))
        .filter(|(_, count)| *count > 0)
        .collect();
    let (worst, _) = *faults.first()?;
    let severity = match worst {
        Fault::Guessed => Severity::Note,
        _ => Severity::Warn,
    };
    let parts: Vec<String> = faults
        .iter()
        .map(|(fault, count)| format!("{count} {}", fault.words()))
        .collect();
    let text = poor_caching::any(files.len(), parts.join("; "));
    let lost = |one: &StaticFile| match one.fault() {
        Some(Fault::Downloaded | Fault::ValidatorIgnored) => 1 + further_round_trips(one.bytes),
        Some(Fault::ShortLife) => 1,
        Some(Fault::Guessed) | None => 0,
    };
    // Files are requested side by side.
    let lost = f64::from(files.iter().map(lost).max().unwrap_or_default());
    let mut found = Finding::of(text, severity)
        .costs(lost * round_trip_ms, lost)
        .proof("files", files.len());
    for (fault, _) in &faults {
        let shown = with(*fault).take(LINES_MAX);
        let shown: Vec<String> = shown.map(line).collect();
        found = found.proof(fault.name(), shown);
    }
    let all: Vec<Value> = files.iter().map(StaticFile::measured).collect();
    found = found.proof("static_files", all);
    for (fault, _) in &faults {
        found = found.fix(fault.fix());
    }
    Some(found)
}

fn line(one: &StaticFile) -> String {
    match one.shown.is_empty() {
        true => one.url.clone(),
        false => format!("{} ({})", one.url, one.shown),
    }
}

/// The freshness lifetime of a private cache (RFC 9111 section 4.2.1).
fn lifetime<'a>(
    control: impl Iterator<Item = &'a str>,
    mut expires: impl Iterator<Item = &'a str>,
    mut date: impl Iterator<Item = &'a str>,
) -> Lifetime {
    let mut max_age = None;
    let mut asks_first = false;
    for directive in control.flat_map(|value| value.split(',')) {
        let (name, value) = directive.split_once('=').unwrap_or((directive, ""));
        match name.trim().to_ascii_lowercase().as_str() {
            "no-store" => return Lifetime::Never,
            // With a list it is about those fields alone (section 5.2.2.4).
            "no-cache" => asks_first |= value.is_empty(),
            "max-age" if max_age.is_none() => {
                let number = value.trim().trim_matches('"');
                // An invalid one makes a response stale (section 4.2.1).
                max_age = Some(parse_decimal::<u64>(number.as_bytes()).unwrap_or(0));
            }
            _ => {}
        }
    }
    if asks_first {
        return Lifetime::Seconds(0);
    }
    if let Some(seconds) = max_age {
        return Lifetime::Seconds(seconds);
    }
    let Some(expires) = expires.next() else {
        return Lifetime::Unknown;
    };
    let Some(expires) = parse_http_date(expires.as_bytes()) else {
        return Lifetime::Seconds(0);
    };
    match date
        .next()
        .and_then(|date| parse_http_date(date.as_bytes()))
    {
        Some(date) => Lifetime::Seconds(u64::try_from(expires - date).unwrap_or(0)),
        None => Lifetime::Unknown,
    }
}

/// The last segment of a URL's path.
fn file_name(url: &str) -> &str {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let path = path.split_once("://").map_or(path, |(_, rest)| rest);
    path.rsplit_once('/').map_or("", |(_, name)| name)
}

fn has_extension(name: &str) -> bool {
    let extension = name.rsplit_once('.').map(|(_, extension)| extension);
    extension.is_some_and(|one| {
        EXTENSIONS
            .iter()
            .any(|known| one.eq_ignore_ascii_case(known))
    })
}

/// Whether a file's name has a hash of its content: a part of 8 to 64 hexadecimal digits, figures and letters among them.
fn has_hash(name: &str) -> bool {
    let mut parts = name.split(['.', '-', '_']);
    parts.any(|part| {
        let is_hex = part.bytes().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'));
        // Dates and numbers have figures alone, words have letters alone.
        let has = |is: fn(&u8) -> bool| part.as_bytes().iter().any(is);
        (HASH_CHARS_MIN..=HASH_CHARS_MAX).contains(&part.len())
            && is_hex
            && has(u8::is_ascii_digit)
            && has(u8::is_ascii_alphabetic)
    })
}

/// Extensions of static files that pages load.
const EXTENSIONS: [&str; 22] = [
    "avif", "bmp", "css", "eot", "gif", "ico", "jpeg", "jpg", "js", "mjs", "mp3", "mp4", "ogg",
    "otf", "png", "svg", "ttf", "wasm", "webm", "webp", "woff", "woff2",
];
/// Digits of a hash in a name.
const HASH_CHARS_MIN: usize = 8;
const HASH_CHARS_MAX: usize = 64;
/// The least lifetime of a file with a hash in its name, seconds: 30 days, as Lighthouse has it.
const HASHED_SECONDS_MIN: u64 = 30 * 86_400;
/// Characters of a URL and of the fields of a file in a report.
const SHOWN_CHARS_MAX: usize = 300;
/// Files of each fault that a finding shows people.
const LINES_MAX: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::slow_start::INITIAL_WINDOW_BYTES;

    fn file(url: &str, fields: &[(&str, &str)]) -> Option<StaticFile> {
        let fields = fields.iter();
        let fields: Vec<(String, String)> = fields
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        StaticFile::of(url, "text/css", &fields, 5000)
    }

    fn fault(name: &str, fields: &[(&str, &str)]) -> Option<Fault> {
        let url = format!("https://h/{name}");
        file(&url, fields).expect("it is static").fault()
    }

    const ETAG: (&str, &str) = ("ETag", "\"1\"");
    const MODIFIED: (&str, &str) = ("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT");

    #[test]
    fn files_that_are_kept_or_asked_about_have_no_fault() {
        for control in [
            "max-age=60",
            "public, max-age=31536000, immutable",
            "max-age=0, must-revalidate",
            "no-cache",
            "private, max-age=\"3600\"",
        ] {
            assert_eq!(
                fault("a.css", &[("cache-control", control), ETAG]),
                None,
                "{control}"
            );
        }
        assert_eq!(fault("a.css", &[("cache-control", "max-age=1")]), None);
        let dates = [
            ("Date", "Sun, 06 Nov 1994 08:49:37 GMT"),
            ("Expires", "Sun, 06 Nov 1994 08:49:38 GMT"),
        ];
        assert_eq!(fault("a.css", &dates), None, "one second");
    }

    #[test]
    fn files_that_cannot_be_kept_are_downloaded_again() {
        let again = Some(Fault::Downloaded);
        assert_eq!(fault("a.css", &[]), again);
        assert_eq!(
            fault("a.css", &[("cache-control", "No-Store"), ETAG]),
            again
        );
        assert_eq!(fault("a.css", &[("cache-control", "max-age=0")]), again);
        assert_eq!(fault("a.css", &[("cache-control", "max-age=soon")]), again);
        assert_eq!(fault("a.css", &[("expires", "0")]), again);
        assert_eq!(fault("a.css", &[("last-modified", "yesterday")]), again);
        let dates = [
            ("Date", "Sun, 06 Nov 1994 08:49:37 GMT"),
            ("Expires", "Sun, 06 Nov 1994 08:49:37 GMT"),
        ];
        assert_eq!(fault("a.css", &dates), again, "no second");
    }

    #[test]
    fn files_without_a_lifetime_are_guessed() {
        assert_eq!(fault("a.css", &[MODIFIED]), Some(Fault::Guessed));
        assert_eq!(
            fault("a.css", &[("cache-control", "public"), ETAG]),
            Some(Fault::Guessed)
        );
        assert_eq!(
            fault("a.css", &[("cache-control", "no-cache=\"x\""), ETAG]),
            Some(Fault::Guessed)
        );
    }

    #[test]
    fn hashed_names_are_kept_for_thirty_days() {
        let name = "app.0a1b2c3d.css";
        let of = |seconds: u64| {
            let control = format!("max-age={seconds}");
            fault(name, &[("cache-control", &control), ETAG])
        };
        assert_eq!(of(HASHED_SECONDS_MIN), None);
        assert_eq!(of(HASHED_SECONDS_MIN + 1), None);
        assert_eq!(of(HASHED_SECONDS_MIN - 1), Some(Fault::ShortLife));
        assert_eq!(fault(name, &[MODIFIED]), Some(Fault::ShortLife));
        assert_eq!(
            fault(name, &[("cache-control", "no-cache"), ETAG]),
            Some(Fault::ShortLife)
        );
    }

    #[test]
    fn hashes_are_told_from_dates_and_words() {
        for (name, expected) in [
            ("app.0a1b2c3d.js", true),
            ("app-0a1b2c3.js", false),
            (&format!("{}.js", "a1".repeat(32)), true),
            (&format!("{}a.js", "a1".repeat(32)), false),
            ("IMG_20240131_101500.jpg", false),
            ("deadbeef.png", false),
            ("jquery-3.6.0.min.js", false),
            ("0A1B2C3D.js", false),
        ] {
            assert_eq!(has_hash(name), expected, "{name}");
        }
    }

    #[test]
    fn validators_count_once_they_were_tried() {
        let mut one =
            file("https://h/a.css", &[("cache-control", "no-cache"), ETAG]).expect("static");
        for (answer, expected) in [
            (None, None),
            (Some(true), None),
            (Some(false), Some(Fault::ValidatorIgnored)),
        ] {
            one.is_revalidated = answer;
            assert_eq!(one.fault(), expected);
        }
    }

    #[test]
    fn only_static_files_are_judged() {
        for (url, is_static) in [
            ("https://h/a.css?v=3", true),
            ("https://h/A.PNG", true),
            ("https://h/image.php?a=b.png", false),
            ("https://h.css", false),
            ("https://h/", false),
            ("https://h/css", false),
        ] {
            assert_eq!(file(url, &[]).is_some(), is_static, "{url}");
        }
        assert_eq!(file("https://h/a.css", &[("Set-Cookie", "a=b")]), None);
        let page = StaticFile::of("https://h/a.js", "text/html; charset=utf-8", &[], 1);
        assert_eq!(page, None, "an error page in its place");
    }

    #[test]
    fn finding_has_the_worst_fault_and_its_cost() {
        let files = [
            file("https://h/a.css", &[]),
            file("https://h/b.css", &[MODIFIED]),
            file("https://h/c.css", &[ETAG, ("cache-control", "max-age=9")]),
        ];
        let mut files: Vec<StaticFile> = files.into_iter().flatten().collect();
        // Two round trips beyond the one of the first byte.
        files[0].bytes = 3 * INITIAL_WINDOW_BYTES + 1;
        let found = judge(&files, 50.0).expect("there are faults");
        assert_eq!(
            (found.severity, found.lost_ms, found.lost_round_trips),
            (Severity::Warn, 150.0, 3.0)
        );
        assert!(found.title.contains("Of 3 static files"), "{}", found.title);
        assert_eq!(found.evidence["no_lifetime"], json!(["https://h/b.css"]));
        let note = judge(&files[1..], 50.0).expect("one has no lifetime");
        assert_eq!((note.severity, note.lost_ms), (Severity::Note, 0.0));
        assert_eq!(judge(&files[2..], 50.0), None);
    }
}
