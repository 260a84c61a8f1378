//! The two pipes to the browser, and its standard error.
//!
//! No call blocks for longer than its `limit`, so a browser that hangs does not block the caller.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use sys::os_error;

use super::message::{Message, Messages};

/// Our ends of the pipes to a browser.
#[derive(Debug)]
pub(super) struct Pipe {
    commands: OwnedFd,
    responses: OwnedFd,
    /// `None` when all who could write to it are gone.
    errors: Option<OwnedFd>,
    messages: Messages,
    /// End of the output on standard error.
    last_words: Vec<u8>,
}

/// The browser's ends: commands, responses, standard error.
pub(super) struct Ends {
    pub(super) commands: OwnedFd,
    pub(super) responses: OwnedFd,
    pub(super) errors: OwnedFd,
}

impl Pipe {
    /// New pipes.
    pub(super) fn create() -> io::Result<(Self, Ends)> {
        let (their_commands, commands) = io::pipe()?;
        let (responses, their_responses) = io::pipe()?;
        let (errors, their_errors) = io::pipe()?;
        let pipe = Self {
            commands: commands.into(),
            responses: responses.into(),
            errors: Some(errors.into()),
            messages: Messages::default(),
            last_words: Vec::new(),
        };
        rustix::io::ioctl_fionbio(&pipe.commands, true)?;
        rustix::io::ioctl_fionbio(&pipe.responses, true)?;
        if let Some(errors) = &pipe.errors {
            rustix::io::ioctl_fionbio(errors, true)?;
        }
        let ends = Ends {
            commands: their_commands.into(),
            responses: their_responses.into(),
            errors: their_errors.into(),
        };
        Ok((pipe, ends))
    }

    /// Writes a command.
    ///
    /// # Errors
    /// The browser has exited, or does not read for [`TAKING_MAX`].
    pub(super) fn send(&mut self, mut bytes: &[u8]) -> Result<(), String> {
        let limit = Instant::now() + TAKING_MAX;
        while !bytes.is_empty() {
            match sys::retry(|| rustix::io::write(&self.commands, bytes)) {
                Ok(written) => bytes = &bytes[written..],
                Err(Errno::AGAIN) if Instant::now() < limit => {
                    let mut fds = [PollFd::new(&self.commands, PollFlags::OUT)];
                    wait(&mut fds, PAUSE);
                }
                Err(Errno::AGAIN) => return Err("the browser does not respond".to_owned()),
                Err(_) => return Err(self.exit_reason()),
            }
        }
        Ok(())
    }

    /// Returns the next message; `None` if there is none within `limit`.
    ///
    /// # Errors
    /// The browser has exited, or its message is not of the protocol.
    pub(super) fn receive(&mut self, limit: Duration) -> Result<Option<Message>, String> {
        if let Some(message) = self.messages.next()? {
            return Ok(Some(message));
        }
        let mut fds = vec![PollFd::new(&self.responses, PollFlags::IN)];
        fds.extend(self.errors.iter().map(|fd| PollFd::new(fd, PollFlags::IN)));
        wait(&mut fds, limit);
        self.read_stderr();
        let mut buffer = [0; READ_BYTES];
        match sys::retry(|| rustix::io::read(&self.responses, &mut buffer)) {
            Ok(0) => Err(self.exit_reason()),
            Ok(count) => {
                self.messages.receive(&buffer[..count])?;
                self.messages.next()
            }
            Err(Errno::AGAIN) => Ok(None),
            Err(error) => {
                let reason = os_error(&error.into());
                Err(format!("cannot read from the browser: {reason}"))
            }
        }
    }

    /// Reads standard error and keeps its end.
    fn read_stderr(&mut self) {
        let Some(errors) = &self.errors else { return };
        let mut buffer = [0; LAST_WORDS_BYTES];
        match sys::retry(|| rustix::io::read(errors.as_fd(), &mut buffer)) {
            Ok(0) => self.errors = None,
            Ok(count) => {
                self.last_words.extend_from_slice(&buffer[..count]);
                let too_many = self.last_words.len().saturating_sub(LAST_WORDS_BYTES);
                self.last_words.drain(..too_many);
            }
            Err(_) => {}
        }
    }

    /// Returns a sentence about the exit of the browser, with its last output.
    fn exit_reason(&mut self) -> String {
        // The output may arrive shortly after the end of the other pipe.
        let limit = Instant::now() + LISTENING;
        while self.errors.is_some() && Instant::now() < limit {
            if let Some(errors) = &self.errors {
                wait(&mut [PollFd::new(errors, PollFlags::IN)], PAUSE);
            }
            self.read_stderr();
        }
        let text = String::from_utf8_lossy(&self.last_words);
        match last_line(&text) {
            Some(line) => format!("the browser has exited: {line}"),
            None => "the browser has exited".to_owned(),
        }
    }
}

/// Waits until one of them is ready or `limit` has passed.
fn wait(fds: &mut [PollFd<'_>], limit: Duration) {
    let limit = Timespec::try_from(limit).ok();
    // An interrupted or failed wait counts as one that ended early: the read after it finds nothing.
    let _ = poll(fds, limit.as_ref());
}

/// The last line that has something to say, without control characters, at most [`LINE_CHARS`] of it.
fn last_line(text: &str) -> Option<String> {
    let printable = |line: &str| -> String {
        let line = line.chars().filter(|c| !c.is_control());
        line.take(LINE_CHARS).collect()
    };
    let mut lines = text.lines().rev().map(str::trim);
    // Complaints of every start without a desktop.
    let is_usual = |line: &str| line.is_empty() || line.contains("/bus.cc");
    lines.find(|line| !is_usual(line)).map(printable)
}

/// Longest wait until a command is read.
const TAKING_MAX: Duration = Duration::from_secs(10);
/// How long the last words of an ended browser are waited for.
const LISTENING: Duration = Duration::from_millis(200);
const PAUSE: Duration = Duration::from_millis(20);
const READ_BYTES: usize = 64 << 10;
/// Kept bytes of standard error.
const LAST_WORDS_BYTES: usize = 4 << 10;
/// How much of a line is shown.
const LINE_CHARS: usize = 300;

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::{Read, Write};

    const SOON: Duration = Duration::from_millis(1);

    #[test]
    fn commands_and_messages_pass() {
        let (mut pipe, ends) = Pipe::create().expect("pipes");
        let (mut commands, mut responses) = (File::from(ends.commands), File::from(ends.responses));
        pipe.send(b"{}\0").expect("there is room");
        let mut taken = [0; 3];
        commands.read_exact(&mut taken).expect("it is there");
        assert_eq!(&taken, b"{}\0");
        assert!(pipe.receive(SOON).expect("nothing yet").is_none());
        responses.write_all(b"{\"id\":3}\0").expect("there is room");
        let message = pipe.receive(Duration::from_secs(5)).expect("a message");
        assert_eq!(message.and_then(|message| message.id), Some(3));
    }

    #[test]
    fn browser_that_has_ended_leaves_its_last_words() {
        let (mut pipe, ends) = Pipe::create().expect("pipes");
        let mut errors = File::from(ends.errors);
        let words = "first\n[1:2:ERROR:dbus/bus.cc:4] no bus\n\x1b[1mNo usable sandbox!\n";
        errors.write_all(words.as_bytes()).expect("there is room");
        drop((ends.responses, ends.commands, errors));
        let why = pipe.receive(SOON).expect_err("it is gone");
        assert_eq!(why, "the browser has exited: [1mNo usable sandbox!");
        assert_eq!(pipe.send(b"{}\0"), Err(why));
    }

    #[test]
    fn little_is_kept_of_many_words() {
        let (mut pipe, ends) = Pipe::create().expect("pipes");
        let mut errors = File::from(ends.errors);
        for _ in 0..3 {
            errors
                .write_all(&[b'x'; LAST_WORDS_BYTES])
                .expect("there is room");
            assert!(pipe.receive(SOON).expect("no message").is_none());
        }
        assert_eq!(pipe.last_words.len(), LAST_WORDS_BYTES);
        drop(ends.responses);
        let why = pipe.receive(SOON).expect_err("it is gone");
        assert!(why.len() < LINE_CHARS + 100, "{why}");
    }
}
