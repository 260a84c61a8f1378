//! The trailer section after the last chunk.
//!
//! Its lines are field lines with the limits of a head, but every one needs CRLF and a colon: framing behind
//! a body must be unambiguous. The fields are passed on as trailers and never merged into the head. Source: RFC 9112
//! section 7.1.2, RFC 9110 section 6.5.

use super::Settings;
use super::header::{self, FieldLine};
use super::limit::LineBudget;
use crate::http::{Fault, Fields};

/// Reads one trailer section.
#[derive(Debug)]
pub(super) struct TrailerReader {
    budget: LineBudget,
    /// Field lines so far. The fields themselves may have been dropped.
    lines: u32,
    /// The line that is not complete yet.
    part: Vec<u8>,
}

impl TrailerReader {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            budget: LineBudget::of_trailers(settings),
            lines: 0,
            part: Vec::new(),
        }
    }

    /// Reads at most one line, puts its field into `fields`, and returns the
    /// bytes used and whether the section is complete.
    pub(super) fn read(
        &mut self,
        input: &[u8],
        settings: &Settings,
        fields: &mut Fields,
    ) -> Result<(usize, bool), Fault> {
        let lf = memchr::memchr(b'\n', input);
        let used = lf.map_or(input.len(), |lf| lf + 1);
        let len = self.part.len() + used;
        let capacity = self.budget.capacity();
        if len > capacity || (lf.is_none() && len == capacity) {
            return Err(Fault::TrailerTooLarge);
        }
        self.part.extend_from_slice(&input[..used]);
        if lf.is_none() {
            return Ok((used, false));
        }
        self.budget.take(len);
        let part = std::mem::take(&mut self.part);
        let line = part.strip_suffix(b"\r\n").ok_or(Fault::BadTrailer)?;
        let done = self.take_line(line, settings, fields)?;
        self.part = part;
        self.part.clear();
        Ok((used, done))
    }

    /// Takes one line; returns whether it is the empty one that ends the section.
    fn take_line(
        &mut self,
        line: &[u8],
        settings: &Settings,
        fields: &mut Fields,
    ) -> Result<bool, Fault> {
        match header::parse(line, settings).map_err(|_| Fault::BadTrailer)? {
            FieldLine::End => Ok(true),
            FieldLine::NoColon => Err(Fault::BadTrailer),
            FieldLine::OddName { .. } if settings.ignore_invalid_headers => Ok(false),
            FieldLine::OddName { name, value } | FieldLine::Field { name, value, .. } => {
                if self.lines >= settings.max_headers {
                    return Err(Fault::TrailerTooLarge);
                }
                self.lines += 1;
                fields.push(&line[name], &line[value]);
                Ok(false)
            }
        }
    }
}
