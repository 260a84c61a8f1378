//! The body stage that finds commands and runs them.

use std::collections::VecDeque;

use engines::http::Chunk;
use server_base::errlog::Level;
use server_http::exchange::{BodyStage, Broken, Ctx, Exchange, StageStatus};

use super::TimeFormat;
use super::command::{Done, Page, keep};
use super::expand::Failed;
use super::parse::{Command, Event, Parser};

/// The stage.
pub(super) struct Stage {
    parser: Parser,
    page: Page,
    silent: bool,
    /// The last chunk, and how much of it has been read.
    input: Option<(Chunk, usize)>,
    ended: bool,
    /// Output that has not been passed on.
    made: Vec<u8>,
}

impl Stage {
    pub(super) fn new(value_max_bytes: usize, silent: bool) -> Self {
        Self {
            parser: Parser::new(value_max_bytes),
            page: Page::new(),
            silent,
            input: None,
            ended: false,
            made: Vec::new(),
        }
    }

    /// Text between commands.
    fn text(&mut self, x: &mut Exchange, text: &[u8]) {
        if self.page.output {
            self.made.extend_from_slice(text);
        } else if self.page.in_block && keep(x, text).is_err() {
            self.fail();
        }
    }

    fn fail(&mut self) {
        if !self.silent {
            self.made.extend_from_slice(&self.page.errmsg);
        }
    }

    /// Runs a command.
    fn command(&mut self, x: &mut Exchange, cx: &mut Ctx<'_>, command: &Command) -> StageStatus {
        let format = self.page.timefmt.clone().map(TimeFormat);
        let formatted = format.is_some();
        if let Some(format) = format {
            x.extensions.push(format);
        }
        let done = self.page.run(x, cx, command, &mut self.made);
        if formatted {
            x.extensions.drop_all::<TimeFormat>();
        }
        match done {
            Ok(Done::All) => StageStatus::Again,
            Ok(Done::Include(child)) => StageStatus::Join(child),
            Err(Failed) => {
                self.fail();
                StageStatus::Again
            }
        }
    }

    fn pass_on(&mut self, out: &mut VecDeque<Chunk>) {
        if !self.made.is_empty() {
            out.push_back(Chunk::Owned(std::mem::take(&mut self.made)));
        }
    }
}

impl BodyStage for Stage {
    fn chunk(&mut self, chunk: Chunk, _: &mut VecDeque<Chunk>) -> Result<(), Broken> {
        self.input = Some((chunk, 0));
        Ok(())
    }

    fn end(&mut self, _: &mut VecDeque<Chunk>) -> Result<(), Broken> {
        self.ended = true;
        Ok(())
    }

    fn act(
        &mut self,
        x: &mut Exchange,
        cx: &mut Ctx<'_>,
        out: &mut VecDeque<Chunk>,
    ) -> Result<StageStatus, Broken> {
        let Some((chunk, mut at)) = self.input.take() else {
            if std::mem::take(&mut self.ended) {
                let rest = self.parser.end();
                self.text(x, rest);
                self.pass_on(out);
            }
            return Ok(StageStatus::Idle);
        };
        let bytes = chunk.bytes();
        while at < bytes.len() {
            let (taken, event) = self.parser.next(&bytes[at..]);
            at += taken;
            let act = match event {
                None => continue,
                Some(Event::Text(text)) if text.len() == bytes.len() && self.page.output => {
                    // The chunk has no command.
                    self.pass_on(out);
                    out.push_back(chunk);
                    return Ok(StageStatus::Idle);
                }
                Some(Event::Text(text)) => {
                    self.text(x, text);
                    continue;
                }
                Some(Event::Broken(why)) => {
                    x.log(Level::Error, format_args!("{why}"));
                    self.fail();
                    continue;
                }
                Some(Event::Command(command)) => self.command(x, cx, &command),
            };
            if matches!(act, StageStatus::Join(_)) || self.made.len() >= PIECE_BYTES {
                self.pass_on(out);
                self.input = Some((chunk, at));
                return Ok(act);
            }
        }
        self.pass_on(out);
        Ok(StageStatus::Idle)
    }
}

/// Maximum size of an output chunk, bytes. It bounds the memory of a short page with large variables.
const PIECE_BYTES: usize = 32 << 10;
