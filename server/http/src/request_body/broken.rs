//! Bodies that end too early or break the protocol.

use engines::http::Fault;
use server_base::errlog::Level;

use crate::exchange::{Exchange, State};

impl Exchange {
    /// The peer has gone in the middle of the body: no response can reach it.
    pub fn lose_body(&mut self) {
        self.log(
            Level::Info,
            format_args!("client prematurely closed connection"),
        );
        if !self.progress.header_sent {
            self.route.err_status = 400;
            self.reply.status = 400;
        }
    }

    /// The body breaks the protocol while it is passed on and the response is on its way, which breaks off as well.
    pub fn break_body(&mut self, fault: Fault) {
        self.log(Level::Info, format_args!("{}", fault.message()));
        self.progress.keep_alive = false;
        self.progress.state = State::Aborted;
    }
}
