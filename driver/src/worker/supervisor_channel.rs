//! Messages of the supervisor to the worker, and the answers.
//!
//! Only the end of the control stream means that the supervisor is gone. If a whole message cannot be used, the answer is
//! `Failed`, and the worker keeps its configuration.

use std::io;
use std::os::fd::OwnedFd;

use server_base::errlog::Level;
use server_http::meters::{self, Event};

use super::Worker;
use crate::bundle::{FromWorker, Step, ToWorker, Unusable};
use crate::inbox::is_end;

impl Worker {
    /// The first message, which configures; else an exit code.
    pub(super) fn first_message(control: &OwnedFd) -> Result<ToWorker, i32> {
        match ToWorker::receive(control) {
            Ok(Ok(message @ ToWorker::Configure(_))) => Ok(message),
            Ok(Ok(_)) | Err(_) => Err(0),
            Ok(Err(unusable)) => {
                // The supervisor may be gone.
                let _ = refusal(&unusable).send(control);
                Err(2)
            }
        }
    }

    /// Takes the next message of the supervisor.
    pub(super) fn receive_message(&mut self) {
        self.reserve.release();
        match ToWorker::receive(&self.control) {
            Ok(Ok(message)) => self.handle_command(message),
            Ok(Err(unusable)) => self.refuse(&unusable),
            Err(error) => self.lose_supervisor(&error),
        }
        self.reserve.refill();
    }

    pub(super) fn handle_command(&mut self, message: ToWorker) {
        let descriptors = message.descriptors();
        match message {
            ToWorker::Configure(bundle) if matches!(bundle.step, Step::Prepare { .. }) => {
                let answer = self.prepare(*bundle);
                self.say(answer);
            }
            ToWorker::Configure(bundle) => {
                // The next reload brings as many descriptors before its `Commit`.
                let prepared = self.prepared.as_ref();
                let before = prepared.map_or(0, |built| built.bundle.data.len() * 2);
                let answer = self.configure(*bundle);
                self.say(answer);
                self.reserve.hold(before + descriptors, self.threads.len());
            }
            ToWorker::Reopen(logs) => self.reopen(logs),
            ToWorker::Quit => self.quit(),
            ToWorker::Terminate => self.terminate(),
        }
    }

    /// Reports that a message cannot be used; the current configuration stays.
    fn refuse(&mut self, unusable: &Unusable) {
        if unusable.generation != 0 {
            meters::event(Event::ReloadFailed);
        }
        self.say(refusal(unusable));
    }

    fn lose_supervisor(&mut self, error: &io::Error) {
        if !is_end(error) {
            // The begin of the next message is unknown.
            self.log.write(
                Level::Alert,
                format_args!(
                    "the control message cannot be read ({})",
                    sys::os_error(error)
                ),
            );
        }
        self.terminate();
    }

    pub(super) fn say(&self, message: FromWorker) {
        // A supervisor that is gone ends this worker at the next read of the control socket.
        let _ = message.send(&self.control);
    }
}

fn refusal(unusable: &Unusable) -> FromWorker {
    let what = match unusable.generation {
        0 => "control message to the worker",
        _ => "configuring the worker",
    };
    FromWorker::Failed {
        generation: unusable.generation,
        message: format!("{what} failed ({})", sys::os_error(&unusable.error)),
    }
}
