//! The sending side, and options and figures of the kernel.

use std::time::Duration;

use sys::socket;

use super::{Core, Stage};
use crate::client::{Broken, failed, now_ns};
use crate::fetch::dial::Acks;
use crate::fetch::failure::{Failure, FailureCause};

impl Core {
    pub(super) fn send(&mut self) -> Result<(), Failure> {
        if self.stage == Stage::Waiting && self.exchanges.queued() > 0 {
            self.begin_tls(self.early_protocol())?;
        }
        if self.stage == Stage::Open {
            self.exchanges.begin();
            if let Some(engine) = self.exchanges.engine() {
                engine.transmit(&mut self.transport.plain);
            }
        }
        let flushed = self.transport.flush();
        self.record.sent_bytes = self.transport.sent_bytes;
        match flushed {
            // If early data is not accepted completely, it is marked again after the handshake.
            Ok(true) => self.exchanges.mark_sent(now_ns()),
            Ok(false) => {}
            Err(Broken::Tls(fault)) => return Err(Failure::of_tls(&fault)),
            Err(Broken::Write(error)) => {
                return Err(Failure::new(FailureCause::Closed, failed("write", &error)));
            }
        }
        Ok(())
    }

    pub(super) fn choose_acks(&self) {
        let Some(fd) = self.transport.socket() else {
            return;
        };
        // A kernel without the option acknowledges as it likes.
        let _ = match self.dial.acks {
            Acks::Kernel => Ok(()),
            Acks::Quick => socket::set_tcp_quickack(fd, true),
            Acks::Delayed => socket::set_tcp_quickack(fd, false),
        };
    }

    pub(super) fn ask_kernel(&mut self) {
        let info = self.transport.info();
        if let Some(segments) = info.and_then(|info| info.data_segs_in()) {
            self.record.data_segments = Some(segments);
        }
        if let Some(us) = info.and_then(|info| info.min_rtt_us()) {
            self.record.min_rtt = Some(Duration::from_micros(u64::from(us)));
        }
    }
}
