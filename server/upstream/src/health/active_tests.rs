//! Tests of the states of checks.

use std::sync::Arc;

use super::*;
use crate::balance::PickKey;
use crate::peers::{PeerList, TriedPeers};
use crate::route::UpstreamAddr;
use crate::server::Server;

fn server(port: u16) -> Server {
    Server {
        addresses: vec![UpstreamAddr::Inet(([127, 0, 0, 1], port).into())],
        ..Server::new()
    }
}

fn spec(id: u64, fails: u32, passes: u32, initial: Initial) -> CheckSpec {
    CheckSpec {
        id,
        fails,
        passes,
        initial,
    }
}

fn checks(specs: &[CheckSpec]) -> Checks {
    let mut checks = Checks::default();
    checks.set(specs);
    checks
}

#[test]
fn so_many_results_in_a_row_change_the_state() {
    let mut checks = checks(&[spec(1, 3, 2, Initial::Up)]);
    let mut results = |passed: &str| -> Vec<bool> {
        let all = passed.bytes().map(|byte| {
            checks.record(1, byte == b'+');
            checks.is_out()
        });
        all.collect()
    };
    assert_eq!(results("--+--"), [false; 5]);
    assert_eq!(results("-"), [true]);
    assert_eq!(results("+-+"), [true; 3]);
    assert_eq!(results("+"), [false]);
    let counts = checks.counts();
    assert_eq!((counts.checks, counts.fails, counts.unhealthy), (10, 6, 1));
    assert_eq!(counts.last_passed, Some(true));
}

#[test]
fn a_change_is_reported_once() {
    let mut checks = checks(&[spec(1, 1, 1, Initial::Up)]);
    assert_eq!(checks.record(1, true), None);
    assert_eq!(checks.record(1, false), Some(Health::Unhealthy));
    assert_eq!(checks.record(1, false), None);
    assert_eq!(checks.record(1, true), Some(Health::Up));
    assert_eq!(checks.record(2, false), None, "of no check of the group");
    assert_eq!(checks.counts().checks, 4);
}

#[test]
fn the_first_result_ends_the_state_checking() {
    for (passed, health) in [(true, Health::Up), (false, Health::Unhealthy)] {
        let mut checks = checks(&[spec(1, 9, 9, Initial::Checking)]);
        assert_eq!((checks.health(), checks.is_out()), (Health::Checking, true));
        assert_eq!(checks.record(1, passed), Some(health));
        assert_eq!(checks.health(), health);
    }
}

#[test]
fn one_failed_check_of_several_excludes_the_peer() {
    let mut checks = checks(&[spec(1, 1, 1, Initial::Up), spec(2, 1, 1, Initial::Up)]);
    checks.record(1, false);
    checks.record(2, true);
    assert_eq!(checks.health(), Health::Unhealthy);
    checks.record(2, false);
    checks.record(1, true);
    assert!(checks.is_out());
    checks.record(2, true);
    assert!(!checks.is_out());
    assert_eq!(checks.counts().unhealthy, 1);
}

#[test]
fn a_reload_keeps_states_as_the_check_says() {
    use Initial::{Checking, CheckingUnlessUp, Up};
    // Health before the reload, the parameter of the check, and health after the reload.
    for (passed, initial, health) in [
        (true, Up, Health::Up),
        (false, Up, Health::Unhealthy),
        (true, Checking, Health::Checking),
        (false, Checking, Health::Checking),
        (true, CheckingUnlessUp, Health::Up),
        (false, CheckingUnlessUp, Health::Checking),
    ] {
        for id in [1, 2] {
            let mut checks = checks(&[spec(1, 1, 1, initial)]);
            checks.record(1, passed);
            checks.set(&[spec(id, 1, 1, initial)]);
            // A check with another id knows nothing of failures.
            let health = match (id, initial) {
                (2, Up) => Health::Up,
                _ => health,
            };
            assert_eq!(checks.health(), health, "{passed} {initial:?} {id}");
            assert_eq!(checks.is_out(), health != Health::Up);
        }
    }
}

#[test]
fn failures_in_a_row_count_over_a_reload() {
    let specs = [spec(1, 2, 1, Initial::Up)];
    let mut checks = checks(&specs);
    checks.record(1, false);
    checks.set(&specs);
    assert_eq!(checks.record(1, false), Some(Health::Unhealthy));
}

#[test]
fn a_check_that_is_gone_excludes_no_more() {
    let mut checks = checks(&[spec(1, 1, 1, Initial::Up)]);
    checks.record(1, false);
    checks.set(&[]);
    assert!(!checks.is_out());
    assert_eq!(checks.record(1, false), None);
}

#[test]
fn checks_exclude_a_peer_of_any_list_and_admit_it_again() {
    for count in [1, 3, 40] {
        let servers: Vec<Server> = (1..=count).map(server).collect();
        let mut list = PeerList::of(&servers);
        list.set_checks(&Arc::from([spec(7, 1, 1, Initial::Up)]));
        let chosen = |list: &mut PeerList| {
            let all = (0..count).filter_map(|_| {
                let id = list.pick(&mut TriedPeers::default(), &PickKey::default(), 1_000_000)?;
                list.release(id);
                Some(id)
            });
            all.collect::<Vec<_>>()
        };
        assert_eq!(chosen(&mut list).len(), count.into());
        let (first, _) = list.iter().next().expect("there are peers");
        assert_eq!(
            list.record_check(first, 7, false, 0),
            Some(Health::Unhealthy)
        );
        assert!(!chosen(&mut list).contains(&first), "{count}");
        assert_eq!(list.record_check(first, 7, true, 0), Some(Health::Up));
        assert!(chosen(&mut list).contains(&first), "{count}");
    }
}

#[test]
fn a_peer_that_is_added_later_has_the_checks_of_the_group() {
    let mut list = PeerList::of(&[server(1)]);
    list.set_checks(&Arc::from([spec(7, 1, 1, Initial::Checking)]));
    let second = server(2);
    let (first, _) = list.iter().next().expect("it is there");
    let id = list.add(&second, &second.addresses[0]);
    list.set_list(&[first, id]);
    list.record_check(first, 7, true, 0);
    let mut tried = TriedPeers::default();
    assert_eq!(
        list.pick(&mut tried, &PickKey::default(), 1_000_000),
        Some(first)
    );
    assert_eq!(list.pick(&mut tried, &PickKey::default(), 1_000_000), None);
    list.record_check(id, 7, true, 0);
    assert_eq!(
        list.pick(&mut tried, &PickKey::default(), 1_000_000),
        Some(id)
    );
}

#[test]
fn checks_of_one_configuration_are_set_once() {
    let mut list = PeerList::of(&[server(1), server(2)]);
    let checks: Arc<[CheckSpec]> = Arc::from([spec(7, 1, 1, Initial::Checking)]);
    list.set_checks(&checks);
    let (first, _) = list.iter().next().expect("it is there");
    list.record_check(first, 7, true, 0);
    let is_out = |list: &PeerList| list.get(first).expect("it stays").checks().is_out();
    list.set_checks(&checks);
    assert!(!is_out(&list), "a result is kept");
    list.set_checks(&Arc::from([spec(7, 1, 1, Initial::Checking)]));
    assert!(is_out(&list), "another configuration checks it first");
    list.set_checks(&Arc::from([]));
    assert!(!is_out(&list));
}
