//! The outer members of an archive: programs and pages.

use serde::Deserialize;

use super::entry::Entry;
use super::lenient::{Element, List, Object, Value};
use super::{Fault, PAGES_MAX, WITHHELD_MAX};
use crate::page::visit::{Agent, PageTimings, View, Withheld};

/// The whole file.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RawFile {
    pub(super) log: Object<RawLog>,
}

/// `log`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RawLog {
    pub(super) creator: Object<RawAgent>,
    pub(super) browser: Object<RawAgent>,
    pub(super) pages: List<PageHead>,
    pub(super) entries: Option<List<Entry>>,
}

/// A program's name.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RawAgent {
    name: Value,
    version: Value,
    #[serde(rename = "_isBrowser")]
    is_browser: Value,
}

impl RawAgent {
    /// Reads the program; `is_browser` applies if the archive does not specify it.
    pub(super) fn read(self, is_browser: bool) -> Result<Agent, Fault> {
        Ok(Agent {
            name: self.name.text("name")?.unwrap_or_default(),
            version: self.version.text("version")?.unwrap_or_default(),
            is_browser: match self.is_browser {
                Value::Missing => is_browser,
                said => said.is_true(),
            },
        })
    }
}

/// A page without its entries.
#[derive(Clone, Debug, Default)]
pub(super) struct PageHead {
    pub(super) id: String,
    /// ms since 1970 in UTC.
    pub(super) started_unix_ms: Option<f64>,
    pub(super) title: Option<String>,
    pub(super) url: Option<String>,
    pub(super) view: View,
    pub(super) round_trip_ms: Option<f64>,
    pub(super) withheld: Option<Vec<Withheld>>,
    pub(super) notes: Vec<String>,
    pub(super) agent: Option<Agent>,
    pub(super) timings: PageTimings,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct RawPage {
    id: Value,
    started_date_time: Value,
    title: Value,
    page_timings: Object<RawPageTimings>,
    #[serde(rename = "_startedUnixMs")]
    started_unix_ms: Value,
    #[serde(rename = "_url")]
    url: Value,
    #[serde(rename = "_URL")]
    url_of_webpagetest: Value,
    #[serde(rename = "_TTFB")]
    first_byte_of_webpagetest: Value,
    #[serde(rename = "_view")]
    view: Value,
    #[serde(rename = "_cached")]
    cached: Value,
    #[serde(rename = "_roundTripMs")]
    round_trip_ms: Value,
    #[serde(rename = "_withheld")]
    withheld: Option<List<Withheld>>,
    #[serde(rename = "_notes")]
    notes: List<String>,
    #[serde(rename = "_agent")]
    agent: Object<RawAgent>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RawPageTimings {
    on_content_load: Value,
    on_load: Value,
    #[serde(rename = "_firstByte")]
    first_byte: Value,
    #[serde(rename = "_firstPaint")]
    first_paint: Value,
    #[serde(rename = "_startRender")]
    start_render: Value,
    #[serde(rename = "_firstContentfulPaint")]
    first_contentful_paint: Value,
    #[serde(rename = "_largestContentfulPaint")]
    largest_contentful_paint: Value,
}

impl RawPageTimings {
    fn read(&self) -> Result<PageTimings, Fault> {
        let first_paint_ms = self.first_paint.time_ms("_firstPaint")?;
        let start_render_ms = self.start_render.time_ms("_startRender")?;
        let contentful = self
            .first_contentful_paint
            .time_ms("_firstContentfulPaint")?;
        let largest = self
            .largest_contentful_paint
            .time_ms("_largestContentfulPaint")?;
        Ok(PageTimings {
            first_byte_ms: self.first_byte.time_ms("_firstByte")?,
            first_paint_ms: first_paint_ms.or(start_render_ms),
            first_contentful_paint_ms: contentful,
            largest_contentful_paint_ms: largest,
            dom_content_loaded_ms: self.on_content_load.time_ms("onContentLoad")?,
            load_ms: self.on_load.time_ms("onLoad")?,
        })
    }
}

impl Element for PageHead {
    type Raw = Object<RawPage>;
    const MOST: usize = PAGES_MAX;
    const NAME: &'static str = "pages";

    fn new(raw: Object<RawPage>) -> Result<Self, Fault> {
        let raw = raw.required("")?;
        let started = raw.started_date_time.date("startedDateTime")?;
        // The exact time counts unless the date was changed.
        let exact = raw.started_unix_ms.number("_startedUnixMs")?;
        let exact = exact.filter(|ms| started.is_some_and(|date| (date - ms).abs() < 1.0));
        let timings = raw
            .page_timings
            .optional("pageTimings")?
            .unwrap_or_default();
        let mut timings = timings
            .read()
            .map_err(|fault| fault.within("pageTimings"))?;
        let first_byte_ms = raw.first_byte_of_webpagetest.time_ms("_TTFB")?;
        timings.first_byte_ms = timings.first_byte_ms.or(first_byte_ms);
        let view = raw.view.text("_view")?;
        let is_warm = raw.cached.is_true() || view.as_deref() == Some(View::Warm.name());
        let url = raw.url.known_text("_url")?;
        let url_of_webpagetest = raw.url_of_webpagetest.known_text("_URL")?;
        let agent = raw.agent.optional("_agent")?;
        let agent = agent.map(|agent| agent.read(true)).transpose();
        Ok(Self {
            id: raw.id.text("id")?.unwrap_or_default(),
            started_unix_ms: exact.or(started),
            title: raw.title.known_text("title")?,
            url: url.or(url_of_webpagetest),
            view: if is_warm { View::Warm } else { View::Cold },
            round_trip_ms: raw.round_trip_ms.time_ms("_roundTripMs")?,
            withheld: raw
                .withheld
                .map(|all| all.elements("_withheld"))
                .transpose()?,
            notes: raw.notes.elements("_notes")?,
            agent: agent.map_err(|fault| fault.within("_agent"))?,
            timings,
        })
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct RawWithheld {
    port: Value,
    request: Value,
    from_ms: Value,
    to_ms: Value,
    bytes: Value,
}

impl Element for Withheld {
    type Raw = Object<RawWithheld>;
    const MOST: usize = WITHHELD_MAX;
    const NAME: &'static str = "pauses";

    fn new(raw: Object<RawWithheld>) -> Result<Self, Fault> {
        let raw = raw.required("")?;
        let port = raw.port.number("port")?.unwrap_or_default();
        Ok(Self {
            // Of a number that is no port the nearest.
            port: port as u16,
            request: raw.request.known_text("request")?,
            from_ms: raw.from_ms.number("fromMs")?.unwrap_or_default(),
            to_ms: raw.to_ms.number("toMs")?.unwrap_or_default(),
            bytes: raw.bytes.bytes("bytes")?.unwrap_or_default(),
        })
    }
}
