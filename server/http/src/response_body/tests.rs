//! The body on its way out: order of the stages, marks, ends, sources, budget and faults.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use engines::http::Chunk;
use server_base::memory::RETRY_MS;

use super::READ_BYTES;
use crate::exchange::{BodyRead, BodySource, BodyStage, Broken, Ctx, Exchange, Pulled, Wait};
use crate::testing::{World, file_of};

/// The calls of all stages of a test, in order.
type Calls = Rc<RefCell<Vec<String>>>;

/// A stage with a name: it splits each chunk into its number of pieces, `x` as `x1 x2`, and puts out its name at the
/// end.
struct Named {
    name: &'static str,
    pieces: usize,
    left: VecDeque<String>,
    calls: Calls,
    fault: Option<&'static str>,
}

impl Named {
    fn new(name: &'static str, calls: &Calls) -> Box<Self> {
        Box::new(Self {
            name,
            pieces: 1,
            left: VecDeque::new(),
            calls: Rc::clone(calls),
            fault: None,
        })
    }

    fn call(&self, what: &str) {
        self.calls
            .borrow_mut()
            .push(format!("{}:{what}", self.name));
    }
}

impl BodyStage for Named {
    fn chunk(&mut self, chunk: Chunk, out: &mut VecDeque<Chunk>) -> Result<(), Broken> {
        let text = String::from_utf8_lossy(chunk.bytes()).into_owned();
        self.call(&text);
        if let Some(fault) = self.fault {
            return Err(Broken(fault));
        }
        let pieces = (1..=self.pieces).map(|n| match self.pieces {
            1 => text.clone(),
            _ => format!("{text}{n} "),
        });
        self.left.extend(pieces);
        out.extend(self.left.pop_front().map(|text| Chunk::Owned(text.into())));
        Ok(())
    }

    fn end(&mut self, out: &mut VecDeque<Chunk>) -> Result<(), Broken> {
        self.call("end");
        out.push_back(Chunk::Owned(format!("<{}>", self.name).into()));
        Ok(())
    }

    fn resume(&mut self, out: &mut VecDeque<Chunk>) -> Result<bool, Broken> {
        let next = self.left.pop_front();
        let any = next.is_some();
        out.extend(next.map(|text| Chunk::Owned(text.into())));
        Ok(any)
    }
}

/// The results of a source, the last first.
struct ScriptedSource(Vec<BodyRead>);

impl BodySource for ScriptedSource {
    fn next(&mut self, _: &mut Ctx<'_>) -> BodyRead {
        self.0.pop().expect("never asked again after the end")
    }
}

fn source(mut said: Vec<BodyRead>) -> Option<Box<dyn BodySource>> {
    said.reverse();
    Some(Box::new(ScriptedSource(said)))
}

fn text(text: &'static str) -> Chunk {
    Chunk::Static(text.as_bytes())
}

/// An exchange with nothing decided but a body in these pieces.
fn exchange(world: &World, pieces: &[&'static str]) -> Exchange {
    let mut x = world.exchange(&crate::testing::get("/"));
    x.body.chunks.extend(pieces.iter().map(|piece| text(piece)));
    x
}

#[test]
fn chunks_leave_as_they_lie_and_then_comes_the_end() {
    let mut world = World::new("");
    let mut x = exchange(&world, &["a", "b"]);
    assert_eq!(world.pull(&mut x), ("ab".to_owned(), "end"));
    assert_eq!(
        world.pull(&mut x),
        (String::new(), "end"),
        "again and again"
    );
}

#[test]
fn marks_are_for_those_who_ask_for_them() {
    let mut world = World::new("");
    let mut x = exchange(&world, &["a"]);
    x.body.chunks.extend([Chunk::Flush, text("b")]);
    let mut marked = exchange(&world, &["a"]);
    marked.body.chunks.extend([Chunk::Flush, text("b")]);
    assert_eq!(world.pull(&mut marked).0, "a|b");
    let mut got = Vec::new();
    while let Pulled::Chunk(chunk) = x.pull(&mut world.cx()) {
        assert!(!matches!(chunk, Chunk::Flush));
        got.extend_from_slice(chunk.bytes());
    }
    assert_eq!(got, b"ab");
}

#[test]
fn each_stage_is_given_what_the_one_before_it_put_out() {
    let mut world = World::new("");
    let calls = Calls::default();
    let mut x = exchange(&world, &["a", "b"]);
    for name in ["one", "two"] {
        x.body.stages.push(Named::new(name, &calls));
    }
    // Bytes that a stage puts out at its end are input of the next stage.
    assert_eq!(world.pull(&mut x), ("ab<one><two>".to_owned(), "end"));
    let calls = calls.borrow().join(" ");
    assert_eq!(
        calls, "one:a two:a one:b two:b one:end two:<one> two:end",
        "a piece goes all the way before the next begins it"
    );
}

/// Without subrequests an outer stage is a stage like any other.
#[test]
fn a_stage_about_what_the_client_gets_needs_no_subrequests() {
    let mut world = World::new("");
    let calls = Calls::default();
    let mut x = exchange(&world, &["a", "b"]);
    x.body.stages.push(Named::new("own", &calls));
    x.push_outer_stage(Named::new("wire", &calls));
    assert_eq!(world.pull(&mut x), ("ab<own><wire>".to_owned(), "end"));
    let mut alone = exchange(&world, &["a", "b"]);
    alone.push_outer_stage(Named::new("wire", &calls));
    assert_eq!(world.pull(&mut alone), ("ab<wire>".to_owned(), "end"));
}

#[test]
fn a_stage_is_given_nothing_while_what_it_put_out_is_on_its_way() {
    let mut world = World::new("");
    let calls = Calls::default();
    let mut x = exchange(&world, &["a", "b"]);
    let mut many = Named::new("many", &calls);
    many.pieces = 3;
    x.body.stages.push(many);
    x.body.stages.push(Named::new("wire", &calls));
    let Pulled::Chunk(first) = x.pull(&mut world.cx()) else {
        panic!("there is a piece")
    };
    assert_eq!(first.bytes(), b"a1 ");
    assert_eq!(*calls.borrow(), ["many:a", "wire:a1 "]);
    assert_eq!(world.pull(&mut x).0, "a2 a3 b1 b2 b3 <many><wire>");
    let calls = calls.borrow().join(" ");
    assert!(
        calls.starts_with("many:a wire:a1  wire:a2  wire:a3  many:b wire:b1 "),
        "{calls}"
    );
}

#[test]
fn what_a_stage_holds_back_after_its_end_still_leaves() {
    /// Puts out everything after its end, a letter at a time.
    struct Withheld(VecDeque<u8>);
    impl BodyStage for Withheld {
        fn chunk(&mut self, chunk: Chunk, _: &mut VecDeque<Chunk>) -> Result<(), Broken> {
            self.0.extend(chunk.bytes());
            Ok(())
        }
        fn end(&mut self, _: &mut VecDeque<Chunk>) -> Result<(), Broken> {
            self.0.push_back(b'.');
            Ok(())
        }
        fn resume(&mut self, out: &mut VecDeque<Chunk>) -> Result<bool, Broken> {
            let ended = self.0.back() == Some(&b'.');
            let next = if ended { self.0.pop_front() } else { None };
            out.extend(next.map(|byte| Chunk::Owned(vec![byte])));
            Ok(next.is_some())
        }
    }
    let mut world = World::new("");
    let calls = Calls::default();
    let mut x = exchange(&world, &["ab", "c"]);
    x.body.stages.push(Box::new(Withheld(VecDeque::new())));
    x.body.stages.push(Named::new("wire", &calls));
    assert_eq!(world.pull(&mut x), ("abc.<wire>".to_owned(), "end"));
}

/// Chunks from before, and those that other stages hold, leave meanwhile.
#[test]
fn a_stage_that_is_not_ready_is_given_nothing_and_asked_again_soon() {
    /// A stage that has no room for the pieces after the first, until the test sets its flag.
    struct Busy(Rc<RefCell<bool>>);
    impl BodyStage for Busy {
        fn missing_bytes(&mut self) -> Option<u64> {
            (!*self.0.borrow()).then_some(1)
        }
        fn chunk(&mut self, chunk: Chunk, out: &mut VecDeque<Chunk>) -> Result<(), Broken> {
            *self.0.borrow_mut() = false;
            out.push_back(chunk);
            Ok(())
        }
        fn end(&mut self, _: &mut VecDeque<Chunk>) -> Result<(), Broken> {
            Ok(())
        }
    }
    let mut world = World::new("");
    let (ready, calls) = (Rc::new(RefCell::new(true)), Calls::default());
    let mut x = exchange(&world, &["a", "b"]);
    x.body.stages.push(Box::new(Busy(Rc::clone(&ready))));
    x.body.stages.push(Named::new("wire", &calls));
    assert_eq!(world.pull(&mut x), ("a".to_owned(), "later"));
    assert_eq!(x.due_ms(), Some(world.clock.mono_ms + RETRY_MS));
    *ready.borrow_mut() = true;
    assert_eq!(world.pull(&mut x), ("b".to_owned(), "later"));
    *ready.borrow_mut() = true;
    assert_eq!(world.pull(&mut x), ("<wire>".to_owned(), "end"));
}

#[test]
fn a_mark_goes_through_every_stage_behind_what_it_marks() {
    let mut world = World::new("");
    let calls = Calls::default();
    let mut x = exchange(&world, &["a"]);
    x.body.chunks.extend([Chunk::Flush, text("b")]);
    x.body.stages.push(Named::new("one", &calls));
    x.body.stages.push(Named::new("two", &calls));
    assert_eq!(world.pull(&mut x).0, "a|b<one><two>");
    assert!(!calls.borrow().iter().any(|call| call.ends_with(':')));
}

#[test]
fn a_stage_that_breaks_breaks_the_body_and_says_why() {
    let mut world = World::new("");
    let calls = Calls::default();
    for (fault, line) in [("it is no film", "it is no film"), ("", "")] {
        let mut x = exchange(&world, &["a"]);
        let mut stage = Named::new("one", &calls);
        stage.fault = Some(fault);
        x.body.stages.push(stage);
        assert_eq!(world.pull(&mut x), (String::new(), "broken"));
        let said = world.said();
        assert_eq!(said.is_empty(), line.is_empty(), "{said}");
        assert!(said.contains(line), "{said}");
    }
}

#[test]
fn a_source_comes_behind_the_chunks_at_hand() {
    let mut world = World::new("");
    let mut x = exchange(&world, &["a"]);
    x.body.source = source(vec![
        BodyRead::Chunk(text("b")),
        BodyRead::Pending(Wait::until(4321)),
        BodyRead::Chunk(text("c")),
        BodyRead::End,
    ]);
    assert!(x.may_wait());
    assert_eq!(world.pull(&mut x), ("ab".to_owned(), "later"));
    assert_eq!(x.due_ms(), Some(4321), "when to look again");
    assert_eq!(world.pull(&mut x), ("c".to_owned(), "end"));
    assert_eq!(x.progress.pull_wait, None, "nothing is waited for");
    assert_eq!(world.pull(&mut x).1, "end");
    assert!(!x.may_wait());
}

#[test]
fn a_source_that_waits_makes_the_stages_wait_and_keeps_their_time() {
    let mut world = World::new("");
    let calls = Calls::default();
    let mut x = exchange(&world, &[]);
    x.body.source = source(vec![
        BodyRead::Chunk(text("a")),
        // It is pulled again after the mark.
        BodyRead::Pending(Wait::until(4321)),
        BodyRead::Pending(Wait::until(4321)),
        BodyRead::Chunk(text("b")),
        BodyRead::End,
    ]);
    x.body.stages.push(Named::new("one", &calls));
    assert_eq!(world.pull(&mut x), ("a|".to_owned(), "later"));
    assert_eq!(x.due_ms(), Some(4321));
    assert_eq!(world.pull(&mut x), ("b<one>".to_owned(), "end"));
}

#[test]
fn only_bodies_that_are_made_elsewhere_may_have_to_be_waited_for() {
    let world = World::new("");
    let mut x = exchange(&world, &["a"]);
    assert!(!x.may_wait());
    x.join_subrequests();
    assert!(x.may_wait());
    x.drop_body();
    assert!(!x.may_wait());
    x.body.source = source(vec![BodyRead::End]);
    assert!(x.may_wait());
}

#[test]
fn files_are_read_for_stages_a_piece_at_a_time() {
    let mut world = World::new("");
    for (size, reads) in [
        (READ_BYTES - 1, vec![READ_BYTES - 1]),
        (READ_BYTES, vec![READ_BYTES]),
        (READ_BYTES + 1, vec![READ_BYTES, 1]),
        (2 * READ_BYTES + 7, vec![READ_BYTES, READ_BYTES, 7]),
    ] {
        let bytes: Vec<u8> = (0..size).map(|at| (at % 251) as u8).collect();
        let mut x = exchange(&world, &[]);
        x.body.chunks.push_back(file_of(&bytes));
        x.body.stages.push(Box::new(Through));
        let (mut got, mut sizes) = (Vec::new(), Vec::new());
        while let Pulled::Chunk(chunk) = x.pull(&mut world.cx()) {
            assert!(!matches!(chunk, Chunk::File(_)), "stages take memory");
            sizes.push(chunk.len());
            got.extend_from_slice(chunk.bytes());
        }
        assert_eq!(sizes, reads);
        assert!(got == bytes, "of {size} bytes one is wrong");
    }
}

/// A stage that changes nothing.
struct Through;

impl BodyStage for Through {
    fn chunk(&mut self, chunk: Chunk, out: &mut VecDeque<Chunk>) -> Result<(), Broken> {
        out.push_back(chunk);
        Ok(())
    }
    fn end(&mut self, _: &mut VecDeque<Chunk>) -> Result<(), Broken> {
        Ok(())
    }
}

#[test]
fn without_stages_a_file_leaves_as_a_range() {
    let mut world = World::new("");
    let mut x = exchange(&world, &["a"]);
    x.body.chunks.push_back(file_of(&[0; 40_000]));
    assert_eq!(world.pull(&mut x), ("a[0+40000]".to_owned(), "end"));
}

#[test]
fn a_file_that_became_shorter_breaks_the_body() {
    let mut world = World::new("");
    let mut x = exchange(&world, &[]);
    let Chunk::File(mut range) = file_of(b"abc") else {
        panic!("a file")
    };
    range.len = 4;
    x.body.chunks.push_back(Chunk::File(range));
    x.body.stages.push(Box::new(Through));
    assert_eq!(world.pull(&mut x).1, "broken");
    let said = world.said();
    assert!(
        said.contains("[crit]") && said.contains("pread() failed"),
        "{said}"
    );
    assert!(!said.contains("[error]"), "once: {said}");
}

/// The stages of a pass have a budget of bytes; once it is spent, the body waits for the next pass.
#[test]
fn stages_are_given_no_more_than_the_budget_of_a_pass() {
    let mut world = World::new("");
    let mut x = exchange(&world, &["abc", "def", "ghi"]);
    x.body.stages.push(Box::new(Through));
    x.body.stages.push(Box::new(Through));
    world.budget.set(4);
    assert_eq!(world.pull(&mut x), ("abcdef".to_owned(), "spent"));
    assert_eq!(world.budget.get(), 0);
    assert_eq!(x.due_ms(), Some(world.clock.mono_ms), "in the next pass");
    assert_eq!(world.pull(&mut x), (String::new(), "spent"));
    world.budget.set(1);
    assert_eq!(world.pull(&mut x), ("ghi".to_owned(), "spent"));
    world.budget.set(1);
    assert_eq!(world.pull(&mut x), (String::new(), "end"));
    assert_eq!(world.budget.get(), 1, "an end costs nothing");
}

#[test]
fn a_file_costs_the_budget_of_what_is_read_of_it() {
    let mut world = World::new("");
    let mut x = exchange(&world, &[]);
    x.body
        .chunks
        .push_back(file_of(&vec![b'x'; 2 * READ_BYTES as usize]));
    x.body.stages.push(Box::new(Through));
    world.budget.set(READ_BYTES + 1);
    assert_eq!(world.pull(&mut x).0.len() as u64, 2 * READ_BYTES);
    assert_eq!(world.budget.get(), 0);
}

#[test]
fn without_stages_a_pass_has_no_budget() {
    let mut world = World::new("");
    let mut x = exchange(&world, &["abc"]);
    world.budget.set(0);
    assert_eq!(world.pull(&mut x), ("abc".to_owned(), "end"));
}

/// A chunk that is put back is pulled next, wherever it came from.
#[test]
fn what_is_put_back_comes_first() {
    let mut world = World::new("");
    let mut own = exchange(&world, &["a"]);
    own.put_back(text("before "));
    assert_eq!(world.pull(&mut own).0, "before a");

    let calls = Calls::default();
    let mut staged = exchange(&world, &["a", "b"]);
    staged.body.stages.push(Named::new("one", &calls));
    assert!(matches!(staged.pull(&mut world.cx()), Pulled::Chunk(_)));
    staged.put_back(text("again "));
    assert_eq!(world.pull(&mut staged).0, "again b<one>");
    assert!(!calls.borrow().iter().any(|call| call == "one:again "));

    let mut joined = exchange(&world, &["a", "b"]);
    joined.join_subrequests();
    assert!(matches!(joined.pull(&mut world.cx()), Pulled::Chunk(_)));
    joined.put_back(text("again "));
    assert_eq!(world.pull(&mut joined).0, "again b");

    let mut outer = exchange(&world, &["a", "b"]);
    outer.join_subrequests();
    outer.push_outer_stage(Named::new("wire", &calls));
    assert!(matches!(outer.pull(&mut world.cx()), Pulled::Chunk(_)));
    outer.put_back(text("behind "));
    assert_eq!(world.pull(&mut outer).0, "behind b<wire>");
    assert!(!calls.borrow().iter().any(|call| call == "wire:behind "));
}

#[test]
fn a_body_is_not_for_the_wire_where_the_protocol_forbids_one() {
    let world = World::new("");
    let mut x = exchange(&world, &[]);
    for (status, header_only) in [
        (199, true),
        (200, false),
        (204, true),
        (206, false),
        (304, true),
        (404, false),
    ] {
        x.reply.status = status;
        assert_eq!(x.header_only(), header_only, "{status}");
    }
    let mut head = world.exchange("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
    head.reply.status = 200;
    assert!(head.header_only());
}
