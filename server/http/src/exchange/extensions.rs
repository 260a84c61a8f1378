//! Values that modules keep with an exchange until it ends: decisions about it, resources taken for it.

use std::any::Any;

use server_base::memory;

use super::{Ctx, Exchange, State, Wait};
use crate::experiments::{ArmId, Assigned};

/// A resource of an exchange that is released once its response was sent, even if the log is written later.
pub struct DropGuard {
    held: Box<dyn Any>,
}

impl DropGuard {
    /// Keeps a value that returns its resource when it is dropped.
    pub fn new<T: Any>(held: T) -> Self {
        Self {
            held: Box::new(held),
        }
    }
}

/// Values of modules, by their type; dropped when the exchange ends.
#[derive(Default)]
pub struct Extensions(Vec<Box<dyn Any>>);

impl Extensions {
    /// The value of a type; of several, the first.
    pub fn get<T: Any>(&self) -> Option<&T> {
        self.0.iter().find_map(|guard| guard.downcast_ref())
    }

    /// The mutable value of a type; of several, the first.
    pub fn get_mut<T: Any>(&mut self) -> Option<&mut T> {
        self.0.iter_mut().find_map(|guard| guard.downcast_mut())
    }

    /// Takes the value of a type out; of several, the first.
    pub fn take<T: Any>(&mut self) -> Option<T> {
        let at = self.0.iter().position(|guard| guard.is::<T>())?;
        self.0.remove(at).downcast().ok().map(|guard| *guard)
    }

    /// Adds a value beside those of its type.
    pub fn push<T: Any>(&mut self, guard: T) {
        self.0.push(Box::new(guard));
    }

    /// Adds a value in the place of those of its type.
    pub fn set<T: Any>(&mut self, guard: T) {
        self.drop_all::<T>();
        self.push(guard);
    }

    /// Drops the values of a type.
    pub fn drop_all<T: Any>(&mut self) {
        self.0.retain(|guard| !guard.is::<T>());
    }

    /// Drops the extensions of resources; other values stay.
    pub fn release(&mut self) {
        self.drop_all::<DropGuard>();
    }

    /// Drops the extensions of resources of this type.
    pub fn release_each<T: Any>(&mut self) {
        let is_one = |guard: &DropGuard| guard.held.is::<T>();
        self.0
            .retain(|value| !value.downcast_ref().is_some_and(is_one));
    }

    /// Drops all.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

impl Exchange {
    /// Returns the arms of experiments in which the user is, as far as they are known. It decides nothing.
    pub fn known_arms(&self) -> impl Iterator<Item = ArmId> {
        let assigned = self.extensions.get::<Assigned>();
        assigned.into_iter().flat_map(Assigned::arms)
    }

    /// Claims bytes for the exchange until its response has left. False if it has to wait for other responses of its
    /// connection: the handler then waits, and is run again.
    #[must_use]
    pub fn hold_memory(&mut self, cx: &Ctx<'_>, bytes: u64) -> bool {
        match memory::claim(self.client.connection, bytes) {
            Some(claim) => self.extensions.push(DropGuard::new(claim)),
            None => {
                self.progress.state = State::Waiting(self.wait_for_memory(cx, bytes));
                return false;
            }
        }
        true
    }

    /// Arranges that the exchange is woken when its connection may have the bytes that it was refused; returns the
    /// wait for that.
    pub(crate) fn wait_for_memory(&mut self, cx: &Ctx<'_>, bytes: u64) -> Wait {
        memory::wait_for(self.client.connection, bytes, self.waker(cx));
        // A time as well: another exchange may have been woken in its place, and have ended.
        Wait::woken_or_until(cx.clock.mono_ms + memory::RETRY_MS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phases;
    use crate::testing::World;

    #[test]
    fn what_was_taken_is_given_back_and_decisions_stay() {
        let taken = std::rc::Rc::new(());
        let mut extensions = Extensions::default();
        extensions.push(1_u8);
        extensions.push(DropGuard::new(std::rc::Rc::clone(&taken)));
        assert_eq!(std::rc::Rc::strong_count(&taken), 2);
        extensions.release();
        assert_eq!(std::rc::Rc::strong_count(&taken), 1);
        assert_eq!(extensions.get::<u8>(), Some(&1));
    }

    #[test]
    fn resources_of_one_type_are_released_alone() {
        let (one, other) = (std::rc::Rc::new(1_u8), std::rc::Rc::new(1_u16));
        let mut extensions = Extensions::default();
        extensions.push(DropGuard::new(std::rc::Rc::clone(&one)));
        extensions.push(DropGuard::new(std::rc::Rc::clone(&other)));
        extensions.push(2_u32);
        extensions.release_each::<std::rc::Rc<u8>>();
        let counts = (
            std::rc::Rc::strong_count(&one),
            std::rc::Rc::strong_count(&other),
        );
        assert_eq!(counts, (1, 2));
        assert_eq!(extensions.get::<u32>(), Some(&2));
    }

    #[test]
    fn values_are_kept_by_type() {
        let mut extensions = Extensions::default();
        extensions.push(1_u8);
        extensions.push(2_u8);
        extensions.push(3_u16);
        assert_eq!(extensions.get::<u8>(), Some(&1));
        extensions.set(4_u8);
        assert_eq!(extensions.get::<u8>(), Some(&4));
        extensions.drop_all::<u8>();
        assert_eq!(
            (extensions.get::<u8>(), extensions.get::<u16>()),
            (None, Some(&3))
        );
        assert_eq!(
            (extensions.take::<u8>(), extensions.take::<u16>()),
            (None, Some(3))
        );
        assert_eq!(extensions.get::<u16>(), None);
    }

    /// A request of a connection.
    fn exchange(world: &mut World, connection: u64) -> Exchange {
        let mut x = world.get("/a");
        x.client.connection = connection;
        x.client.wake.owner = connection;
        x
    }

    fn woken(world: &World) -> Vec<u64> {
        world
            .queues
            .wakers
            .take()
            .iter()
            .map(|key| key.owner)
            .collect()
    }

    #[test]
    fn who_waits_is_woken_when_so_much_is_given_back_that_it_may_have_its_bytes() {
        let mut world = World::new("");
        let (mut one, mut two) = (exchange(&mut world, 1), exchange(&mut world, 2));
        let mut first = memory::claim(1, memory::CONNECTION_BYTES).expect("it is the only one");
        let second = memory::claim(2, 1).expect("another connection has its own");
        assert!(!one.hold_memory(&world.cx(), 100));
        assert!(
            !one.hold_memory(&world.cx(), 100),
            "asked again, it waits once"
        );
        assert!(matches!(one.progress.state, State::Waiting(wait) if wait.wake));
        first.shrink(memory::CONNECTION_BYTES - 99);
        assert_eq!(woken(&world), [0; 0], "a byte is missing");
        drop(second);
        assert_eq!(woken(&world), [0; 0], "the share of another is another");
        first.shrink(memory::CONNECTION_BYTES - 100);
        assert_eq!(woken(&world), [1]);
        assert!(one.hold_memory(&world.cx(), 100));
        drop(first);
        assert_eq!(woken(&world), [0; 0], "it waits no more");
        // The thread's budget is everybody's.
        one.extensions.clear();
        let all = memory::claim(1, memory::THREAD_BYTES);
        let only = memory::claim(2, 1);
        assert!(!two.hold_memory(&world.cx(), 1));
        drop(all);
        assert_eq!(woken(&world), [2]);
        drop(only);
    }

    #[test]
    fn no_more_are_woken_at_once_than_may_be_and_nobody_whose_exchange_has_ended() {
        let mut world = World::new("");
        let mut all: Vec<Exchange> = (0..=memory::WAKES_MAX as u64 + 1)
            .map(|_| exchange(&mut world, 1))
            .collect();
        let claim_of_all = memory::claim(1, memory::CONNECTION_BYTES);
        for (n, x) in all.iter_mut().enumerate() {
            x.client.wake.owner = n as u64;
            assert!(!x.hold_memory(&world.cx(), 1));
        }
        phases::log(&mut all[0], &mut world.cx());
        assert!(!all[1].hold_memory(&world.cx(), 1), "it waits already");
        drop(claim_of_all);
        assert_eq!(woken(&world).len(), memory::WAKES_MAX);
        drop(memory::claim(1, 1));
        assert_eq!(woken(&world), [memory::WAKES_MAX as u64 + 1]);
    }
}
