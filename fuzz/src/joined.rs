//! Events of clients; adjacent pieces of data are joined.

use engines::client::{Connection, Event, Protocol};

/// Adds an event. The division of data depends on the cuts of the input, so data is joined.
pub fn join<E>(events: &mut Vec<Event<E>>, event: Event<E>) {
    match (events.last_mut(), event) {
        (Some(Event::Data { bytes: all, .. }), Event::Data { mut bytes, .. }) => {
            all.append(&mut bytes);
        }
        (_, event) => events.push(event),
    }
}

/// Passes bytes to the client, in a buffer of this capacity if one is set.
pub fn receive<P: Protocol>(client: &mut Connection<P>, piece: &[u8], buffer_bytes: Option<usize>) {
    let Some(capacity) = buffer_bytes else {
        return client.receive(piece);
    };
    let mut buffer = Vec::with_capacity(capacity);
    buffer.extend_from_slice(piece);
    client.receive_buffer(&mut buffer);
    assert!(buffer.is_empty(), "a buffer is received whole");
}
