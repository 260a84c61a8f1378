//! `mp4`: sends a section of an MP4 file, selected by `?start=` and `?end=` in seconds.
//!
//! The boxes of a file are read synchronously, as in nginx. Without both arguments the file is sent unchanged; also
//! with a start of 0, no end, and `moov` in front of the data. Byte ranges apply to the bytes of the section.
//!
//! Absent: `mp4_limit_rate` and `mp4_limit_rate_after`, which nginx's commercial edition alone has.
//!
//! Source: nginx documentation, `ngx_http_mp4_module`.

mod boxes;
mod error;
mod movie;
mod tables;
mod track;

use std::rc::Rc;

use conf::{Contexts, os_error};
use engines::http::{Chunk, FileHandle, FileRange};
use server_base::errlog::{Level, Printable};
use server_base::files::{Files, Opened};
use server_base::from_args::Size;
use server_http::assemble::ConfigBuilder;
use server_http::builtin::find_arg;
use server_http::exchange::{Action, Ctx, Exchange};
use server_http::module::{Content, Inherit, Module};
use server_http::{debug_http, reply, settings};

use crate::file;
use error::Mp4Error;
use movie::{Cut, Limits, Ranges};
use track::Section;

/// The module.
pub(crate) const MODULE: Module = Module {
    name: "mp4",
    directives: &[PLAIN, ROWS],
    settings: &[<Mp4Loc as server_http::settings_set::Conf>::def],
    inherits: &[("mp4", Inherit::Blocks)],
    ..Module::EMPTY
};

settings! {
    /// Settings of a location.
    pub(crate) struct Mp4Loc: Location / PLAIN {
        /// How much of a file is read at once at first.
        buffer_size "mp4_buffer_size": Size = Size(512 << 10), "512k", Contexts::HTTP_SERVER_LOCATION;
        /// The largest metadata (moov) of a file, if that exceeds the first read.
        max_buffer_size "mp4_max_buffer_size": Size = Size(10 << 20), "10m", Contexts::HTTP_SERVER_LOCATION;
        /// Whether the sent part begins with a key frame; an edit list hides frames before the start.
        start_key_frame "mp4_start_key_frame": bool = false, "off", Contexts::HTTP_SERVER_LOCATION;
    }
}

conf::directives! {
    const ROWS: ConfigBuilder;

    /// Sends files in MP4 from and to the times, in seconds, that the arguments start and end name.
    directive "mp4": Contexts::LOCATION, NOARGS, "", "" => |b, _| {
        b.set_handler(handle);
        Ok(())
    };
}

fn handle(x: &mut Exchange, cx: &mut Ctx<'_>) -> Content {
    let (path, opened, file) = match file::open(x, cx) {
        Ok(found) => found,
        Err(content) => return content,
    };
    let asked = asked(x);
    if asked.is_some() && !x.hold_memory(cx, INDEX_BYTES) {
        return Content::Wait;
    }
    let cut = match asked {
        Some(section) => part(x, cx, &opened, &file, &section),
        None => Ok(Cut::Whole),
    };
    match cut {
        Ok(cut) => {
            send(x, cx, opened, file, cut);
            Content::Sent
        }
        Err(fault) => {
            let name = Printable(&path);
            if let Some(text) = fault.log_text(name) {
                x.log(Level::Error, format_args!("{text}"));
            }
            Content::Status(500)
        }
    }
}

/// Returns the section that the arguments select, if any. An argument that is no number is ignored, as in nginx.
fn asked(x: &Exchange) -> Option<Section> {
    if x.target.args.is_empty() {
        return None;
    }
    let time = |name: &[u8]| find_arg(&x.target.args, name).and_then(milliseconds);
    let start = time(b"start");
    let end = time(b"end").filter(|end| *end > 0);
    if start.is_none() && end.is_none() {
        return None;
    }
    let conf: &Mp4Loc = x.route.loc();
    let start_ms = start.unwrap_or(0);
    Some(Section {
        start_ms,
        length_ms: end.map_or(0, |end| end.saturating_sub(start_ms)),
        key_frame: *conf.start_key_frame,
    })
}

/// Parses seconds with a decimal fraction; digits beyond milliseconds are ignored.
fn milliseconds(text: &[u8]) -> Option<u64> {
    let (mut value, mut point, mut places) = (0_u64, false, 3);
    for byte in text {
        match byte {
            b'.' if !point => point = true,
            b'0'..=b'9' if places == 0 => {}
            b'0'..=b'9' => {
                value = value.checked_mul(10)?.checked_add(u64::from(byte - b'0'))?;
                places -= u32::from(point);
            }
            _ => return None,
        }
    }
    let value = value.checked_mul(10_u64.pow(places))?;
    (!text.is_empty() && i64::try_from(value).is_ok()).then_some(value)
}

/// Computes the response for a section of the file.
fn part(
    x: &Exchange,
    cx: &mut Ctx<'_>,
    opened: &Opened,
    file: &FileHandle,
    section: &Section,
) -> Result<Cut, Mp4Error> {
    debug_http!(
        x,
        "mp4 start:{}, length:{}",
        section.start_ms,
        section.length_ms
    );
    let conf: &Mp4Loc = x.route.loc();
    let limits = Limits {
        first_read: conf.buffer_size.0,
        moov: conf.max_buffer_size.0,
    };
    let mut reader = Reader {
        x,
        files: cx.files,
        file,
    };
    movie::cut(&mut reader, opened.meta.size, limits, section)
}

/// Reads a file for an exchange.
struct Reader<'a> {
    x: &'a Exchange,
    files: &'a mut dyn Files,
    file: &'a FileHandle,
}

impl Ranges for Reader<'_> {
    fn read(&mut self, offset: u64, len: u64, out: &mut Vec<u8>) -> Result<(), Mp4Error> {
        let range = FileRange {
            file: FileHandle::clone(self.file),
            offset,
            len,
        };
        self.files.read_into(&range, out).map_err(|error| {
            let text = format_args!("pread() failed ({})", os_error(&error));
            self.x.log(Level::Crit, text);
            Mp4Error::Unreadable
        })
    }
}

fn send(x: &mut Exchange, cx: &mut Ctx<'_>, opened: Rc<Opened>, file: FileHandle, cut: Cut) {
    let Cut::Part { head, data } = cut else {
        file::describe(x, &opened, opened.meta.size);
        x.progress.action = Action::SendingMp4;
        let chunk = file::chunk(cx, &opened);
        x.reply.source = Some(opened);
        return reply::send(x, cx, chunk);
    };
    let len = data.end - data.start;
    let length = head.len() as u64 + len;
    file::describe(x, &opened, length);
    x.progress.action = Action::SendingMp4;
    if x.reply.etag.is_some() {
        // As in nginx: the time of the file and the length of the response.
        let etag = format!("\"{:x}-{length:x}\"", opened.meta.mtime_s);
        x.reply.etag = Some(etag.as_bytes().into());
    }
    x.body.chunks.push_back(Chunk::Owned(head));
    let offset = data.start;
    let chunk = Chunk::File(FileRange { file, offset, len });
    reply::send(x, cx, (length > 0).then_some(chunk));
}

/// Bytes charged for the index of a section, which is complete before it is sent. This limits how many indexes of a
/// connection are in memory at a time.
const INDEX_BYTES: u64 = 512 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_places() {
        for (text, wanted) in [
            ("2", Some(2000)),
            ("7.1", Some(7100)),
            ("0.0009", Some(0)),
            ("1.23456789012345678901234567890", Some(1234)),
            (".5", Some(500)),
            ("5.", Some(5000)),
            ("", None),
            ("1.2.3", None),
            ("-1", None),
            ("1e3", None),
            ("9223372036854775.807", Some(9_223_372_036_854_775_807)),
            ("9223372036854775.808", None),
            ("18446744073709551616", None),
        ] {
            assert_eq!(milliseconds(text.as_bytes()), wanted, "{text}");
        }
    }
}
