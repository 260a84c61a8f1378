//! The machine against servers that a test plays.

mod answers;
mod bodies;
mod buffering;
mod choosing;
mod continued;
mod failures;
mod retries;
mod storing;

use crate::exchange::{Exchange, State};
use crate::testing::servers::{Call, MODULES, Passing};
use crate::testing::{Ran, World, get};

/// A world with a location `/up/` that passes requests on.
struct Site {
    world: World,
}

impl Site {
    fn new(passing: Passing) -> Self {
        Self::with(passing, "")
    }

    /// With more inside the block `server`.
    fn with(passing: Passing, more: &str) -> Self {
        passing.set();
        let all = format!("server {{ server_name localhost; location /up/ {{ pass; }} {more} }}");
        Self {
            world: World::with(&all, MODULES),
        }
    }

    /// A `GET` that waits for its server.
    fn get(&mut self, target: &str) -> Exchange {
        self.run(&get(target))
    }

    fn run(&mut self, head: &str) -> Exchange {
        let Ran { x, .. } = self.world.run(head, &[]);
        x
    }

    /// The attempt that began last.
    fn call(&self) -> &Call {
        self.world.connector.calls.last().expect("an attempt")
    }

    fn calls(&self) -> usize {
        self.world.connector.calls.len()
    }

    /// Does the work of the driver when the exchange is woken.
    fn wake(&mut self, x: &mut Exchange) {
        self.world.queues.wakers.take();
        if matches!(x.progress.state, State::Waiting(_)) {
            self.world.resume(x);
        } else if let Some(on_arrival) = x.body.on_arrival {
            on_arrival(x, &mut self.world.cx());
        }
    }

    /// Wakes the exchange and pulls the available body.
    fn pull(&mut self, x: &mut Exchange) -> (String, &'static str) {
        self.wake(x);
        self.world.pull(x)
    }

    /// A variable's value.
    fn value(&mut self, x: &mut Exchange, name: &str) -> String {
        let mut out = Vec::new();
        let found = crate::upstream::VARIABLES
            .iter()
            .find(|v| name == v.name || v.name.ends_with('_') && name.starts_with(v.name))
            .expect("a variable");
        let rest = match found.name.ends_with('_') {
            true => &name[found.name.len()..],
            false => "",
        };
        let is_found = (found.read)(x, &mut self.world.cx(), rest.as_bytes(), &mut out);
        match is_found {
            true => String::from_utf8(out).expect("text"),
            false => "(none)".to_owned(),
        }
    }
}

/// The fields of the response, as lines.
fn fields(x: &Exchange) -> String {
    let lines = x.response.head.fields.iter().map(|field| {
        let text = |span| String::from_utf8_lossy(x.response.head.bytes(span)).into_owned();
        format!("{}: {}\n", text(field.name), text(field.value))
    });
    lines.collect()
}
