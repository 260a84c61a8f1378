//! `slice`, `$slice_range`: a response made of parts that are requested and cached one by one.
//!
//! The first part is the response of the request itself. Its body stage requests each further part by a subrequest to the
//! same location, one after the other, until the range of the client ends. The state is kept with the client's request,
//! which lends it to its subrequests.
//!
//! Absent: ranges of responses without parts, which are in `range`.
//!
//! Source: nginx documentation, `ngx_http_slice_module`; RFC 9110 section 14.4.

use std::collections::VecDeque;

use conf::Contexts;
use engines::http::{Chunk, FieldId, Method};
use server_base::errlog::Level;
use server_base::from_args::Size;
use server_http::exchange::cache_record::RequestsPart;
use server_http::exchange::{
    BodyStage, Broken, Ctx, Exchange, ReplyParts, StageStatus, Subrequest,
};
use server_http::module::Module;
use server_http::reply::CLOSE_WITHOUT_RESPONSE;
use server_http::vars::Variable;
use server_http::{settings, variables};

/// The module.
pub(crate) const MODULE: Module = Module {
    name: "slice",
    directives: &[PLAIN],
    settings: &[<SliceLoc as server_http::settings_set::Conf>::def],
    variables: VARIABLES,
    header_stage: Some(stage),
    stage_of_subrequests: true,
    on_demand: true,
    ..Module::EMPTY
};

settings! {
    /// Settings of a location.
    pub(crate) struct SliceLoc: Location / PLAIN {
        /// Size of the parts of a response that are requested one by one; 0 for whole responses.
        size "slice": Size = Size(0), "0", Contexts::HTTP_SERVER_LOCATION;
    }
}

const VARIABLES: &[Variable] = variables! {
    "slice_range": "range of the current part of a response" => |x, _, _, out| slice_range(x, out);
};

/// The parts of a response, kept with the client's request.
struct Slices {
    size: u64,
    /// The next part.
    start: u64,
    /// End of the range of the client.
    end: u64,
    /// `$slice_range`.
    range: String,
    /// Entity tag of the parts so far.
    etag: Option<Box<[u8]>>,
    /// The part of `range` has a response.
    is_answered: bool,
}

impl Slices {
    fn new(size: u64, start: u64) -> Self {
        let mut slices = Self {
            size,
            start,
            end: u64::MAX,
            range: String::new(),
            etag: None,
            is_answered: false,
        };
        slices.request();
        slices
    }

    /// Requests the next part.
    fn request(&mut self) {
        let last = self.start.saturating_add(self.size) - 1;
        self.range = format!("bytes={}-{last}", self.start);
        self.is_answered = false;
    }
}

fn slice_range(x: &mut Exchange, out: &mut Vec<u8>) -> bool {
    if x.extensions.get::<Slices>().is_none() {
        let size = x.route.loc::<SliceLoc>().size.0;
        if size == 0 || x.is_subrequest() || x.reply.status != 0 {
            return false;
        }
        let start = requested_start(x) / size * size;
        x.extensions.set(Slices::new(size, start));
        x.extensions.set(RequestsPart);
    }
    match x.extensions.get::<Slices>() {
        Some(slices) => {
            out.extend_from_slice(slices.range.as_bytes());
            true
        }
        None => false,
    }
}

/// Returns the begin of the range that the client requests; 0 for other ranges than `bytes=N-`.
fn requested_start(x: &Exchange) -> u64 {
    let Some(range) = x.head.field(FieldId::Range) else {
        return 0;
    };
    if x.head.field(FieldId::IfRange).is_some() {
        return 0;
    }
    let Some((unit, ranges)) = range.split_at_checked(UNIT.len()) else {
        return 0;
    };
    if !unit.eq_ignore_ascii_case(UNIT) {
        return 0;
    }
    if ranges.contains(&b',') {
        return 0;
    }
    let ranges = ranges.trim_ascii_start();
    let end = ranges.iter().position(|byte| !byte.is_ascii_digit());
    conf::parse_number(&ranges[..end.unwrap_or(ranges.len())]).unwrap_or(0)
}

fn stage(x: &mut Exchange, _: &mut Ctx<'_>) -> Result<(), u16> {
    let is_part = !x.is_subrequest() || x.subrequests.is_clone();
    if !is_part || x.extensions.get::<Slices>().is_none() {
        return Ok(());
    }
    let status = x.reply.status;
    if status != 206 {
        if !x.is_subrequest() {
            x.extensions.drop_all::<Slices>();
            return Ok(());
        }
        return refuse(x, &format!("unexpected status code {status}"));
    }
    let (start, length) = match check(x) {
        Ok(part) => part,
        Err(why) => return refuse(x, &why),
    };
    if x.is_subrequest() {
        return Ok(());
    }
    let size = x.extensions.get::<Slices>().map_or(1, |slices| slices.size);
    let reply = &mut x.reply;
    reply.status = 200;
    reply.content_length = Some(length);
    reply.fields.remove(FieldId::ContentRange);
    reply.fields.remove(FieldId::AcceptRanges);
    (reply.allow_ranges, reply.single_range) = (true, true);
    reply.parts = Some(Box::new(ReplyParts {
        offset: start,
        size,
    }));
    if x.head.method != Method::Head {
        x.body.stages.push(Box::new(Parts::default()));
        x.join_subrequests();
    }
    Ok(())
}

fn refuse(x: &Exchange, why: &str) -> Result<(), u16> {
    x.log(Level::Error, format_args!("{why} in slice response"));
    // As in nginx: also the first part may belong to another version than the others.
    Err(CLOSE_WITHOUT_RESPONSE)
}

/// Checks that the response is the part that was requested, of one version. Returns its begin and the whole length.
fn check(x: &mut Exchange) -> Result<(u64, u64), String> {
    let range = x.reply.fields.get(FieldId::ContentRange);
    let range = range.ok_or("invalid range")?;
    let (start, end, length) = content_range(range).ok_or("invalid range")?;
    let length = length.ok_or("no complete length")?;
    let etag = x.reply.etag.as_deref().map(Box::from);
    let slices = x.extensions.get_mut::<Slices>().ok_or("missing part")?;
    if slices.etag.is_some() && slices.etag != etag {
        return Err("etag mismatch".to_owned());
    }
    if etag.is_some() {
        slices.etag = etag;
    }
    let expected = slices.start.saturating_add(slices.size).min(length);
    if (start, end) != (slices.start, expected) {
        return Err(format!(
            "unexpected range {start}-{end}, expected {}-{expected},",
            slices.start
        ));
    }
    slices.start = end;
    slices.is_answered = true;
    Ok((start, length))
}

/// Parses `Content-Range`: begin, end (exclusive) and length of the whole.
fn content_range(value: &[u8]) -> Option<(u64, u64, Option<u64>)> {
    let text = str::from_utf8(value).ok()?.strip_prefix("bytes ")?;
    let (range, length) = text.split_once('/')?;
    let (start, last) = range.split_once('-')?;
    let number = |text: &str| conf::parse_number(text.trim().as_bytes());
    let length = match length.trim() {
        "*" => None,
        length => Some(number(length)?),
    };
    Some((number(start)?, number(last)?.checked_add(1)?, length))
}

/// The body stage: passes the first part on, and then requests the others.
#[derive(Default)]
struct Parts {
    /// The first part has ended.
    has_ended: bool,
    /// The range of the client is known.
    has_begun: bool,
}

impl BodyStage for Parts {
    fn chunk(&mut self, chunk: Chunk, out: &mut VecDeque<Chunk>) -> Result<(), Broken> {
        out.push_back(chunk);
        Ok(())
    }

    fn end(&mut self, _: &mut VecDeque<Chunk>) -> Result<(), Broken> {
        self.has_ended = true;
        Ok(())
    }

    fn act(
        &mut self,
        x: &mut Exchange,
        cx: &mut Ctx<'_>,
        _: &mut VecDeque<Chunk>,
    ) -> Result<StageStatus, Broken> {
        if !self.has_ended {
            return Ok(StageStatus::Idle);
        }
        let status = x.reply.status;
        let offset = x.reply.parts.as_ref().map_or(0, |parts| parts.offset);
        let length = x.reply.content_length.unwrap_or(0);
        let Some(slices) = x.extensions.get_mut::<Slices>() else {
            return Ok(StageStatus::Idle);
        };
        if !slices.is_answered {
            return Err(Broken("missing slice response"));
        }
        if !std::mem::replace(&mut self.has_begun, true) {
            slices.end = match status {
                206 => {
                    if slices.start + slices.size <= offset {
                        slices.start = offset / slices.size * slices.size;
                    }
                    offset + length
                }
                _ => length,
            };
        }
        if slices.start >= slices.end {
            return Ok(StageStatus::Idle);
        }
        slices.request();
        let (uri, args) = (x.target.uri.clone(), x.target.args.clone());
        let part = Subrequest::open(x, cx, &uri, &args).map_err(|_| Broken(""))?;
        Ok(StageStatus::Join(Box::new(part.clone_of(x).waited())))
    }
}

const UNIT: &[u8] = b"bytes=";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_ranges_are_parsed() {
        for (text, expected) in [
            ("bytes 0-9/20", Some((0, 10, Some(20)))),
            ("bytes 0-9/*", Some((0, 10, None))),
            ("bytes */20", None),
            ("bytes 0-9", None),
            ("items 0-9/20", None),
            ("bytes 0-18446744073709551615/20", None),
            ("", None),
        ] {
            assert_eq!(content_range(text.as_bytes()), expected, "{text}");
        }
    }
}
