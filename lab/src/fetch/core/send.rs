//! The sending side, and options and figures of the kernel.

use std::os::fd::AsRawFd;
use std::time::Duration;

use sys::{socket, tcp_info};

use super::{Core, Stage};
use crate::client::{failed, now_ns};
use crate::fetch::dial::Acks;
use crate::fetch::failure::{Failure, FailureCause};

impl Core {
    pub(super) fn send(&mut self) -> Result<(), Failure> {
        if self.stage == Stage::Waiting && self.exchanges.queued() > 0 {
            self.begin_tls(self.early_protocol())?;
        }
        let Some(fd) = &self.fd else { return Ok(()) };
        if self.stage == Stage::Open {
            self.exchanges.begin();
            if let Some(engine) = self.exchanges.engine() {
                engine.transmit(&mut self.plain);
            }
        }
        let out = match &mut self.tls {
            None => self.plain.as_slice(),
            Some(tls) => {
                if !self.plain.is_empty() {
                    let result = tls.encrypt(&self.plain, &mut self.sealed);
                    self.plain.clear();
                    result.map_err(|fault| Failure::of_tls(&fault))?;
                }
                self.sealed.extend(&tls.take_output());
                self.sealed.filled()
            }
        };
        while self.sent < out.len() {
            match socket::send(fd, &out[self.sent..], false) {
                Ok(sent) if sent.bytes == 0 => return Ok(()),
                Ok(sent) => {
                    self.sent += sent.bytes as usize;
                    self.record.sent_bytes += sent.bytes;
                }
                Err(error) => {
                    return Err(Failure::new(FailureCause::Closed, failed("write", &error)));
                }
            }
        }
        self.plain.clear();
        self.sealed.clear(SEALED_BYTES_KEPT);
        self.sent = 0;
        // Early data that is not taken whole is marked again after the handshake.
        self.exchanges.mark_sent(now_ns());
        Ok(())
    }

    pub(super) fn choose_acks(&self) {
        let Some(fd) = &self.fd else { return };
        // A kernel without the option acknowledges as it likes.
        let _ = match self.dial.acks {
            Acks::Kernel => Ok(()),
            Acks::Quick => socket::set_tcp_quickack(fd, true),
            Acks::Delayed => socket::set_tcp_quickack(fd, false),
        };
    }

    pub(super) fn ask_kernel(&mut self) {
        let info = self
            .fd
            .as_ref()
            .and_then(|fd| tcp_info::tcp_info(fd.as_raw_fd()));
        if let Some(segments) = info.and_then(|info| info.data_segs_in()) {
            self.record.data_segments = Some(segments);
        }
        if let Some(us) = info.and_then(|info| info.min_rtt_us()) {
            self.record.min_rtt = Some(Duration::from_micros(u64::from(us)));
        }
    }
}

/// Memory for records that a connection keeps between flushes, bytes.
const SEALED_BYTES_KEPT: usize = 64 << 10;
