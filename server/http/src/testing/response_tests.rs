//! The outcome of a request.

use super::World;
use crate::exchange::{Exchange, State};

/// The text of a response.
pub(crate) fn body(world: &mut World, x: &mut Exchange) -> String {
    assert_eq!(x.progress.state, State::Responding);
    world.pull(x).0
}

/// The status of the response; 0 if the connection is closed without one.
pub(crate) fn status(x: &Exchange) -> u16 {
    match x.progress.state {
        State::Responding => x.response.head.status,
        _ => 0,
    }
}
