//! How long a resource rests between two passes. Each resource has a pace of its own: trouble with one makes only its
//! own rests longer, success or a new generation of its spec makes them short again.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use crate::features::decide::Recheck;

/// The lengths of rests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Between two looks at a cluster that is expected to change by itself.
    pub soon: Duration,
    /// Between two looks at a cluster that is not.
    pub slow: Duration,
    /// After the first failure; it doubles with each that follows.
    pub first_retry: Duration,
    /// The longest rest after a failure.
    pub longest_retry: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            soon: Duration::from_secs(10),
            slow: Duration::from_secs(300),
            first_retry: Duration::from_secs(1),
            longest_retry: Duration::from_secs(120),
        }
    }
}

/// So many passes may follow each other without a rest. A plan has fewer requests than that: more means that the
/// cluster accepts changes and does not show them.
const RUSHES: u32 = 16;

impl Pace {
    /// The rest before the next pass, `repeated` being how often the same answer was given in a row, and `random`
    /// a number from 0 to 1.
    fn rest(&self, recheck: Recheck, repeated: u32, now: Timestamp, random: f64) -> Duration {
        // up to a tenth shorter, so that resources made at once don't go on in step
        let spread = |rest: Duration| rest.mul_f64(0.1f64.mul_add(-random, 1.0));
        match recheck {
            Recheck::Now if repeated < RUSHES => Duration::ZERO,
            Recheck::Now => self.retry(repeated - RUSHES, random),
            Recheck::Soon => spread(self.soon),
            Recheck::Slow => spread(self.slow),
            Recheck::Backoff => self.retry(repeated, random),
            Recheck::At(time) => {
                Duration::try_from(time.duration_since(now)).unwrap_or(Duration::ZERO).min(self.soon)
            }
        }
    }

    /// The rest after the failure that follows `failures` others: between half and all of a bound that doubles.
    fn retry(&self, failures: u32, random: f64) -> Duration {
        let bound = self.first_retry.saturating_mul(2u32.saturating_pow(failures)).min(self.longest_retry);
        bound.mul_f64(0.5f64.mul_add(random, 0.5))
    }
}

/// Where one resource stands.
#[derive(Debug)]
struct Rest {
    generation: Option<i64>,
    recheck: Recheck,
    repeated: u32,
    due: Instant,
}

/// The rests of all resources, by uid.
#[derive(Debug, Default)]
pub(super) struct Rests {
    pace: Pace,
    rests: Mutex<HashMap<String, Rest>>,
    /// Those that were woken since their last pass began: what woke them may have come too late for it.
    woken: Mutex<HashSet<String>>,
}

impl Rests {
    pub(super) fn new(pace: Pace) -> Self {
        Self { pace, ..Self::default() }
    }

    /// How long a resource still rests. Whatever touches it, our own writes among them, does not end its rest; only
    /// a new generation of its spec does.
    pub(super) fn left(&self, uid: &str, generation: Option<i64>) -> Option<Duration> {
        let rests = self.lock();
        let rest = rests.get(uid).filter(|rest| rest.generation == generation);
        let left = rest.map_or(Duration::ZERO, |rest| rest.due.saturating_duration_since(Instant::now()));
        if left.is_zero() {
            self.woken().remove(uid);
        }
        (!left.is_zero()).then_some(left)
    }

    /// Lets a resource rest after a pass, and says how long.
    pub(super) fn begin(
        &self,
        uid: &str,
        generation: Option<i64>,
        recheck: Recheck,
        now: Timestamp,
    ) -> Duration {
        let mut rests = self.lock();
        let same = |rest: &&Rest| rest.generation == generation && kind(rest.recheck) == kind(recheck);
        let repeated = rests.get(uid).filter(same).map_or(0, |rest| rest.repeated.saturating_add(1));
        let woken = self.woken().remove(uid);
        let rest = self.pace.rest(recheck, repeated, now, rand::random());
        let length = if woken { Duration::ZERO } else { rest };
        let due = Instant::now() + length;
        rests.insert(uid.to_owned(), Rest { generation, recheck, repeated, due });
        length
    }

    /// Ends a resource's rest, since something that it depends on changed.
    pub(super) fn wake(&self, uid: &str) {
        if let Some(rest) = self.lock().get_mut(uid) {
            rest.due = Instant::now();
        }
        self.woken().insert(uid.to_owned());
    }

    /// Forgets resources that are gone.
    pub(super) fn keep(&self, exists: impl Fn(&str) -> bool) {
        self.lock().retain(|uid, _| exists(uid));
        self.woken().retain(|uid| exists(uid));
    }

    fn woken(&self) -> MutexGuard<'_, HashSet<String>> {
        self.woken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Rest>> {
        self.rests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What counts as the same answer: the time of an end of soak is none of it.
fn kind(recheck: Recheck) -> std::mem::Discriminant<Recheck> {
    std::mem::discriminant(&recheck)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn rest(recheck: Recheck, repeated: u32, random: f64) -> f64 {
        Pace::default().rest(recheck, repeated, NOW, random).as_secs_f64()
    }

    #[test]
    fn rests_after_failures_grow_up_to_a_cap_and_differ() {
        let longest: Vec<f64> = (0..10).map(|failures| rest(Recheck::Backoff, failures, 1.0)).collect();
        assert_eq!(longest, [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 120.0, 120.0, 120.0]);
        assert_eq!(rest(Recheck::Backoff, 3, 0.0), 4.0);
        assert_eq!(rest(Recheck::Backoff, u32::MAX, 1.0), 120.0);
    }

    #[test]
    fn a_cluster_that_accepts_and_does_not_change_is_not_asked_without_end() {
        assert_eq!(rest(Recheck::Now, 0, 1.0), 0.0);
        assert_eq!(rest(Recheck::Now, RUSHES - 1, 1.0), 0.0);
        assert_eq!(rest(Recheck::Now, RUSHES, 1.0), 1.0);
        assert_eq!(rest(Recheck::Now, RUSHES + 20, 1.0), 120.0);
    }

    #[test]
    fn a_known_time_is_waited_for_but_looked_at_on_the_way() {
        let in_seconds = |seconds: i64| Recheck::At(Timestamp::from_second(seconds).unwrap());
        assert_eq!(rest(in_seconds(3), 0, 1.0), 3.0);
        assert_eq!(rest(in_seconds(3600), 0, 1.0), 10.0);
        assert_eq!(rest(in_seconds(-3), 0, 1.0), 0.0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_rest_ends_with_time_with_a_new_generation_or_when_woken() {
        let rests = Rests::new(Pace::default());
        let length = rests.begin("a", Some(1), Recheck::Slow, NOW);
        assert_eq!(rests.left("a", Some(1)), Some(length));
        assert_eq!(rests.left("a", Some(2)), None);
        assert_eq!(rests.left("b", Some(1)), None);
        tokio::time::advance(length).await;
        assert_eq!(rests.left("a", Some(1)), None);
        rests.begin("a", Some(1), Recheck::Slow, NOW);
        rests.wake("a");
        assert_eq!(rests.left("a", Some(1)), None);
    }

    #[tokio::test(start_paused = true)]
    async fn what_comes_in_the_middle_of_a_pass_makes_another_one_at_once() {
        let rests = Rests::new(Pace::default());
        assert_eq!(rests.left("a", Some(1)), None);
        rests.wake("a");
        assert_eq!(rests.begin("a", Some(1), Recheck::Slow, NOW), Duration::ZERO);
        assert_eq!(rests.left("a", Some(1)), None);
        assert!(rests.begin("a", Some(1), Recheck::Slow, NOW) > Duration::ZERO, "once");
    }

    #[tokio::test(start_paused = true)]
    async fn one_resources_failures_are_its_own_and_end_with_success_or_a_new_generation() {
        let rests = Rests::new(Pace::default());
        let fail = |uid: &str, generation| rests.begin(uid, Some(generation), Recheck::Backoff, NOW);
        for _ in 0..7 {
            fail("a", 1);
        }
        assert!(fail("a", 1) >= Duration::from_secs(60));
        assert!(fail("b", 1) <= Duration::from_secs(1));
        assert!(fail("a", 2) <= Duration::from_secs(1));
        fail("a", 2);
        rests.begin("a", Some(2), Recheck::Slow, NOW);
        assert!(fail("a", 2) <= Duration::from_secs(1));
        rests.keep(|uid| uid == "b");
        assert_eq!(rests.lock().len(), 1);
    }
}
