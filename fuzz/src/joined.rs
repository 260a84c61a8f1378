//! Stories of clients whose data may come in pieces of any size.

use engines::client::Event;

/// Adds an event to a story. How data is divided depends on how it comes, so it is joined.
pub fn join<E>(events: &mut Vec<Event<E>>, event: Event<E>) {
    match (events.last_mut(), event) {
        (Some(Event::Data { bytes: all, .. }), Event::Data { mut bytes, .. }) => {
            all.append(&mut bytes);
        }
        (_, event) => events.push(event),
    }
}
