//! The action of a request that its errors name.

/// The action that lines of the error log name behind "while", as in nginx: it stays until another begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Action {
    /// None: the request is processed.
    #[default]
    None,
    /// The request line is read.
    ReadingLine,
    /// The line of a request is read that came behind another.
    ReadingPipelined,
    /// The header section is read.
    ReadingHeaders,
    /// A file is sent.
    SendingResponse,
    /// A file is sent by `flv`.
    SendingFlv,
    /// A file is sent by `mp4`.
    SendingMp4,
    /// The response of a server is sent, or that of a request that no server answered.
    SendingToClient,
    /// The access logs are written.
    Logging,
}

impl Action {
    /// The words behind "while".
    pub fn text(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::ReadingLine => Some("reading client request line"),
            Self::ReadingPipelined => Some("reading client pipelined request line"),
            Self::ReadingHeaders => Some("reading client request headers"),
            Self::SendingResponse => Some("sending response to client"),
            Self::SendingFlv => Some("sending flv to client"),
            Self::SendingMp4 => Some("sending mp4 to client"),
            Self::SendingToClient => Some("sending to client"),
            Self::Logging => Some("logging request"),
        }
    }
}
