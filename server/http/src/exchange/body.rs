//! The response body as an exchange keeps it, and its stages. `response_body` pulls it.

use std::collections::VecDeque;

use engines::http::{Chunk, Method};

use super::part::part;
use super::stage_queue::StageQueue;
use super::subrequest::Subrequest;
use super::{BodySource, Ctx, Exchange, OnArrival};

part! {
    /// The response body: chunks at hand, the source of the rest, and the stages on their way.
    pub struct ResponseBody() {
        /// The chunks that wait to be pulled.
        pub chunks: VecDeque<Chunk> => clear,
        /// The source of the chunks behind them, if there is one.
        pub source: Option<Box<dyn BodySource>>,
        /// Callback for arrivals while the response is being sent; set while an upstream request is in progress.
        pub on_arrival: Option<OnArrival>,
        /// The source has given something that stages may still hold.
        pub(crate) unflushed: bool,
        /// Bytes of the response that wait for a client that takes none now; 0 while it takes them.
        pub unsent_bytes: u64,
        /// Body stages, first the one nearest to the source.
        pub stages: Vec<Box<dyn BodyStage>> => clear,
        /// The output of each of them.
        pub(crate) stage_queues: Vec<StageQueue> => clear,
    }
}

/// A transformation of the response body, added for one response by a header stage.
pub trait BodyStage {
    /// Takes a chunk in memory and puts out none, one or several.
    ///
    /// # Errors
    /// The body is none that the stage can change: the response breaks off.
    fn chunk(&mut self, chunk: Chunk, out: &mut VecDeque<Chunk>) -> Result<(), Broken>;

    /// Flushes: puts out all withheld bytes, and the mark.
    ///
    /// # Errors
    /// See [`BodyStage::chunk`].
    fn flush(&mut self, out: &mut VecDeque<Chunk>) -> Result<(), Broken> {
        out.push_back(Chunk::Flush);
        Ok(())
    }

    /// The body has ended: held bytes are put out here or by [`BodyStage::resume`].
    ///
    /// # Errors
    /// See [`BodyStage::chunk`].
    fn end(&mut self, out: &mut VecDeque<Chunk>) -> Result<(), Broken>;

    /// Bytes of memory that the stage has to wait for before it can take a piece ([`memory::claim`]); called before it is
    /// given one, and again when there may be as many.
    fn missing_bytes(&mut self) -> Option<u64> {
        None
    }

    /// Continues with its last input; false if all of it is done. Called before the stage gets more input.
    ///
    /// # Errors
    /// See [`BodyStage::chunk`].
    fn resume(&mut self, _: &mut VecDeque<Chunk>) -> Result<bool, Broken> {
        Ok(false)
    }

    /// Does work that needs the stage's exchange, or requests subrequests ([`Exchange::join_subrequests`]). Called
    /// after each of the other methods, until it returns idle.
    ///
    /// # Errors
    /// See [`BodyStage::chunk`].
    fn act(
        &mut self,
        _: &mut Exchange,
        _: &mut Ctx<'_>,
        _: &mut VecDeque<Chunk>,
    ) -> Result<StageStatus, Broken> {
        Ok(StageStatus::Idle)
    }
}

/// The result of [`BodyStage::act`].
pub enum StageStatus {
    /// Its input is done.
    Idle,
    /// It did a part and must be called again.
    Again,
    /// As `Again`, and next comes the body of this subrequest.
    Join(Box<Subrequest>),
}

/// Why a stage cannot go on, for the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken(pub &'static str);

/// The result of [`Exchange::pull`].
#[derive(Debug)]
pub enum Pulled {
    /// A piece of the body.
    Chunk(Chunk),
    /// Nothing before `progress.pull_wait` ends: the next piece comes from elsewhere, waits in a subrequest, or is
    /// delayed by the rate limit.
    Pending,
    /// Nothing in this pass over the connection, in which stages have been given enough: the next turn goes on.
    BudgetSpent,
    /// The body has ended.
    End,
    /// The body ends before its announced end, so the connection must close.
    Broken,
}

impl Exchange {
    /// Whether the response must not have a body on the wire.
    pub fn header_only(&self) -> bool {
        self.head.method == Method::Head || matches!(self.reply.status, 100..=199 | 204 | 304)
    }

    /// Whether its body may have to be waited for.
    pub fn may_wait(&self) -> bool {
        self.body.source.is_some() || self.subrequests.has_queue()
    }
}
