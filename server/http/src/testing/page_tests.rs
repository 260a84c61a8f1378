//! Stages that request subrequests, and one that holds their bodies back.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use engines::http::Chunk;

use super::{Ran, World, get};
use crate::exchange::{BodyStage, Broken, Ctx, Exchange, StageStatus, Subrequest};

/// The parts of a page.
pub(crate) enum Part {
    Text(String),
    Subrequest(&'static str),
    /// The stage does nothing more before it has ended.
    Waited(&'static str),
    /// With a stub in the place of nothing or of an error.
    OrElse(&'static str, &'static str),
    /// InMemory in memory for the page.
    InMemory(&'static str),
}

/// A stage that puts its parts in the place of the body.
pub(crate) struct Page(pub(crate) Rc<Parts>);

#[derive(Default)]
pub(crate) struct Parts {
    pub(crate) left: RefCell<VecDeque<Part>>,
    pub(crate) held: RefCell<Vec<(u16, String)>>,
    begun: RefCell<bool>,
}

impl BodyStage for Page {
    fn chunk(&mut self, _: Chunk, _: &mut VecDeque<Chunk>) -> Result<(), Broken> {
        *self.0.begun.borrow_mut() = true;
        Ok(())
    }

    fn end(&mut self, _: &mut VecDeque<Chunk>) -> Result<(), Broken> {
        Ok(())
    }

    fn act(
        &mut self,
        x: &mut Exchange,
        cx: &mut Ctx<'_>,
        out: &mut VecDeque<Chunk>,
    ) -> Result<StageStatus, Broken> {
        if !*self.0.begun.borrow() {
            return Ok(StageStatus::Idle);
        }
        let Some(part) = self.0.left.borrow_mut().pop_front() else {
            return Ok(StageStatus::Idle);
        };
        let mut open = |uri: &str| {
            Subrequest::open(x, cx, uri.as_bytes(), b"").map_err(|_| Broken("too many"))
        };
        let child = match part {
            Part::Text(text) => {
                out.push_back(Chunk::Owned(text.into()));
                return Ok(StageStatus::Again);
            }
            Part::Subrequest(uri) => open(uri)?,
            Part::Waited(uri) => open(uri)?.waited(),
            Part::OrElse(uri, stub) => open(uri)?.or_else(stub.into(), b"text/plain".to_vec()),
            Part::InMemory(uri) => {
                let page = Rc::clone(&self.0);
                open(uri)?.held_for(move |_, status, body| {
                    let body = String::from_utf8_lossy(&body).into_owned();
                    page.held.borrow_mut().push((status, body));
                })
            }
        };
        Ok(StageStatus::Join(Box::new(child)))
    }
}

pub(crate) fn text(text: &str) -> Part {
    Part::Text(text.to_owned())
}

/// An exchange with a page as its body, and the remaining parts of the page.
pub(crate) fn page(world: &mut World, parts: Vec<Part>) -> (Ran, Rc<Parts>) {
    let mut ran = world.run(&get("/say/page"), &[]);
    ran.handlers();
    let left = Rc::new(Parts::default());
    left.left.borrow_mut().extend(parts);
    ran.x.body.stages.push(Box::new(Page(Rc::clone(&left))));
    ran.x.join_subrequests();
    (ran, left)
}

/// The body of a page that never waits.
pub(crate) fn whole(parts: Vec<Part>) -> String {
    let mut world = World::new("");
    let (mut ran, _) = page(&mut world, parts);
    let (text, end) = world.pull(&mut ran.x);
    assert_eq!(end, "end");
    text
}

/// Subrequests begun since the last call.
pub(crate) fn begun(ran: &Ran) -> usize {
    ran.handlers().matches("server_rewrite").count()
}

/// A stage behind the queue of subrequests that holds everything back until it is flushed.
pub(crate) struct Holding(pub(crate) Vec<u8>);

impl BodyStage for Holding {
    fn chunk(&mut self, chunk: Chunk, _: &mut VecDeque<Chunk>) -> Result<(), Broken> {
        self.0.extend_from_slice(chunk.bytes());
        Ok(())
    }

    fn flush(&mut self, out: &mut VecDeque<Chunk>) -> Result<(), Broken> {
        out.push_back(Chunk::Owned(std::mem::take(&mut self.0)));
        out.push_back(Chunk::Flush);
        Ok(())
    }

    fn end(&mut self, out: &mut VecDeque<Chunk>) -> Result<(), Broken> {
        out.push_back(Chunk::Owned(std::mem::take(&mut self.0)));
        Ok(())
    }
}
