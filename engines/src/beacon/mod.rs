//! Beacons: the measurements of one page view, in the format of the script of `experiment_beacon`.
//!
//! [`parse`] takes the whole body of a request and returns a [`Beacon`]. A beacon is a text of lines. The script
//! writes each field in one form only; any other form is a [`Fault`]. The last line is a mark, so a truncated
//! beacon is not a beacon.
//!
//! ```text
//! firstbyte 1                              version of the format
//! v 00c0ffee00c0ffee                       id of the view, 16 hexadecimal digits
//! a 5230                                   age of the page when the script sent this, ms
//! n 0 3 9 9 14 31 31 80 95 900 950         Navigation Timing: the points of [`Point`], us
//! p 700 800 48 103                         first and largest contentful paint, interaction to next paint, us;
//!                                          layout shift, thousandths
//! h static.example.com 20 1 0 48213 940    static files of a host: number, failed, truncated, bytes, end of the last, us
//! .
//! ```
//!
//! `-` is an unknown time. Times count from the start of the navigation. There are 0 to [`HOSTS_MAX`] lines `h`.
//! Absent: users, arms and rates, which are the server's.
//!
//! Source: docs/beacon.md; W3C Navigation Timing 2, Resource Timing, Paint Timing, Largest Contentful Paint, Event Timing.

mod metric;
#[cfg(test)]
mod tests;

use std::fmt;

pub use metric::{VISIT_METRICS, VisitMetric};

/// A point of Navigation Timing, in the order of the line `n`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// `activationStart`: when a prerendered page was shown.
    Activation,
    /// `domainLookupStart`.
    LookupStart,
    /// `domainLookupEnd`.
    LookupEnd,
    /// `connectStart`.
    ConnectStart,
    /// `secureConnectionStart`.
    SecureStart,
    /// `connectEnd`.
    ConnectEnd,
    /// `requestStart`.
    Request,
    /// `responseStart`.
    ResponseStart,
    /// `responseEnd`.
    ResponseEnd,
    /// `domContentLoadedEventEnd`.
    DomContentLoaded,
    /// `loadEventEnd`.
    Load,
}

/// Number of points.
pub const POINTS: usize = Point::Load as usize + 1;

/// The measurements of one page view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beacon {
    /// Random id of the view.
    pub view: u64,
    /// Time from the start of the navigation until the beacon was sent, milliseconds, up to [`AGE_MAX_MS`].
    pub age_ms: u32,
    /// Points of Navigation Timing by [`Point`], microseconds, up to [`TIME_MAX_US`].
    points: [Option<u32>; POINTS],
    /// First contentful paint, microseconds after the start of the navigation.
    first_paint_us: Option<u32>,
    /// Largest contentful paint, microseconds after the start of the navigation.
    largest_paint_us: Option<u32>,
    /// Interaction to next paint, microseconds.
    pub interaction_us: Option<u32>,
    /// Cumulative layout shift, thousandths, up to [`SHIFT_MAX`].
    pub shift: Option<u32>,
    /// Static files by host; each host once.
    pub hosts: Vec<HostFiles>,
}

/// Static files of one host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostFiles {
    /// Name of the host in lower case, without its port.
    pub host: Box<str>,
    /// Number of different files, up to [`FILES_MAX`].
    pub files: u32,
    /// Files that could not be loaded; truncated files are not among them.
    pub failed: u32,
    /// Files with fewer bytes than the server announced.
    pub truncated: u32,
    /// Received bytes of bodies, up to [`BYTES_MAX`].
    pub bytes: u64,
    /// End of the last file, microseconds after the start of the navigation.
    pub end_us: Option<u32>,
}

/// The reason why a body is no beacon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Another version of the format.
    Version,
    /// An unknown line or field, or a missing one.
    Malformed,
    /// A number above its limit, a host longer than [`HOST_MAX_BYTES`], or more than [`HOSTS_MAX`] hosts.
    Limit,
    /// The page is older than [`AGE_MAX_MS`].
    Old,
    /// A point is before its predecessor.
    Backwards,
    /// A time is more than [`AHEAD_MAX_US`] after the beacon was sent.
    Future,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Version => "unknown version",
            Self::Malformed => "malformed",
            Self::Limit => "a field is above its limit",
            Self::Old => "the page is too old",
            Self::Backwards => "times run backwards",
            Self::Future => "a time is in the future",
        })
    }
}

/// Reads a whole beacon.
///
/// # Errors
/// The text is no beacon, or its times are not plausible.
pub fn parse(input: &[u8]) -> Result<Beacon, Fault> {
    let rest = input.strip_prefix(START).ok_or(Fault::Malformed)?;
    let mut lines = Lines(rest);
    if lines.next()? != VERSION {
        return Err(Fault::Version);
    }
    let mut fields = lines.fields(b'v')?;
    let view = view_id(fields.next()?)?;
    fields.end()?;
    let mut fields = lines.fields(b'a')?;
    let age_ms = fields.number(u64::MAX)?;
    fields.end()?;
    let age_ms = u32::try_from(age_ms).ok().filter(|age| *age <= AGE_MAX_MS);
    let age_ms = age_ms.ok_or(Fault::Old)?;
    let mut fields = lines.fields(b'n')?;
    let mut points = [None; POINTS];
    for point in &mut points {
        *point = fields.time()?;
    }
    fields.end()?;
    let mut fields = lines.fields(b'p')?;
    let [first_paint_us, largest_paint_us, interaction_us] =
        [fields.time()?, fields.time()?, fields.time()?];
    let shift = fields.optional(u64::from(SHIFT_MAX))?;
    fields.end()?;
    let hosts = lines.hosts()?;
    let beacon = Beacon {
        view,
        age_ms,
        points,
        first_paint_us,
        largest_paint_us,
        interaction_us,
        shift,
        hosts,
    };
    beacon.check_order()?;
    beacon.check_age()?;
    Ok(beacon)
}

impl Beacon {
    fn at(&self, point: Point) -> Option<u32> {
        self.points[point as usize]
    }

    /// Time from one point to another; `None` if one of them is unknown.
    fn between(&self, from: Point, to: Point) -> Option<u32> {
        self.at(to)?.checked_sub(self.at(from)?)
    }

    /// Time since the visitor saw the view: a prerendered page begins with its activation.
    fn since_start(&self, us: Option<u32>) -> Option<u32> {
        let start = self.at(Point::Activation).unwrap_or(0);
        us.map(|us| us.saturating_sub(start))
    }

    /// Whether the navigation opened a connection of its own.
    fn is_connected(&self) -> bool {
        self.between(Point::ConnectStart, Point::ConnectEnd)
            .is_some_and(|us| us > 0)
    }

    /// Returns the age of the view when the beacon was sent, milliseconds.
    #[must_use]
    pub fn view_age_ms(&self) -> u32 {
        let activation_ms = self.at(Point::Activation).unwrap_or(0) / 1000;
        self.age_ms.saturating_sub(activation_ms)
    }

    /// Returns the time of the name lookup, microseconds; `None` on a reused connection.
    #[must_use]
    pub fn lookup_us(&self) -> Option<u32> {
        let lookup = self.between(Point::LookupStart, Point::LookupEnd);
        lookup.filter(|_| self.is_connected())
    }

    /// Returns the time of the TCP handshake, microseconds; `None` on a reused connection.
    #[must_use]
    pub fn connect_us(&self) -> Option<u32> {
        let tcp = self.between(Point::ConnectStart, Point::SecureStart);
        let whole = || self.between(Point::ConnectStart, Point::ConnectEnd);
        tcp.or_else(whole).filter(|_| self.is_connected())
    }

    /// Returns the time of the TLS handshake, microseconds; `None` on a reused connection and without TLS.
    #[must_use]
    pub fn tls_us(&self) -> Option<u32> {
        let tls = self.between(Point::SecureStart, Point::ConnectEnd);
        tls.filter(|_| self.is_connected())
    }

    /// Returns the time until the first byte of the response, microseconds after the view began.
    #[must_use]
    pub fn first_byte_us(&self) -> Option<u32> {
        self.since_start(self.at(Point::ResponseStart))
    }

    /// Returns the time until the last byte of the response, microseconds after the view began.
    #[must_use]
    pub fn response_end_us(&self) -> Option<u32> {
        self.since_start(self.at(Point::ResponseEnd))
    }

    /// Returns the end of the event `DOMContentLoaded`, microseconds after the view began.
    #[must_use]
    pub fn dom_content_loaded_us(&self) -> Option<u32> {
        self.since_start(self.at(Point::DomContentLoaded))
    }

    /// Returns the end of the event `load`, microseconds after the view began; `None` if the page was not loaded.
    #[must_use]
    pub fn load_us(&self) -> Option<u32> {
        self.since_start(self.at(Point::Load))
    }

    /// Returns the first contentful paint, microseconds after the view began.
    #[must_use]
    pub fn first_paint_us(&self) -> Option<u32> {
        self.since_start(self.first_paint_us)
    }

    /// Returns the largest contentful paint, microseconds after the view began.
    #[must_use]
    pub fn largest_paint_us(&self) -> Option<u32> {
        self.since_start(self.largest_paint_us)
    }

    /// Returns the end of the last static file of a host, microseconds after the view began.
    #[must_use]
    pub fn files_us(&self, host: &HostFiles) -> Option<u32> {
        self.since_start(host.end_us)
    }

    /// Known points follow each other. Paints are not compared: browsers report the load time of images of other origins
    /// as their paint.
    fn check_order(&self) -> Result<(), Fault> {
        for chain in [&NETWORK[..], &DOCUMENT] {
            let known = chain.iter().filter_map(|point| self.at(*point));
            if !known.is_sorted() {
                return Err(Fault::Backwards);
            }
        }
        Ok(())
    }

    /// No time is after the beacon.
    fn check_age(&self) -> Result<(), Fault> {
        let latest = u64::from(self.age_ms) * 1000 + u64::from(AHEAD_MAX_US);
        let times = self.points.iter().copied();
        let paints = [
            self.first_paint_us,
            self.largest_paint_us,
            self.interaction_us,
        ];
        let files = self.hosts.iter().map(|host| host.end_us);
        let mut known = times.chain(paints).chain(files).flatten();
        if known.any(|us| u64::from(us) > latest) {
            return Err(Fault::Future);
        }
        Ok(())
    }

    /// Panics if a field is out of its limits.
    pub fn check_invariants(&self) {
        assert!(self.age_ms <= AGE_MAX_MS && self.hosts.len() <= HOSTS_MAX);
        assert!(self.points.iter().flatten().all(|us| *us <= TIME_MAX_US));
        assert!(self.shift.is_none_or(|shift| shift <= SHIFT_MAX));
        for host in &self.hosts {
            assert!((1..=HOST_MAX_BYTES).contains(&host.host.len()));
            assert!(host.failed + host.truncated <= host.files && host.files <= FILES_MAX);
            assert!(host.bytes <= BYTES_MAX);
        }
    }
}

/// The unread lines.
struct Lines<'a>(&'a [u8]);

impl<'a> Lines<'a> {
    /// Returns the next line without its end.
    fn next(&mut self) -> Result<&'a [u8], Fault> {
        let end = memchr::memchr(b'\n', self.0).ok_or(Fault::Malformed)?;
        let line = &self.0[..end];
        self.0 = &self.0[end + 1..];
        Ok(line)
    }

    /// Returns the fields of the next line, which must begin with a letter.
    fn fields(&mut self, letter: u8) -> Result<Fields<'a>, Fault> {
        match self.next()? {
            [first, b' ', rest @ ..] if *first == letter => Ok(Fields(Some(rest))),
            _ => Err(Fault::Malformed),
        }
    }

    /// Reads the lines of hosts up to the end of the beacon.
    fn hosts(&mut self) -> Result<Vec<HostFiles>, Fault> {
        let mut hosts: Vec<HostFiles> = Vec::new();
        while self.0 != END {
            let mut fields = self.fields(b'h')?;
            let host = host_files(&mut fields)?;
            fields.end()?;
            if hosts.len() == HOSTS_MAX {
                return Err(Fault::Limit);
            }
            if hosts.iter().any(|known| known.host == host.host) {
                return Err(Fault::Malformed);
            }
            hosts.push(host);
        }
        Ok(hosts)
    }
}

/// The unread fields of a line; `None` after the last.
struct Fields<'a>(Option<&'a [u8]>);

impl<'a> Fields<'a> {
    fn next(&mut self) -> Result<&'a [u8], Fault> {
        let text = self.0.take().ok_or(Fault::Malformed)?;
        match memchr::memchr(b' ', text) {
            Some(end) => {
                self.0 = Some(&text[end + 1..]);
                Ok(&text[..end])
            }
            None => Ok(text),
        }
    }

    fn end(&self) -> Result<(), Fault> {
        self.0.map_or(Ok(()), |_| Err(Fault::Malformed))
    }

    fn number(&mut self, most: u64) -> Result<u64, Fault> {
        number(self.next()?, most)
    }

    /// Reads a number, or `-` for an unknown one.
    fn optional(&mut self, most: u64) -> Result<Option<u32>, Fault> {
        match self.next()? {
            b"-" => Ok(None),
            text => Ok(Some(narrow(number(text, most)?)?)),
        }
    }

    fn time(&mut self) -> Result<Option<u32>, Fault> {
        self.optional(u64::from(TIME_MAX_US))
    }
}

/// Reads a decimal number without sign and leading zeros.
fn number(text: &[u8], most: u64) -> Result<u64, Fault> {
    let is_canonical = match text {
        [] => false,
        [b'0', rest @ ..] => rest.is_empty(),
        _ => true,
    };
    if !is_canonical || !text.iter().all(u8::is_ascii_digit) {
        return Err(Fault::Malformed);
    }
    let digit = |sum: u64, byte: &u8| sum.checked_mul(10)?.checked_add(u64::from(byte - b'0'));
    let number = text.iter().try_fold(0, digit);
    number.filter(|number| *number <= most).ok_or(Fault::Limit)
}

fn narrow(number: u64) -> Result<u32, Fault> {
    u32::try_from(number).map_err(|_| Fault::Limit)
}

/// Reads 16 hexadecimal digits in lower case.
fn view_id(text: &[u8]) -> Result<u64, Fault> {
    let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if text.len() != VIEW_DIGITS || !text.iter().all(is_digit) {
        return Err(Fault::Malformed);
    }
    let value = |byte: &u8| {
        u64::from(if *byte > b'9' {
            byte - b'a' + 10
        } else {
            byte - b'0'
        })
    };
    Ok(text.iter().fold(0, |id, byte| id << 4 | value(byte)))
}

fn host_files(fields: &mut Fields<'_>) -> Result<HostFiles, Fault> {
    let host = host_name(fields.next()?)?;
    let files = fields.number(FILES_MAX.into())?;
    let failed = fields.number(files)?;
    // A file is counted once, so both together are no more than all files.
    let truncated = fields.number(files - failed)?;
    Ok(HostFiles {
        host,
        files: narrow(files)?,
        failed: narrow(failed)?,
        truncated: narrow(truncated)?,
        bytes: fields.number(BYTES_MAX)?,
        end_us: fields.time()?,
    })
}

/// Reads the name of a host as the URL standard writes it: lower case, or an address.
fn host_name(text: &[u8]) -> Result<Box<str>, Fault> {
    let is_allowed = |byte: &u8| {
        byte.is_ascii_lowercase()
            || byte.is_ascii_digit()
            || matches!(byte, b'.' | b'-' | b'_' | b'[' | b']' | b':')
    };
    if text.is_empty() || !text.iter().all(is_allowed) {
        return Err(Fault::Malformed);
    }
    if text.len() > HOST_MAX_BYTES {
        return Err(Fault::Limit);
    }
    let name = str::from_utf8(text).map_err(|_| Fault::Malformed)?;
    Ok(name.into())
}

/// Points of the network, in the order of Navigation Timing.
const NETWORK: [Point; 8] = [
    Point::LookupStart,
    Point::LookupEnd,
    Point::ConnectStart,
    Point::SecureStart,
    Point::ConnectEnd,
    Point::Request,
    Point::ResponseStart,
    Point::ResponseEnd,
];
/// Points of the document. The end of the response may come after them if a script stops the load.
const DOCUMENT: [Point; 3] = [Point::ResponseStart, Point::DomContentLoaded, Point::Load];

const START: &[u8] = b"firstbyte ";
const VERSION: &[u8] = b"1";
const END: &[u8] = b".";
/// Digits of the id of a view.
const VIEW_DIGITS: usize = 16;

/// Maximum age of a page, milliseconds: a day.
pub const AGE_MAX_MS: u32 = 86_400_000;
/// Maximum of a time, microseconds: an hour.
pub const TIME_MAX_US: u32 = 3_600_000_000;
/// Maximum time by which a point may be after the beacon, microseconds. Browsers round each clock on its own, up to 100 ms.
pub const AHEAD_MAX_US: u32 = 200_000;
/// Maximum of the layout shift, thousandths.
pub const SHIFT_MAX: u32 = 1_000_000;
/// Maximum number of hosts.
pub const HOSTS_MAX: usize = 12;
/// Maximum length of a host, bytes (RFC 1035 section 2.3.4).
pub const HOST_MAX_BYTES: usize = 253;
/// Maximum number of files of a host.
pub const FILES_MAX: u32 = 10_000;
/// Maximum number of bytes of a host's files: 64 GiB.
pub const BYTES_MAX: u64 = 1 << 36;
/// Maximum length of a beacon, bytes.
pub const BEACON_MAX_BYTES: usize = 4096;
