//! Tests of a response to a health check: status, fields, body and variables.
//!
//! Source: nginx documentation, `match`.

use engines::http::ResponseHead;
use server_base::errlog::Level;
use server_base::regex::Regex;

use crate::exchange::{Ctx, Exchange};
use crate::value::Value;

/// The tests of a `match`. A response passes if it passes all of them.
#[derive(Debug, Default)]
pub struct ResponseTest {
    /// The name.
    pub name: Box<[u8]>,
    /// `status`.
    pub status: Option<StatusTest>,
    /// `header`, in order.
    pub fields: Vec<FieldTest>,
    /// `body`, in order.
    pub body: Vec<TextTest>,
    /// `require`: no value may be empty or "0".
    pub require: Vec<Value>,
}

/// `status`: a list of ranges, each with its first and last status.
#[derive(Debug)]
pub struct StatusTest {
    /// The ranges.
    pub ranges: Vec<(u16, u16)>,
    /// The status must be in none of them.
    pub is_negated: bool,
}

/// `header`: a condition on a response field.
#[derive(Debug)]
pub struct FieldTest {
    /// The name; case does not matter.
    pub name: Box<[u8]>,
    /// The condition.
    pub condition: FieldCondition,
}

/// A condition on the values of a field.
#[derive(Debug)]
pub enum FieldCondition {
    /// The field is there.
    Present,
    /// The field is missing.
    Absent,
    /// A field has this value.
    Equals(Box<[u8]>),
    /// The field is there, and none has this value.
    Differs(Box<[u8]>),
    /// The field is there, and a value passes.
    Text(TextTest),
}

/// `~` or `!~` with an expression.
#[derive(Debug)]
pub struct TextTest {
    /// The expression.
    pub regex: Regex,
    /// `!~`: the expression must not match.
    pub is_negated: bool,
}

/// Tests of a response, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tested {
    /// The status.
    Status,
    /// The fields.
    Fields,
    /// The body.
    Body,
    /// The variables.
    Variables,
}

impl Tested {
    /// Returns the words behind "while" in the log.
    pub fn text(self) -> &'static str {
        match self {
            Self::Status => "checking status code",
            Self::Fields => "checking headers",
            Self::Body => "checking body",
            Self::Variables => "checking required variables",
        }
    }
}

impl ResponseTest {
    /// Tests all but the variables. Returns the last test that was made.
    ///
    /// # Errors
    /// The failed test.
    pub fn check(&self, x: &Exchange, head: &ResponseHead, body: &[u8]) -> Result<Tested, Tested> {
        let mut last = Tested::Status;
        let status = self.status.as_ref();
        if status.is_some_and(|test| !test.admits(head.status)) {
            return Err(last);
        }
        for test in &self.fields {
            last = Tested::Fields;
            if !test.admits(x, head) {
                return Err(last);
            }
        }
        for test in &self.body {
            last = Tested::Body;
            if !test.admits(x, body) {
                return Err(last);
            }
        }
        Ok(last)
    }

    /// Tests the variables. The record of servers must have the response.
    pub fn has_required(&self, x: &mut Exchange, cx: &mut Ctx<'_>) -> bool {
        self.require.iter().all(|value| value.is_true(x, cx))
    }
}

impl StatusTest {
    fn admits(&self, status: u16) -> bool {
        let has = |(first, last): &(u16, u16)| (*first..=*last).contains(&status);
        self.ranges.iter().any(has) != self.is_negated
    }
}

impl FieldTest {
    fn admits(&self, x: &Exchange, head: &ResponseHead) -> bool {
        let mut values = head.named(&self.name).peekable();
        if values.peek().is_none() {
            return matches!(self.condition, FieldCondition::Absent);
        }
        match &self.condition {
            FieldCondition::Present => true,
            FieldCondition::Absent => false,
            FieldCondition::Equals(expected) => values.any(|value| value == &**expected),
            FieldCondition::Differs(expected) => values.all(|value| value != &**expected),
            FieldCondition::Text(test) if test.is_negated => {
                values.all(|value| test.admits(x, value))
            }
            FieldCondition::Text(test) => values.any(|value| test.admits(x, value)),
        }
    }
}

impl TextTest {
    /// Tests a text. A match that cannot be finished fails, and is logged.
    fn admits(&self, x: &Exchange, text: &[u8]) -> bool {
        match self.regex.is_match(text) {
            Ok(found) => found != self.is_negated,
            Err(error) => {
                let message = error.display(text, &self.regex.pattern);
                x.log(Level::Alert, format_args!("{message}"));
                false
            }
        }
    }
}
