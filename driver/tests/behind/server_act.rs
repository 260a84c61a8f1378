//! Actions of servers: reading, answering, closing.

use std::rc::Rc;

use sim::{Random, Wire};

use super::super::ledger::Ledger;
use super::super::plan::After;
use super::{Connect, ServerConnection};

impl ServerConnection {
    /// Does an action for requests of HTTP/2. Returns whether it did.
    fn act_streams(
        &mut self,
        wire: &mut Wire,
        book: &mut Ledger,
        now_ms: u64,
        hurries: bool,
        random: &mut Random,
    ) -> bool {
        let Some(streams) = &mut self.streams else {
            return false;
        };
        let came = match &self.secure {
            Some(secure) => secure.came.clone(),
            None => wire.sent()[..wire.fetched()].to_vec(),
        };
        let acts = match streams.act(&came, book, now_ms, hurries, random) {
            Ok(acts) => acts,
            Err(fault) => {
                book.faults.push(fault);
                self.is_done = true;
                return true;
            }
        };
        let mut say = |wire: &mut Wire, bytes: &[u8]| match &mut self.secure {
            Some(secure) => wire.push(&secure.seal(bytes)),
            None => wire.push(bytes),
        };
        say(wire, &acts.out);
        self.due_ms = streams.due_ms(now_ms).unwrap_or(0);
        let is_read = wire.fetched() == wire.sent().len();
        if acts.after == Some(After::Reset) {
            streams.breaks(book);
            book.unconnected += usize::from(!is_read);
            wire.reset();
            self.is_done = true;
            return true;
        }
        let leaves = streams.is_idle()
            && self.leaves > 0
            && !hurries
            && is_read
            && random.chance(self.leaves);
        if leaves && random.chance(500) {
            streams.goaway(book);
            return true;
        }
        if leaves || (streams.is_over() && is_read && acts.out.is_empty()) {
            if let Some(secure) = &mut self.secure {
                wire.push(&secure.close());
            }
            book.unconnected += 1;
            wire.leave();
            self.is_done = true;
            return true;
        }
        acts.busy
    }

    /// Does an action. Returns whether it did.
    pub(super) fn act(
        &mut self,
        book: &mut Ledger,
        now_ms: u64,
        hurries: bool,
        random: &mut Random,
    ) -> bool {
        if let Some((at_ms, how)) = self.pending {
            if at_ms > now_ms || how == Connect::Never {
                return false;
            }
            self.pending = None;
            let mut wire = self.wire.borrow_mut();
            match how {
                Connect::Refuses => {
                    wire.refuse();
                    self.is_done = true;
                }
                _ => wire.establish(),
            }
            return true;
        }
        if self.is_done {
            // The script is over. Only an application that has ended its side still reads.
            return self.wire.borrow_mut().fetch(usize::MAX) > 0;
        }
        let wire = Rc::clone(&self.wire);
        let mut wire = wire.borrow_mut();
        let most = if hurries || self.streams.is_some() {
            usize::MAX
        } else {
            random.piece(20_000)
        };
        let busy = wire.fetch(most) > 0;
        let fetched = wire.fetched();
        let mut at = fetched;
        if let Some(secure) = &mut self.secure {
            match secure.receive(&wire.sent()[..fetched]) {
                Ok(out) => wire.push(&out),
                Err(fault) => book.faults.push(fault),
            }
            at = secure.came.len();
        }
        if self.streams.is_some() && !wire.is_reset() && !wire.has_left() {
            return self.act_streams(&mut wire, book, now_ms, hurries, random) || busy;
        }
        if wire.is_reset() || wire.has_left() {
            return busy;
        }
        let Some(attempt) = self.attempt else {
            let idle = self.requests > 0 && fetched == wire.sent().len();
            if idle && self.leaves > 0 && !hurries && random.chance(self.leaves) {
                // A partial request does not identify its client.
                book.unconnected += usize::from(self.reader.has_begun(wire.sent()));
                wire.leave();
                return true;
            }
            return busy;
        };
        self.answer(&mut wire, book, (attempt, at), (now_ms, hurries), random) || busy
    }

    /// Continues the response to a request of which `at` bytes are read. Returns whether it did something.
    fn answer(
        &mut self,
        wire: &mut Wire,
        book: &mut Ledger,
        (attempt, at): (usize, usize),
        (now_ms, hurries): (u64, bool),
        random: &mut Random,
    ) -> bool {
        let fetched = wire.fetched();
        let record = &mut book.attempts[attempt];
        let Some(plan) = &record.plan else {
            return false;
        };
        let received = match plan.early {
            true => self.reader.head_end.is_some_and(|end| at >= end),
            false => self.reader.end.is_some_and(|end| at >= end),
        };
        if !received && record.sent == 0 || now_ms < self.due_ms {
            return false;
        }
        if record.sent < plan.text.len() {
            if let Some((at, ms)) = plan.pause
                && record.sent >= at
                && !self.paused
            {
                self.paused = true;
                self.due_ms = now_ms + ms;
                return true;
            }
            let left = plan.text.len() - record.sent;
            let len = if hurries { left } else { random.piece(left) };
            let len = match plan.pause {
                Some((at, _)) if !self.paused && record.sent < at => len.min(at - record.sent),
                _ => len,
            };
            let piece = &plan.text[record.sent..record.sent + len];
            match &mut self.secure {
                Some(secure) => wire.push(&secure.seal(piece)),
                None => wire.push(piece),
            }
            record.sent += len;
            if plan.status == 101 && !plan.bad_head && self.reader.end.is_some() {
                self.reader.tunnel();
            }
            return true;
        }
        if !record.is_over {
            record.is_over = true;
            if plan.after != After::Keep
                && let Some(secure) = &mut self.secure
            {
                // Undecrypted bytes belong to no known request.
                book.unconnected += usize::from(fetched < wire.sent().len());
                if matches!(plan.after, After::Leave | After::End) {
                    wire.push(&secure.close());
                }
            }
            let mut resets = false;
            match plan.after {
                After::Keep => {}
                After::Leave => {
                    wire.leave();
                    // Input was unread, so the close is a reset, which may overtake the response.
                    resets = wire.is_reset();
                }
                After::End => wire.end(),
                After::Reset => wire.reset(),
                After::Silent => {}
            }
            self.is_over = plan.after != After::Keep;
            if let Some(plan) = record.plan.as_mut().filter(|_| resets) {
                plan.after = After::Reset;
            }
            return true;
        }
        if !self.is_over && self.reader.end.is_some_and(|end| at >= end) {
            self.reader.next();
            self.attempt = None;
            if random.chance(self.leaves) && fetched == wire.sent().len() {
                wire.leave_next();
            }
            return true;
        }
        false
    }
}
