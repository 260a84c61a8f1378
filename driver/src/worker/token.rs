//! Tokens: numbers that name entries of all tables, for pollers and wakes.

/// A kind of entries, and its number in their tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum TokenKind {
    /// Connections of clients.
    Client,
    /// Connections to servers.
    Upstream,
    /// Sockets of resolvers; they are in no table.
    Resolver,
    /// Exchanges without a client; they have no socket.
    Detached,
}

impl TokenKind {
    /// The kind of a token; `None` for tokens of the loop itself.
    #[inline]
    pub fn of(token: u64) -> Option<Self> {
        match token >> KIND_SHIFT {
            0 => Some(Self::Client),
            1 => Some(Self::Upstream),
            2 => Some(Self::Resolver),
            3 => Some(Self::Detached),
            _ => None,
        }
    }

    /// The first of the tokens of this kind.
    pub fn first_token(self) -> u64 {
        (self as u64) << KIND_SHIFT
    }
}

/// Position of the kind in a token, above the life of a slot.
const KIND_SHIFT: u32 = 60;
