//! One log on its way to the parsers: blocks with their formats and line numbers.

use std::sync::Arc;

use super::cutter::{Block, Cutter};
use super::detect::detect;
use super::line::{Field, LineFormat};
use super::parsers::{Parsers, Work};
use super::report::Report;
use super::tally::Origin;
use super::{Input, names};

/// A log that is cut into blocks.
pub(super) struct Feed {
    name: String,
    cutter: Cutter,
    next: Origin,
    formats: Option<Arc<Vec<LineFormat>>>,
    client: Field,
    /// The name of the detected format.
    detected: Option<String>,
}

impl Feed {
    /// Begins a log: the one of number `at`.
    pub(super) fn new(at: usize, input: &Input, client: &Field) -> Self {
        Self {
            name: input.name(),
            cutter: Cutter::default(),
            next: Origin { input: at, line: 1 },
            formats: input.formats.clone(),
            client: client.clone(),
            detected: None,
        }
    }

    /// Begins the file that follows, with the formats of this one.
    pub(super) fn successor(&self) -> Self {
        Self {
            name: self.name.clone(),
            cutter: Cutter::default(),
            next: Origin {
                line: 1,
                ..self.next
            },
            formats: self.formats.clone(),
            client: self.client.clone(),
            detected: None,
        }
    }

    /// Room for bytes.
    pub(super) fn room(&mut self) -> &mut [u8] {
        self.cutter.room()
    }

    /// Adds the first `count` bytes of the room; a full block is parsed. Returns the number of lines.
    ///
    /// # Errors
    /// The format is unknown.
    pub(super) fn filled(
        &mut self,
        count: usize,
        parsers: &mut Parsers<'_>,
    ) -> Result<u64, String> {
        self.cutter.filled(count);
        match self.cutter.is_full() {
            true => self.flush(parsers),
            false => Ok(0),
        }
    }

    /// Parses the whole lines. Returns their number.
    ///
    /// # Errors
    /// The format is unknown.
    pub(super) fn flush(&mut self, parsers: &mut Parsers<'_>) -> Result<u64, String> {
        let taken = self.cutter.take(parsers.spare());
        self.send(taken, parsers)
    }

    /// Parses the rest; its last line may lack a newline. Returns the number of lines.
    ///
    /// # Errors
    /// The format is unknown.
    pub(super) fn finish(&mut self, parsers: &mut Parsers<'_>) -> Result<u64, String> {
        let lines = self.flush(parsers)?;
        let taken = self.cutter.finish(parsers.spare());
        Ok(lines + self.send(taken, parsers)?)
    }

    fn send(
        &mut self,
        taken: Result<Block, Block>,
        parsers: &mut Parsers<'_>,
    ) -> Result<u64, String> {
        let block = match taken {
            Ok(block) => block,
            Err(spare) => {
                parsers.give_back(spare);
                return Ok(0);
            }
        };
        let bytes = block.bytes();
        let formats = self.formats(bytes)?;
        // Counting newlines costs a twentieth of parsing, and provides the numbers of damaged lines.
        let ends = memchr::memchr_iter(b'\n', bytes).count() as u64;
        let lines = ends + u64::from(!bytes.ends_with(b"\n"));
        let origin = self.next;
        self.next.line += lines;
        parsers.send(Work {
            block,
            origin,
            formats,
        });
        Ok(lines)
    }

    /// The formats; those that are unknown are detected by the first block.
    fn formats(&mut self, block: &[u8]) -> Result<Arc<Vec<LineFormat>>, String> {
        if let Some(known) = &self.formats {
            return Ok(Arc::clone(known));
        }
        let found = detect(block, &self.client).ok_or_else(|| {
            let (name, field, known) = (&self.name, self.client.variable(), names());
            format!(
                "{name}: no known format with {field}; --format names the format of the log: its text, or one of {known}"
            )
        })?;
        self.detected = Some(found.name.clone());
        let found = Arc::new(vec![found]);
        self.formats = Some(Arc::clone(&found));
        Ok(found)
    }

    /// Adds remarks about the format to a report.
    pub(super) fn remark(&self, report: &mut Report) {
        if let Some(format) = &self.detected {
            report.detected.push((self.name.clone(), format.clone()));
        }
    }
}
