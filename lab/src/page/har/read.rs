//! From archives to visits.

use std::collections::HashMap;

use engines::http::parse_decimal;

use super::entry::Entry;
use super::lenient::Object;
use super::log::{PageHead, RawFile, RawLog};
use super::{FILE_BYTES_MAX, Fault, PAGES_MAX, Page, TIME_MS_MAX};
use crate::client::Url;
use crate::page::resource::{Kind, Resource};
use crate::page::visit::{Agent, PageTimings, Visit};

/// Reads an archive: a visit of each page, in the order of the file, with one at least. Entries without a page are the first
/// one's. Time and memory are bounded by a multiple of the file's size.
///
/// # Errors
/// It is too large, not JSON, no archive, or without entries; a member is broken.
pub fn read(archive: &[u8]) -> Result<Vec<Page>, Fault> {
    if archive.len() as u64 > FILE_BYTES_MAX {
        let why = format!("it is larger than {} MiB", FILE_BYTES_MAX >> 20);
        return Err(Fault::new("", why));
    }
    // Windows programs begin files with the mark of UTF-8.
    let json = archive.strip_prefix(b"\xef\xbb\xbf").unwrap_or(archive);
    if json.iter().all(u8::is_ascii_whitespace) {
        return Err(Fault::new("", "it is empty"));
    }
    // The whole text is checked, since the parser does not check skipped texts.
    let json = std::str::from_utf8(json).map_err(|error| {
        let place = error.valid_up_to();
        Fault::new("", format!("invalid UTF-8 at byte {place}"))
    })?;
    let file: Object<RawFile> =
        serde_json::from_str(json).map_err(|error| Fault::new("", unreadable(&error)))?;
    let no_archive = |fault: Fault| Fault::new("", format!("not a HAR file: {fault}"));
    let log = file.required("").and_then(|file| file.log.required("log"));
    pages(log.map_err(no_archive)?)
}

/// Reports an error of the parser. A duplicate member is valid JSON.
fn unreadable(error: &serde_json::Error) -> String {
    match error.is_data() {
        true => format!("not a HAR file: {error}"),
        false => format!("it is not JSON: {error}"),
    }
}

fn pages(log: RawLog) -> Result<Vec<Page>, Fault> {
    let creator = log.creator.optional("log.creator")?.unwrap_or_default();
    let creator = creator
        .read(false)
        .map_err(|fault| fault.within("log.creator"))?;
    let browser = log.browser.optional("log.browser")?;
    let browser = browser.map(|browser| browser.read(true)).transpose();
    let browser = browser.map_err(|fault| fault.within("log.browser"))?;
    let heads = log.pages.elements("log.pages")?;
    let entries = log
        .entries
        .ok_or_else(|| Fault::new("log.entries", "it is missing"))?
        .elements("log.entries")?;
    if entries.is_empty() {
        return Err(Fault::new("log.entries", "there are none"));
    }
    let source = Source { creator, browser };
    let groups = grouped(heads, entries)?;
    groups.into_iter().map(|group| source.page(group)).collect()
}

/// A page with its entries and their places in the file.
struct Group {
    head: PageHead,
    entries: Vec<(usize, Entry)>,
}

/// Entries by page.
fn grouped(heads: Vec<PageHead>, entries: Vec<Entry>) -> Result<Vec<Group>, Fault> {
    let group = |head: PageHead| Group {
        head,
        entries: Vec::new(),
    };
    let mut groups: Vec<Group> = heads.into_iter().map(group).collect();
    let mut places: HashMap<String, usize> = HashMap::new();
    for (place, group) in groups.iter().enumerate() {
        places.entry(group.head.id.clone()).or_insert(place);
    }
    for (number, entry) in entries.into_iter().enumerate() {
        // A page may exist only in its entries. Entries without a page belong to the first one.
        let place = match &entry.pageref {
            None if !groups.is_empty() => 0,
            name => {
                let id = name.clone().unwrap_or_default();
                *places.entry(id.clone()).or_insert_with(|| {
                    groups.push(group(PageHead {
                        id,
                        ..PageHead::default()
                    }));
                    groups.len() - 1
                })
            }
        };
        if groups.len() > PAGES_MAX {
            let why = format!("there are more than {PAGES_MAX} pages");
            return Err(Fault::new(format!("log.entries[{number}].pageref"), why));
        }
        groups[place].entries.push((number, entry));
    }
    Ok(groups)
}

/// The program that wrote the archive, and the browser that it watched.
struct Source {
    creator: Agent,
    browser: Option<Agent>,
}

impl Source {
    fn page(&self, group: Group) -> Result<Page, Fault> {
        let Group { head, mut entries } = group;
        let is_ours = entries.iter().all(|(_, entry)| entry.is_ours());
        let earliest = entries.iter().map(|(_, entry)| entry.started_unix_ms);
        let earliest = earliest.min_by(f64::total_cmp);
        let page_start = head.started_unix_ms.or(earliest).unwrap_or_default();
        // A page can be noted later than its first request; nothing begins before a visit.
        let base = match is_ours {
            true => page_start,
            false => earliest.map_or(page_start, |first| first.min(page_start)),
        };
        for (number, entry) in &mut entries {
            entry.resource.start_ms = start_ms(entry, base, page_start)
                .map_err(|fault| fault.within(&format!("log.entries[{number}]")))?;
        }
        if !is_ours {
            entries.sort_by(|(_, a), (_, b)| a.resource.start_ms.total_cmp(&b.resource.start_ms));
        }
        let firefox = self.creator.name == FIREFOX;
        let connections = connections(&entries, is_ours, firefox);
        let initiators = initiators(&entries);
        let entries = entries.into_iter().zip(connections).zip(initiators);
        let resources: Vec<Resource> = entries
            .map(|(((_, entry), connection), initiator)| Resource {
                connection,
                initiator,
                ..entry.resource
            })
            .collect();
        let timings = head.timings;
        let timings = match is_ours {
            true => timings,
            false => of_others(timings, page_start - base, &resources),
        };
        let url = head.url.unwrap_or_else(|| first_document(&resources));
        let mut notes = head.notes;
        if !is_ours {
            let Agent { name, version, .. } = &self.creator;
            notes.push(format!("read from a HAR file of {name} {version}"));
        }
        let visit = Visit {
            title: head.title.filter(|title| *title != url),
            agent: head.agent.unwrap_or_else(|| self.agent(&timings)),
            view: head.view,
            started_unix_ms: base,
            resources,
            timings,
            filmstrip: Vec::new(),
            round_trip_ms: head.round_trip_ms,
            withheld: head.withheld,
            notes,
            url,
        };
        Ok(Page { id: head.id, visit })
    }

    /// Returns the program that visited the page: the browser, or the writer of the archive. The writer is taken for a
    /// browser if the page has load times.
    fn agent(&self, timings: &PageTimings) -> Agent {
        let has_times = timings.load_ms.is_some() || timings.dom_content_loaded_ms.is_some();
        self.browser.clone().unwrap_or_else(|| Agent {
            is_browser: has_times,
            ..self.creator.clone()
        })
    }
}

/// Returns when a resource was requested, ms from the start of the visit.
fn start_ms(entry: &Entry, base: f64, page_start: f64) -> Result<f64, Fault> {
    let start = entry.started_unix_ms - base;
    if start.abs() > TIME_MS_MAX {
        let why = "more than a week from the start of its page";
        return Err(Fault::new("startedDateTime", why));
    }
    // The exact time counts unless the date was changed.
    if let Some(exact) = entry.start_ms.filter(|ms| (ms - start).abs() < 1.0) {
        return Ok(exact);
    }
    let phases = &entry.resource.phases;
    let opening = [phases.dns_ms, phases.connect_ms, phases.tls_ms];
    let opening_ms: f64 = opening.into_iter().flatten().sum();
    // In archives of WebPageTest, an entry starts when its request is sent, after the connection is open.
    let after_page = entry.started_unix_ms - page_start;
    let is_sent = |at: f64| (at - after_page).abs() < 1.0;
    match entry.load_start_ms.is_some_and(is_sent) {
        true => Ok((start - opening_ms).max(0.0)),
        false => Ok(start),
    }
}

/// Returns numbers of connections: their own if all of them are numbers, else in the order of first use.
fn connections(entries: &[(usize, Entry)], is_ours: bool, firefox: bool) -> Vec<Option<u64>> {
    let name = |entry: &Entry| -> Option<String> {
        let name = entry.connection.clone()?;
        // Firefox writes the port of the server, which does not identify a connection. 0 means no connection in Chrome,
        // -1 in WebPageTest.
        let port = || {
            Url::parse(&entry.resource.url)
                .ok()
                .map(|url| url.port.to_string())
        };
        let is_none = matches!(name.as_str(), "0" | "-1") || (firefox && port()? == name);
        (is_ours || !is_none).then_some(name)
    };
    let names: Vec<Option<String>> = entries.iter().map(|(_, entry)| name(entry)).collect();
    let numbers: Option<Vec<u64>> = names
        .iter()
        .flatten()
        .map(|name| parse_decimal(name.as_bytes()))
        .collect();
    if numbers.is_some() {
        let number = |name: &Option<String>| parse_decimal(name.as_ref()?.as_bytes());
        return names.iter().map(number).collect();
    }
    let mut known: HashMap<&str, u64> = HashMap::new();
    let mut found = Vec::with_capacity(names.len());
    for name in &names {
        let next = known.len() as u64 + 1;
        let number = name
            .as_deref()
            .map(|name| *known.entry(name).or_insert(next));
        found.push(number);
    }
    found
}

/// Returns places of initiators: by index in our archives, else the last resource before with that URL.
fn initiators(entries: &[(usize, Entry)]) -> Vec<Option<usize>> {
    let mut last: HashMap<&str, usize> = HashMap::new();
    let mut found = Vec::with_capacity(entries.len());
    for (place, (_, entry)) in entries.iter().enumerate() {
        let index = entry.initiator.index.filter(|index| {
            entry.is_ours() && index.fract() == 0.0 && (0.0..entries.len() as f64).contains(index)
        });
        let url = entry.initiator.url.as_deref();
        let url = url.map(|url| url.split('#').next().unwrap_or_default());
        let by_url = || url.and_then(|url| last.get(url).copied());
        found.push(index.map(|index| index as usize).or_else(by_url));
        last.insert(&entry.resource.url, place);
    }
    found
}

/// Converts times of another program's page: they count from the start of the visit. A missing first byte is that of
/// the document.
fn of_others(timings: PageTimings, later_ms: f64, resources: &[Resource]) -> PageTimings {
    let sane = |ms: &f64| *ms <= TIME_MS_MAX;
    let moved = |ms: Option<f64>| {
        let moved = ms.filter(|ms| *ms > 0.0).map(|ms| ms + later_ms);
        moved.filter(sane)
    };
    let is_document = |one: &&Resource| {
        one.kind == Kind::Document
            && one.phases.wait_ms.is_some()
            && !REDIRECTS.contains(&one.status)
    };
    let document = resources.iter().find(is_document);
    PageTimings {
        first_byte_ms: moved(timings.first_byte_ms)
            .or_else(|| document.map(Resource::first_byte_ms).filter(sane)),
        first_paint_ms: moved(timings.first_paint_ms),
        first_contentful_paint_ms: moved(timings.first_contentful_paint_ms),
        largest_contentful_paint_ms: moved(timings.largest_contentful_paint_ms),
        dom_content_loaded_ms: moved(timings.dom_content_loaded_ms),
        load_ms: moved(timings.load_ms),
    }
}

/// Returns the URL of the first document, or of the first resource.
fn first_document(resources: &[Resource]) -> String {
    let mut documents = resources.iter().filter(|one| one.kind == Kind::Document);
    let first = documents.next().or_else(|| resources.first());
    first
        .map(|resource| resource.url.clone())
        .unwrap_or_default()
}

const FIREFOX: &str = "Firefox";
const REDIRECTS: std::ops::Range<u16> = 300..400;
