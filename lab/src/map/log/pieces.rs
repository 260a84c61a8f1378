//! Logs in memory, read in pieces: for tests and fuzzing of any cut of a stream.

use std::sync::Arc;

use super::feed::Feed;
use super::parsers::{Parsers, Tallies};
use super::{Countries, Field, Input, LineFormat, Report};

/// Reads a log that comes in pieces; whole lines are parsed behind each piece. The result does not depend on the pieces.
///
/// # Errors
/// The formats are to be detected, and the first lines have no known one.
pub fn read_pieces(
    pieces: &[&[u8]],
    formats: Option<Vec<LineFormat>>,
    client: &Field,
    countries: Countries<'_>,
) -> Result<Report, String> {
    let input = Input {
        path: None,
        formats: formats.map(Arc::new),
    };
    let tallies = Tallies::new(1);
    let read = std::thread::scope(|scope| {
        let started = Parsers::start(scope, &tallies, countries);
        let mut parsers = started.map_err(|error| error.to_string())?;
        let mut feed = Feed::new(0, &input, client);
        for piece in pieces {
            let mut rest = *piece;
            while !rest.is_empty() {
                let room = feed.room();
                let count = rest.len().min(room.len());
                room[..count].copy_from_slice(&rest[..count]);
                feed.filled(count, &mut parsers)?;
                rest = &rest[count..];
            }
            feed.flush(&mut parsers)?;
        }
        feed.finish(&mut parsers)
    });
    read?;
    let mut report = Report::default();
    tallies.add_to(&mut report);
    Ok(report)
}
