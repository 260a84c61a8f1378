//! Samples of a sweep: sequences of requests, each on a connection of its own, several at a time.

use super::bodies::fields;
use crate::doctor::figures::ms;
use crate::doctor::judge::stall::sweep::Subject;
use crate::doctor::judge::stall::verdict::Sample;
use crate::doctor::{Examination, Failure, NetworkPath, Visitor};

/// Requests each sequence of subjects on its own connection. Samples during which the network was late are taken again, and
/// dropped if they are late again. If the budget is spent, returns the samples so far.
///
/// # Errors
/// Interrupted; no connection was established.
pub(super) fn walk(
    x: &Examination<'_>,
    subjects: &[Subject],
    network_path: NetworkPath,
    sequences: &[Vec<usize>],
) -> Result<Vec<Sample>, Failure> {
    let (samples, failure) = x.visit(network_path, |visitor| {
        visitor.side_by_side(sequences.len(), |n| {
            repeated(visitor, subjects, &sequences[n])
        })
    })?;
    let samples: Vec<Sample> = samples.into_iter().flatten().collect();
    match failure {
        Some(Failure::Interrupted) => Err(Failure::Interrupted),
        Some(failure) if samples.is_empty() && failure != Failure::BudgetSpent => Err(failure),
        _ => Ok(samples),
    }
}

/// One sequence, until none of its places lacks a sample that counts, a few times at most.
fn repeated(
    visitor: &Visitor<'_>,
    subjects: &[Subject],
    sequence: &[usize],
) -> Result<Vec<Sample>, Failure> {
    let mut places: Vec<Option<Sample>> = vec![None; sequence.len()];
    for _ in 0..TRIES {
        once(visitor, subjects, sequence, &mut places)?;
        if places.iter().all(Option::is_some) {
            break;
        }
    }
    Ok(places.into_iter().flatten().collect())
}

/// Walks a sequence on one connection, and fills the places with valid samples.
fn once(
    visitor: &Visitor<'_>,
    subjects: &[Subject],
    sequence: &[usize],
    places: &mut [Option<Sample>],
) -> Result<(), Failure> {
    let mut session = visitor.open(&visitor.dial())?;
    let (mut samples, mut times) = (Vec::new(), Vec::new());
    for (place, subject) in sequence.iter().enumerate() {
        // A server that keeps no connection has no later places.
        if !session.is_open() {
            break;
        }
        let asked = &subjects[*subject];
        let response = session.exchange(&visitor.get(&asked.url, fields(asked)))?;
        times.push((response.sent, response.end));
        samples.push(Sample {
            subject: *subject,
            place,
            first_ms: ms(response.sent, response.head),
            end_ms: ms(response.sent, response.end),
            sent_bytes: response.body_bytes,
        });
    }
    for (sample, is_void) in samples.into_iter().zip(visitor.are_void(&times)) {
        if !is_void {
            places[sample.place].get_or_insert(sample);
        }
    }
    Ok(())
}

/// Times that a sequence is walked at most.
const TRIES: usize = 3;
