//! Detects repetitions that can match the same bytes in exponentially many ways (catastrophic backtracking).
//!
//! The expression becomes an automaton. Its states are the positions of sets of bytes, and each step counts as often as there
//! are ways to take it. If a text leads from a state back to itself in two ways, n such texts do in 2^n ways, and a failing
//! match tries all of them. A state from which the expression may end at any time is harmless: the first try succeeds. Steps
//! out of an atomic group are not tried again and count as harmless.
//!
//! Polynomial backtracking (`.*.*=`) is not reported: a URI is short.
//!
//! Source: Weber and Seidl, "On the degree of ambiguity of finite automata", 1991; the automaton is Glushkov's.

use std::collections::{HashMap, HashSet};

use super::{Ast, Regex};
use crate::bytes::ByteSet;

/// A repetition that backtracks exponentially.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Loop;

impl Loop {
    /// Returns the first one in an expression.
    pub(crate) fn find(regex: &Regex) -> Option<Self> {
        let mut automaton = Automaton::default();
        let whole = automaton.add(&regex.ast, false)?;
        automaton.ends = whole.last_free.iter().copied().collect();
        automaton.ambiguous().then_some(Self)
    }
}

/// A part of an expression, seen from outside. Counts of ways stop at 2.
#[derive(Default, Clone)]
struct Part {
    first: Vec<(usize, u8)>,
    last: Vec<(usize, u8)>,
    /// States after which the part may end without a condition.
    last_free: Vec<usize>,
    /// Number of ways to match the empty text.
    empty: u8,
    /// Whether one of them has no condition.
    empty_free: bool,
}

#[derive(Default)]
struct Automaton {
    sets: Vec<ByteSet>,
    atomic: Vec<bool>,
    steps: Vec<HashMap<usize, u8>>,
    ends: HashSet<usize>,
}

const fn times(a: u8, b: u8) -> u8 {
    let product = a * b;
    if product > 2 { 2 } else { product }
}

fn add_way(ways: &mut Vec<(usize, u8)>, state: usize, count: u8) {
    if count == 0 {
        return;
    }
    match ways.iter_mut().find(|(known, _)| *known == state) {
        Some((_, known)) => *known = (*known + count).min(2),
        None => ways.push((state, count)),
    }
}

impl Automaton {
    /// Adds the states of an expression; `None` when there are too many.
    fn add(&mut self, ast: &Ast, atomic: bool) -> Option<Part> {
        let mut part = Part::default();
        match ast {
            Ast::Empty => (part.empty, part.empty_free) = (1, true),
            Ast::Start | Ast::End | Ast::Assert => part.empty = 1,
            Ast::Set(set) => {
                let state = self.sets.len();
                if state >= STATES_MAX {
                    return None;
                }
                self.sets.push(*set);
                self.atomic.push(atomic);
                self.steps.push(HashMap::new());
                part.first.push((state, 1));
                part.last.push((state, 1));
                part.last_free.push(state);
            }
            Ast::Group { inner, .. } => part = self.add(inner, atomic)?,
            Ast::Atomic(inner) => part = self.add(inner, true)?,
            Ast::Concat(list) => {
                (part.empty, part.empty_free) = (1, true);
                for child in list {
                    let next = self.add(child, atomic)?;
                    part = self.join(part, &next);
                }
            }
            Ast::Alternate(list) => {
                for child in list {
                    let child = self.add(child, atomic)?;
                    part = either(part, &child);
                }
            }
            Ast::Repeat { inner, min, max } => part = self.repeat(inner, *min, *max, atomic)?,
        }
        Some(part)
    }

    fn link(&mut self, last: &[(usize, u8)], first: &[(usize, u8)]) {
        for (from, a) in last {
            for (to, b) in first {
                let count = self.steps[*from].entry(*to).or_default();
                *count = (*count + times(*a, *b)).min(2);
            }
        }
    }

    /// One part, then another.
    fn join(&mut self, mut a: Part, b: &Part) -> Part {
        self.link(&a.last, &b.first);
        for (state, count) in &b.first {
            add_way(&mut a.first, *state, times(*count, a.empty));
        }
        let before = std::mem::replace(&mut a.last, b.last.clone());
        for (state, count) in before {
            add_way(&mut a.last, state, times(count, b.empty));
        }
        if !b.empty_free {
            a.last_free.clear();
        }
        a.last_free.extend(&b.last_free);
        a.empty = times(a.empty, b.empty);
        a.empty_free &= b.empty_free;
        a
    }

    /// Represents a count by the few copies that show whether it is fixed.
    fn repeat(&mut self, inner: &Ast, min: u32, max: Option<u32>, atomic: bool) -> Option<Part> {
        let mut part = Part {
            empty: 1,
            empty_free: true,
            ..Part::default()
        };
        let required = min.min(2);
        let looping = max.is_none();
        for copy in 0..required {
            let next = self.add(inner, atomic)?;
            if looping && copy + 1 == required {
                self.link(&next.last, &next.first);
            }
            part = self.join(part, &next);
        }
        let optional = match max {
            None => u32::from(required == 0),
            Some(max) => max.saturating_sub(min).min(2),
        };
        // `x?x?` would find two ways to one `x`; the second may only follow the first: `(x(x)?)?`.
        let mut copies = Vec::new();
        for _ in 0..optional {
            copies.push(self.add(inner, atomic)?);
        }
        let mut tail: Option<Part> = None;
        for mut copy in copies.into_iter().rev() {
            if looping {
                self.link(&copy.last, &copy.first);
            }
            // PCRE makes no iteration that matches nothing.
            (copy.empty, copy.empty_free) = (0, false);
            let whole = match tail {
                Some(tail) => self.join(copy, &tail),
                None => copy,
            };
            tail = Some(Part {
                empty: 1,
                empty_free: true,
                ..whole
            });
        }
        Some(match tail {
            Some(tail) => self.join(part, &tail),
            None => part,
        })
    }

    fn ambiguous(&self) -> bool {
        let mut budget = STEPS_MAX;
        let next = |state: usize| self.steps[state].keys().copied().collect();
        let loops = components(self.sets.len(), &next);
        let mut by_loop: HashMap<usize, Vec<usize>> = HashMap::new();
        for (state, component) in loops.iter().enumerate() {
            by_loop.entry(*component).or_default().push(state);
        }
        by_loop.values().any(|states| {
            let harmless = |state: &usize| self.ends.contains(state) || self.atomic[*state];
            !states.iter().any(harmless)
                && (self.has_double_step(states) || self.has_two_ways(states, &mut budget))
        })
    }

    /// One step of the loop can be taken in two ways.
    fn has_double_step(&self, states: &[usize]) -> bool {
        let inside: HashSet<usize> = states.iter().copied().collect();
        states.iter().any(|from| {
            let steps = &self.steps[*from];
            steps
                .iter()
                .any(|(to, ways)| *ways > 1 && inside.contains(to))
        })
    }

    /// Returns whether one text leads from a state to two different states, and from both to one state again.
    fn has_two_ways(&self, states: &[usize], budget: &mut usize) -> bool {
        let n = states.len();
        let index: HashMap<usize, usize> = states.iter().copied().zip(0..).collect();
        let steps: Vec<Vec<usize>> = states
            .iter()
            .map(|state| {
                let to = self.steps[*state].keys();
                to.filter_map(|to| index.get(to).copied()).collect()
            })
            .collect();
        let pairs: usize = steps.iter().map(Vec::len).sum();
        match budget.checked_sub(pairs.saturating_mul(pairs)) {
            Some(rest) => *budget = rest,
            None => return false,
        }
        let next = |pair: usize| {
            let mut to = Vec::new();
            for a in &steps[pair / n] {
                for b in &steps[pair % n] {
                    let (one, other) = (self.sets[states[*a]], self.sets[states[*b]]);
                    if !one.is_disjoint(other) {
                        to.push(a * n + b);
                    }
                }
            }
            to
        };
        let component = components(n * n, &next);
        let together: HashSet<usize> = (0..n).map(|a| component[a * n + a]).collect();
        (0..n * n).any(|pair| pair / n != pair % n && together.contains(&component[pair]))
    }
}

fn either(mut a: Part, b: &Part) -> Part {
    for (state, count) in &b.first {
        add_way(&mut a.first, *state, *count);
    }
    for (state, count) in &b.last {
        add_way(&mut a.last, *state, *count);
    }
    a.last_free.extend(&b.last_free);
    a.empty = (a.empty + b.empty).min(2);
    a.empty_free |= b.empty_free;
    a
}

/// The strongly connected component of each node of a graph, by Tarjan's algorithm without recursion.
fn components(n: usize, next: &dyn Fn(usize) -> Vec<usize>) -> Vec<usize> {
    const NEW: usize = usize::MAX;
    let (mut order, mut low) = (vec![NEW; n], vec![0; n]);
    let (mut component, mut count) = (vec![NEW; n], 0);
    let (mut stack, mut calls): (Vec<usize>, Vec<(usize, Vec<usize>)>) = (Vec::new(), Vec::new());
    for root in 0..n {
        if order[root] != NEW {
            continue;
        }
        calls.push((root, next(root)));
        (order[root], low[root]) = (count, count);
        count += 1;
        stack.push(root);
        while let Some((node, rest)) = calls.last_mut() {
            let node = *node;
            if let Some(to) = rest.pop() {
                if order[to] == NEW {
                    (order[to], low[to]) = (count, count);
                    count += 1;
                    stack.push(to);
                    calls.push((to, next(to)));
                } else if component[to] == NEW {
                    low[node] = low[node].min(order[to]);
                }
                continue;
            }
            calls.pop();
            if let Some((parent, _)) = calls.last() {
                low[*parent] = low[*parent].min(low[node]);
            }
            if low[node] == order[node] {
                while let Some(member) = stack.pop() {
                    component[member] = node;
                    if member == node {
                        break;
                    }
                }
            }
        }
    }
    component
}

/// Most states of an automaton; larger expressions are not analyzed.
const STATES_MAX: usize = 400;
/// Most steps of the search; a longer search yields no warning.
const STEPS_MAX: usize = 2_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn endless(pattern: &str) -> bool {
        let regex = Regex::parse(pattern.as_bytes(), false).expect("the expression is understood");
        Loop::find(&regex).is_some()
    }

    #[test]
    fn a_repetition_of_a_repetition_is_endless() {
        for pattern in [
            "(a+)+$",
            "^(a*)*$",
            r"^/(\w+\s?)*$",
            r"^/([^/]+/?)+\.php$",
            "^(a|a)*$",
            "^(a|aa)+$",
            "^(.*,)*x$",
            r"^([a-z]+)*\.html$",
            "^(a{1,5})+$",
            r"^(([a-z0-9])+.)+[A-Z]+$",
            r"^(\d+\d*)+x",
            "(x+x+)+y",
            r"^/(?:[\w-]+[\w.-]*)*/end",
        ] {
            assert!(endless(pattern), "{pattern}");
        }
    }

    #[test]
    fn a_repetition_that_splits_in_one_way_ends() {
        for pattern in [
            "^/(a+)$",
            r"^/(?:[^/]+/)*[^/]+\.php$",
            "(/[^/]+)+$",
            r"\.(?:jpe?g|png|gif)$",
            "^(a{3})+$",
            "^(ab|cd)*$",
            r"^/\d{4}/\d{2}/.*\.html$",
            "^(a?b)*$",
            ".*.*=.*",
            r"^(www\.)?([a-z0-9-]+\.)+[a-z]{2,}$",
            "^(?:a?){3}$",
        ] {
            assert!(!endless(pattern), "{pattern}");
        }
    }

    #[test]
    fn what_cannot_fail_afterwards_ends() {
        for pattern in ["^/(a+)+", "([^/]+/?)*", "^/x(.*)*"] {
            assert!(!endless(pattern), "{pattern}");
        }
    }

    #[test]
    fn what_gives_nothing_back_ends() {
        for pattern in ["^(a++)+$", "^(?>(a+)+)$", "^(a+)++$"] {
            assert!(!endless(pattern), "{pattern}");
        }
    }

    #[test]
    fn a_search_that_takes_too_long_is_given_up() {
        // Every state leads to every other: the steps of the search are the fourth power of their number.
        let dense = |n| format!("^({}a)+$", "a|".repeat(n - 1));
        let most = (1..).take_while(|n: &usize| n.pow(4) <= STEPS_MAX).last();
        let most = most.expect("one state is few");
        assert!(endless(&dense(most)));
        assert!(!endless(&dense(most + 1)));
    }

    #[test]
    fn large_expressions_are_not_judged() {
        assert!(endless(&format!("^(a+)+{}$", "b".repeat(STATES_MAX - 1))));
        assert!(!endless(&format!("^(a+)+{}$", "b".repeat(STATES_MAX))));
    }
}
