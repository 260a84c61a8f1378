//! Tests of the times of checks.

use server_upstream::group::Server;

use super::*;

/// The peers of some servers.
fn peers(count: u16) -> Vec<PeerId> {
    let server = |port| Server {
        addresses: vec![UpstreamAddr::Inet(([192, 0, 2, 1], port).into())],
        ..Server::new()
    };
    let list = PeerList::of(&(0..count).map(server).collect::<Vec<_>>());
    list.iter().map(|(id, _)| id).collect()
}

fn subjects(at: usize, peers: &[PeerId]) -> HashSet<Subject> {
    peers.iter().map(|id| (at, *id)).collect()
}

/// Begins the checks that are due, and ends them at once.
fn due(schedule: &mut Schedule, now_ms: u64) -> Vec<Subject> {
    let begun: Vec<Subject> = std::iter::from_fn(|| schedule.take_due(now_ms)).collect();
    schedule.in_progress.clear();
    begun
}

fn in_progress(schedule: &Rc<RefCell<Schedule>>, subject: Subject, next_ms: u64) -> InProgress {
    InProgress {
        schedule: Rc::downgrade(schedule),
        subject,
        next_ms,
    }
}

#[test]
fn each_peer_is_due_once_from_its_time_on() {
    let peers = peers(2);
    let mut schedule = Schedule::default();
    schedule.set(0, &subjects(0, &peers), || 10);
    schedule.set(1, &subjects(1, &peers[..1]), || 9);
    assert_eq!(due(&mut schedule, 8), []);
    assert_eq!(due(&mut schedule, 9), [(1, peers[0])]);
    assert_eq!(due(&mut schedule, 10), [(0, peers[0]), (0, peers[1])]);
    assert_eq!(due(&mut schedule, u64::MAX), []);
}

#[test]
fn a_peer_that_is_gone_is_not_checked_and_a_new_one_is() {
    let peers = peers(3);
    let mut schedule = Schedule::default();
    schedule.set(0, &subjects(0, &peers[..2]), || 10);
    schedule.set(1, &subjects(1, &peers[..2]), || 10);
    schedule.set(0, &subjects(0, &peers[1..]), || 10);
    let expected = [(0, peers[1]), (0, peers[2]), (1, peers[0]), (1, peers[1])];
    assert_eq!(due(&mut schedule, 10), expected);
}

#[test]
fn a_peer_that_returns_has_one_check_to_come() {
    let peers = peers(1);
    let mut schedule = Schedule::default();
    schedule.set(0, &subjects(0, &peers), || 10);
    schedule.set(0, &subjects(0, &[]), || 10);
    assert!(schedule.waiting.is_empty(), "a peer that is gone has none");
    schedule.set(0, &subjects(0, &peers), || 4);
    assert_eq!(due(&mut schedule, u64::MAX), [(0, peers[0])]);
}

#[test]
fn a_peer_that_returns_during_its_check_has_one_check_to_come() {
    let peers = peers(1);
    let schedule: Rc<RefCell<Schedule>> = Rc::default();
    let set = |peers: &[PeerId]| schedule.borrow_mut().set(0, &subjects(0, peers), || 0);
    set(&peers);
    let subject = schedule.borrow_mut().take_due(0).expect("it is due");
    let check = in_progress(&schedule, subject, 7);
    set(&[]);
    set(&peers);
    assert_eq!(schedule.borrow().due_ms(), None);
    drop(check);
    assert_eq!(schedule.borrow().due_ms(), Some(7));
    let subject = schedule.borrow_mut().take_due(7).expect("it is due");
    let check = in_progress(&schedule, subject, 9);
    set(&[]);
    drop(check);
    assert_eq!(schedule.borrow().due_ms(), None, "it is gone");
}

#[test]
fn checks_in_progress_are_limited_and_the_others_wait() {
    let peers = peers(CHECKS_MAX as u16 + 2);
    for count in [CHECKS_MAX - 1, CHECKS_MAX, CHECKS_MAX + 1] {
        let schedule: Rc<RefCell<Schedule>> = Rc::default();
        let set = |at| {
            let all = subjects(at, &peers[..count]);
            schedule.borrow_mut().set(at, &all, || at as u64);
        };
        set(0);
        let take = || schedule.borrow_mut().take_due(8);
        let mut begun: Vec<InProgress> = std::iter::from_fn(take)
            .map(|subject| in_progress(&schedule, subject, 7))
            .collect();
        assert_eq!(begun.len(), count.min(CHECKS_MAX));
        let left = count - begun.len();
        assert_eq!(schedule.borrow().due_ms(), None, "{count}");
        // A look at the lists adds nothing.
        set(0);
        assert_eq!(schedule.borrow().waiting.len(), left);
        // A check that waits comes before the next one of the peer whose check has ended.
        let waited = schedule.borrow().waiting.peek().map(|check| check.0.1);
        let ended = begun.pop().map(|check| check.subject);
        assert_eq!(take(), waited.or(ended), "{count}");
        set(1);
        assert_eq!(schedule.borrow().waiting.len(), left + count);
    }
}

#[test]
fn the_next_check_follows_however_a_check_ends() {
    let peers = peers(1);
    let schedule: Rc<RefCell<Schedule>> = Rc::default();
    schedule.borrow_mut().set(0, &subjects(0, &peers), || 0);
    let subject = schedule.borrow_mut().take_due(0).expect("it is due");
    drop(in_progress(&schedule, subject, 7));
    assert_eq!(due(&mut schedule.borrow_mut(), 6), []);
    assert_eq!(due(&mut schedule.borrow_mut(), 7), [subject]);
}

#[test]
fn a_random_delay_is_up_to_its_maximum() {
    assert_eq!(random(0), 0);
    let drawn: HashSet<u64> = (0..1000).map(|_| random(2)).collect();
    assert_eq!(drawn, HashSet::from([0, 1, 2]));
}
