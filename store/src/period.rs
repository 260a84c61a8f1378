//! Periods as days, hours and minutes.
//!
//! A period is read from whole days, and its ends from whole hours and whole minutes, so each connection counts once. Ends between
//! two minutes move to the later one: adjoining periods neither share a connection nor lose one.

use crate::query::{Dimension, Step};

/// Length of a roll-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Resolution {
    Minute,
    Hour,
    Day,
}

impl Resolution {
    /// Resolutions by their number in the store.
    pub(crate) const ALL: [Self; 3] = [Self::Minute, Self::Hour, Self::Day];

    /// Resolution with roll-ups as long as a step.
    pub(crate) fn of(step: Step) -> Self {
        match step {
            Step::Minute => Self::Minute,
            Step::Hour => Self::Hour,
            Step::Day => Self::Day,
        }
    }

    /// Length in seconds.
    pub(crate) fn seconds(self) -> u64 {
        match self {
            Self::Minute => Step::Minute.seconds(),
            Self::Hour => Step::Hour.seconds(),
            Self::Day => Step::Day.seconds(),
        }
    }

    /// Begin of the roll-up of a time.
    pub(crate) fn floor(self, at_s: u64) -> u64 {
        at_s - at_s % self.seconds()
    }

    /// Begin of the roll-up after that of a time.
    pub(crate) fn after(self, at_s: u64) -> u64 {
        self.floor(at_s) + self.seconds()
    }

    /// Begin of the first roll-up from a time on.
    pub(crate) fn ceil(self, at_s: u64) -> u64 {
        self.floor(at_s.saturating_add(self.seconds() - 1))
    }
}

/// Returns the dimensions with roll-ups of a resolution. Subdivisions and operators have none by minute: most of them would
/// have a single connection, and take more room than the rows.
pub(crate) fn dimensions_of(resolution: Resolution) -> &'static [Dimension] {
    match resolution {
        Resolution::Minute => &[Dimension::Country],
        Resolution::Hour | Resolution::Day => &Dimension::ALL,
    }
}

/// Begins of stored roll-ups, Unix seconds; earlier ones are deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Kept {
    /// Begin of the minutes, a whole hour.
    pub(crate) minutes_from_s: u64,
    /// Begin of the hours, a whole day.
    pub(crate) hours_from_s: u64,
    /// Begin of the days.
    pub(crate) days_from_s: u64,
}

impl Kept {
    /// Begin of the roll-ups of a resolution.
    pub(crate) fn begin_s(&self, resolution: Resolution) -> u64 {
        match resolution {
            Resolution::Minute => self.minutes_from_s,
            Resolution::Hour => self.hours_from_s,
            Resolution::Day => self.days_from_s,
        }
    }

    /// Begins of the roll-ups of a dimension.
    pub(crate) fn of(&self, dimension: Dimension) -> Self {
        let mut kept = *self;
        if !dimensions_of(Resolution::Minute).contains(&dimension) {
            kept.minutes_from_s = u64::MAX;
        }
        kept
    }

    /// Moves an end of a period to the next end of a stored roll-up.
    fn aligned(&self, at_s: u64) -> u64 {
        let finest = Resolution::ALL
            .into_iter()
            .find(|resolution| resolution.floor(at_s) >= self.begin_s(*resolution));
        finest.unwrap_or(Resolution::Day).ceil(at_s)
    }
}

/// Roll-ups of one resolution that begin within a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) resolution: Resolution,
    pub(crate) from_s: u64,
    pub(crate) to_s: u64,
}

/// A period that roll-ups cover.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cover {
    pub(crate) from_s: u64,
    pub(crate) to_s: u64,
    pub(crate) segments: Vec<Segment>,
}

impl Cover {
    /// Returns the begin of the roll-up of a time within the period.
    pub(crate) fn start_of(&self, at_s: u64) -> u64 {
        let found = self.segments.iter().rfind(|segment| segment.from_s <= at_s);
        found.map_or(at_s, |segment| segment.resolution.floor(at_s))
    }
}

/// Covers a period by stored roll-ups, with as few as possible. None is longer than the coarsest, unless shorter ones are deleted.
pub(crate) fn cover(from_s: u64, to_s: u64, kept: &Kept, coarsest: Resolution) -> Cover {
    let (from_s, to_s) = (kept.aligned(from_s), kept.aligned(to_s));
    let mut segments = Vec::new();
    let mut at = from_s;
    for resolution in Resolution::ALL.into_iter().rev() {
        // Longer roll-ups than wanted end at the first shorter one.
        let end = match resolution {
            Resolution::Day if coarsest < resolution => kept.hours_from_s.min(to_s),
            Resolution::Hour if coarsest < resolution => kept.minutes_from_s.min(to_s),
            _ => to_s,
        };
        split(at, end, resolution, &mut segments);
        at = at.max(end);
    }
    Cover {
        from_s,
        to_s,
        segments,
    }
}

fn split(from_s: u64, to_s: u64, resolution: Resolution, segments: &mut Vec<Segment>) {
    if from_s >= to_s {
        return;
    }
    let finer = match resolution {
        Resolution::Day => Some(Resolution::Hour),
        Resolution::Hour => Some(Resolution::Minute),
        Resolution::Minute => None,
    };
    let (first, last) = (resolution.ceil(from_s), resolution.floor(to_s));
    match finer {
        Some(finer) if first >= last => split(from_s, to_s, finer, segments),
        Some(finer) => {
            split(from_s, first, finer, segments);
            segments.push(Segment {
                resolution,
                from_s: first,
                to_s: last,
            });
            split(last, to_s, finer, segments);
        }
        None => segments.push(Segment {
            resolution,
            from_s,
            to_s,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 86_400;

    fn shown(from_s: u64, to_s: u64, kept: &Kept) -> Vec<(char, u64, u64)> {
        let found = cover(from_s, to_s, kept, Resolution::Day).segments;
        found
            .iter()
            .map(|segment| {
                let name = match segment.resolution {
                    Resolution::Minute => 'm',
                    Resolution::Hour => 'h',
                    Resolution::Day => 'd',
                };
                (name, segment.from_s, segment.to_s)
            })
            .collect()
    }

    #[test]
    fn ends_are_read_from_hours_and_minutes() {
        let kept = Kept::default();
        assert_eq!(shown(0, DAY, &kept), [('d', 0, DAY)]);
        assert_eq!(
            shown(DAY - 3660, 3 * DAY + 3660, &kept),
            [
                ('m', DAY - 3660, DAY - 3600),
                ('h', DAY - 3600, DAY),
                ('d', DAY, 3 * DAY),
                ('h', 3 * DAY, 3 * DAY + 3600),
                ('m', 3 * DAY + 3600, 3 * DAY + 3660),
            ]
        );
        assert_eq!(shown(60, 120, &kept), [('m', 60, 120)]);
        assert_eq!(
            shown(3540, 7260, &kept),
            [('m', 3540, 3600), ('h', 3600, 7200), ('m', 7200, 7260)]
        );
        assert_eq!(shown(7200, 7200, &kept), []);
        assert_eq!(shown(7260, 7200, &kept), []);
    }

    #[test]
    fn ends_between_minutes_move_to_the_later_one() {
        let kept = Kept::default();
        assert_eq!(shown(60, 119, &kept), [('m', 60, 120)]);
        assert_eq!(shown(60, 121, &kept), [('m', 60, 180)]);
        assert_eq!(shown(61, 120, &kept), []);
        assert_eq!(shown(59, 120, &kept), [('m', 60, 120)]);
    }

    #[test]
    fn coarse_roll_ups_move_ends_further() {
        let kept = Kept {
            minutes_from_s: 10 * DAY,
            hours_from_s: 5 * DAY,
            days_from_s: DAY,
        };
        let to = 12 * DAY;
        let first = |from_s| cover(from_s, to, &kept, Resolution::Day).from_s;
        assert_eq!(first(10 * DAY + 61), 10 * DAY + 120);
        assert_eq!(first(10 * DAY), 10 * DAY);
        assert_eq!(first(10 * DAY - 1), 10 * DAY);
        assert_eq!(first(10 * DAY - 3600), 10 * DAY - 3600);
        assert_eq!(first(10 * DAY - 3601), 10 * DAY - 3600);
        assert_eq!(first(5 * DAY), 5 * DAY);
        assert_eq!(first(5 * DAY - 1), 5 * DAY);
        assert_eq!(first(5 * DAY - DAY), 4 * DAY);
        assert_eq!(first(5 * DAY - DAY - 1), 4 * DAY);
        // Nothing is stored before the first day.
        assert_eq!(first(1), DAY);
    }

    #[test]
    fn each_second_is_covered_once() {
        let kept = Kept {
            minutes_from_s: 3 * DAY + 7200,
            hours_from_s: 2 * DAY,
            days_from_s: 0,
        };
        let mut random = fastrand::Rng::with_seed(46);
        for _ in 0..10_000 {
            let (from_s, to_s) = (random.u64(0..5 * DAY), random.u64(0..5 * DAY));
            for coarsest in Resolution::ALL {
                let found = cover(from_s, to_s, &kept, coarsest);
                let mut at = found.from_s;
                for segment in &found.segments {
                    let resolution = segment.resolution;
                    assert_eq!(segment.from_s, at, "{from_s} to {to_s}");
                    assert!(segment.from_s >= kept.begin_s(resolution));
                    let finer = Resolution::ALL.into_iter().rfind(|it| *it < resolution);
                    let is_needed = finer.is_some_and(|it| segment.from_s < kept.begin_s(it));
                    assert!(resolution <= coarsest || is_needed, "{from_s} to {to_s}");
                    assert_eq!(found.start_of(at), at);
                    let last = resolution.floor(segment.to_s - 1);
                    assert_eq!(found.start_of(segment.to_s - 1), last);
                    at = segment.to_s;
                }
                assert_eq!(at, found.to_s.max(found.from_s), "{from_s} to {to_s}");
            }
        }
    }

    #[test]
    fn last_times_do_not_overflow() {
        let found = cover(0, u64::MAX, &Kept::default(), Resolution::Day);
        assert!(found.to_s > u64::MAX - DAY);
    }
}
