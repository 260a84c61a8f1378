//! Fields by which the script of an experiment sees times and lengths of static files.
//!
//! Modules decide about servers when the configuration is read. The head of a response has the fields at once, without a header
//! stage, so that responses of other servers pay nothing.
//!
//! Source: W3C Resource Timing, `Timing-Allow-Origin`; W3C Server Timing.

/// Fields of a server's responses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResourceTiming {
    /// Scripts of all hosts see times, unless the configuration has the field.
    pub shows_times: bool,
    /// The length of a body, or an error, is announced in a field. An element can fail before the script sees its
    /// event, and browsers hide the status of files from other hosts.
    pub announces_lengths: bool,
}

impl ResourceTiming {
    /// Returns whether there are fields.
    #[inline]
    pub(crate) fn is_any(self) -> bool {
        self.shows_times || self.announces_lengths
    }
}
