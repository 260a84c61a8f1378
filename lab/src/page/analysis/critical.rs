//! The critical path: a chain of resources, each of which delayed the next one.

use std::collections::{HashMap, HashSet};

use super::staircase::Staircase;
use crate::page::visit::Visit;

/// Returns places of the resources that led to the one that ended last, in order. Each resource delayed the next one in
/// the queue, or caused its request.
pub(super) fn critical_path(visit: &Visit, staircase: &Staircase) -> Vec<usize> {
    let ends = visit.resources.iter().enumerate();
    let last = ends.max_by(|a, b| a.1.end_ms().total_cmp(&b.1.end_ms()));
    let Some((mut place, _)) = last else {
        return Vec::new();
    };
    let steps = staircase.steps.iter();
    let behind: HashMap<usize, usize> = steps.map(|step| (step.resource, step.behind)).collect();
    let (mut path, mut seen) = (vec![place], HashSet::from([place]));
    loop {
        let initiator = || visit.resources[place].initiator;
        let before = behind.get(&place).copied().or_else(initiator);
        // Initiators in a file may form a cycle or not exist.
        match before.filter(|before| *before < visit.resources.len() && seen.insert(*before)) {
            Some(before) => place = before,
            None => break,
        }
        path.push(place);
    }
    path.reverse();
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::analysis::staircase::Step;
    use crate::page::{Phases, Resource};

    fn resource(start_ms: f64, initiator: Option<usize>) -> Resource {
        Resource {
            start_ms,
            initiator,
            phases: Phases {
                wait_ms: Some(10.0),
                ..Phases::default()
            },
            ..Resource::default()
        }
    }

    fn path(resources: Vec<Resource>, steps: Vec<Step>) -> Vec<usize> {
        let visit = Visit {
            resources,
            ..Visit::default()
        };
        let staircase = Staircase {
            steps,
            ..Staircase::default()
        };
        critical_path(&visit, &staircase)
    }

    #[test]
    fn the_path_goes_back_by_queues_and_initiators() {
        let resources = || {
            vec![
                resource(0.0, None),
                resource(10.0, Some(0)),
                resource(20.0, Some(0)),
                resource(50.0, Some(1)),
                resource(30.0, Some(0)),
            ]
        };
        assert_eq!(path(resources(), Vec::new()), [0, 1, 3]);
        let step = Step {
            resource: 3,
            behind: 2,
            queued_ms: 10.0,
        };
        assert_eq!(path(resources(), vec![step]), [0, 2, 3]);
        assert_eq!(path(Vec::new(), Vec::new()), [] as [usize; 0]);
    }

    #[test]
    fn circles_and_missing_initiators_end_the_path() {
        let circle = vec![resource(0.0, Some(1)), resource(5.0, Some(0))];
        assert_eq!(path(circle, Vec::new()), [0, 1]);
        assert_eq!(path(vec![resource(0.0, Some(7))], Vec::new()), [0]);
        assert_eq!(path(vec![resource(0.0, Some(0))], Vec::new()), [0]);
    }
}
